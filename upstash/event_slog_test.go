//go:build !wasm

package upstash

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestEventInALog(t *testing.T) {
	failed := Event{
		Label: "Add seen", Command: "PIPELINE", Commands: 3, Attempt: 2, StatusCode: 500, MayHaveRun: 3,
		Start: time.Now(), Duration: 7 * time.Millisecond, BytesOut: 90, BytesIn: 4,
		Err: &Error{StatusCode: 500, Message: "ERR x", Command: "PIPELINE"},
	}
	plain := Event{Command: "GET", Commands: 1, Attempt: 1, StatusCode: 200, Ran: 1}
	for _, tt := range []struct {
		handler func(*bytes.Buffer) slog.Handler
		event   Event
		want    string
	}{
		{
			func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) }, failed,
			`"e":{"label":"Add seen","command":"PIPELINE","commands":3,"attempt":2,"status":500,"ran":0,` +
				`"may_have_run":3,"took":7000000,"out":90,"in":4,` +
				`"err":"upstash: PIPELINE: ERR x (HTTP status 500); the command may have run"}`,
		},
		{
			func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) }, plain,
			"e.command=GET e.attempt=1 e.status=200 e.ran=1 e.took=0s e.out=0 e.in=0",
		},
	} {
		var b bytes.Buffer
		slog.New(tt.handler(&b)).Info("redis", "e", tt.event)
		if !strings.Contains(b.String(), tt.want) {
			t.Errorf("got  %s\nwant %s", &b, tt.want)
		}
	}
}
