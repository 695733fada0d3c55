package upstashtest

import (
	"testing"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/recording"
)

// Record returns a client of the database at url that writes what passes to
// file, for Replay. The database is a live one, or a Server:
//
//	server := upstashtest.NewServer(t)
//	client := upstashtest.Record(t, "testdata/webhooks.json", server.URL, server.Token)
//
// The file is written at the end of the test, and only if it has not failed:
// otherwise the old one stays. Its directory is made if it is missing.
//
// The file holds, of each attempt, the method, path and body of the request
// and the status, body, Content-Type and Retry-After of the answer, or that
// there was none: no token, no host, no date, and no other header. If a body
// names the token or the host, the test fails and nothing is written. Keys and
// items are in it as they were sent: record with made-up data.
//
// The same requests and answers make the same bytes. Requests under way at the
// same time are written in the order in which they began, which may change
// from run to run: set BatchParallel to 1 in the filter's Config to keep it.
// Start from an empty database, or from keys that the test deletes first.
//
// The client speaks net/http, through the proxy of the environment; a
// WithTransport among opts is overruled. An answer above 64 MiB counts as
// none. Other than Replay's, its requests are real, billed ones.
func Record(tb testing.TB, file, url, token string, opts ...upstash.Option) *upstash.Client {
	tb.Helper()
	return recording.Record(tb, file, url, token, opts...)
}

// Recorded is Replay, or Record if the environment says UPBLOOM_RECORD=1:
// then against the database of upstash.FromEnv. So one test both makes its
// file and runs from it:
//
//	UPBLOOM_RECORD=1 go test -run TestWebhook .
func Recorded(tb testing.TB, file string, opts ...upstash.Option) *upstash.Client {
	tb.Helper()
	return recording.Recorded(tb, file, opts...)
}

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
// A request that is not in the recording is, to the caller, an *upstash.Error
// of status 400, which is not tried again. Attempts that were tried again while
// recording are answered as they were then, without a pause in between; only a
// recorded Retry-After is sat out, and may be lowered or taken out in the file.
//
// What differs from run to run cannot be replayed: a key with a date or a
// random part, an item made of the time. Let the test pass the clock and the
// source of such names. The birth number that a filter draws is an exception:
// the file has a fixed one, which stands for the one drawn. Answers are the
// recorded ones whatever the time: no key expires.
//
// The options are those that were recorded with; a WithTransport among them is
// overruled. The client may be used by several goroutines at once, up to the
// end of the test; it is closed then.
func Replay(tb testing.TB, file string, opts ...upstash.Option) *upstash.Client {
	tb.Helper()
	return recording.Replay(tb, file, opts...)
}
