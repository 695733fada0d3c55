package upstashtest

import (
	"net/http"
	"testing"

	"github.com/jarcoal/httpmock"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
)

// replayURL has a host that no name server knows (RFC 2606). No request leaves
// the process.
const (
	replayURL   = "https://recording.invalid"
	replayToken = "replayed"
)

// Replay returns a client whose answers come from file, which Record wrote. It
// needs no database, no token and no network, and each answer comes at once.
//
// The test fails when a request is not in the recording, its method, path or
// body being another; the log shows the first difference to the closest
// request that is left. It fails too when a recorded request is not made by
// the end of the test. Each recorded request answers once; among equal ones
// the answers come in the order recorded, while different ones may be made in
// any order, as the parts of an AddAll are.
//
// A request that is not in the recording gives the caller an *upstash.Error of
// status 400, which is not tried again. Attempts that were tried again while
// recording are answered as they were then, without a pause in between; only a
// recorded Retry-After is sat out, and may be lowered or taken out in the file.
//
// What differs from run to run cannot be replayed: a key with a date or a
// random part, an item made of the time. Let the test pass the clock and the
// source of such names. Answers are the recorded ones whatever the time: no key
// expires.
//
// The options are those that were recorded with; a WithTransport among them is
// overruled. The client may be used by several goroutines at once, up to the
// end of the test; it is closed then.
func Replay(tb testing.TB, file string, opts ...upstash.Option) *upstash.Client {
	tb.Helper()
	rec, err := readRecording(file)
	if err != nil {
		tb.Fatalf("upstashtest: %v", err)
	}
	p := newPlayer(tb, file, rec)
	mock := httpmock.NewMockTransport()
	mock.RegisterNoResponder(p.respond) // for all methods and URLs alike

	all := []upstash.Option{upstash.WithBackoff(0, 0)} // which opts may change
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
