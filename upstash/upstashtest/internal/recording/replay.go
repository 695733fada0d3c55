package recording

import (
	"net/http"
	"testing"

	"github.com/jarcoal/httpmock"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
)

// replayURL has a host that cannot exist (RFC 2606). No request leaves the
// process.
const (
	replayURL   = "https://recording.invalid"
	replayToken = "replayed"
)

// Replay is upstashtest.Replay.
func Replay(tb testing.TB, file string, opts ...upstash.Option) *upstash.Client {
	tb.Helper()
	rec, err := readRecording(file)
	if err != nil {
		tb.Fatalf("upstashtest: %v", err)
	}
	noteDraws(tb)
	p := newPlayer(tb, file, rec)
	mock := httpmock.NewMockTransport()
	mock.RegisterNoResponder(p.respond) // for all methods and URLs alike

	all := []upstash.Option{sameClock(), upstash.WithBackoff(0, 0)} // which opts may change
	all = append(all, opts...)
	all = append(all, upstash.WithTransport(httptransport.New(&http.Client{Transport: mock})))
	client, err := upstash.New(replayURL, replayToken, all...)
	if err != nil {
		tb.Fatalf("upstashtest: making a client to replay with: %v", err)
	}
	tb.Cleanup(func() {
		_ = client.Close()
		p.finish()
	})
	return client
}
