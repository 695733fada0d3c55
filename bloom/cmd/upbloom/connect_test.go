package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// A silent server is one that answers no request before the given one.
type silent struct{ requests, until int }

func (s *silent) RoundTrip(ctx context.Context, _ *upstash.Request, resp *upstash.Response) error {
	if s.requests++; s.requests < s.until {
		<-ctx.Done()
		return ctx.Err()
	}
	resp.StatusCode, resp.Body = 200, []byte(`{"result":["0",[]]}`)
	return nil
}

// Nobody waits for a minute without a word.
func TestSaysThatNoAnswerComes(t *testing.T) {
	t.Setenv("UPSTASH_REDIS_REST_URL", "https://db.example")
	t.Setenv("UPSTASH_REDIS_REST_TOKEN", "t")
	for _, tt := range []struct {
		until, status, lines int
		flags                string
	}{
		{until: 1},
		{until: 3, lines: 2},
		{until: 9, lines: 5, status: exitDatabase},
		{until: 3, flags: "--quiet"},
		{until: 3, flags: "--json"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out, errOut strings.Builder
			a := &app{in: strings.NewReader(""), out: &out, errOut: &errOut, carrier: &silent{until: tt.until}}
			var first time.Duration
			begun := time.Now()
			a.errOut = writerFunc(func(p []byte) (int, error) {
				if first == 0 {
					first = time.Since(begun)
				}
				return errOut.Write(p)
			})
			args := append(append([]string{"upbloom"}, strings.Fields(tt.flags)...), "ls")
			status := exitStatus(a.run(t.Context(), args))
			n := strings.Count(errOut.String(), "upbloom: no answer from db.example within 10s (attempt ")
			if status != tt.status || n != tt.lines || n > 0 && first > 10*time.Second {
				t.Errorf("%+v: status %d, the first line after %v:\n%s%s", tt, status, first, &out, &errOut)
			}
		})
	}
}

type writerFunc func(p []byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }
