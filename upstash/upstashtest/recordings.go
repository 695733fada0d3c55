package upstashtest

import (
	"testing"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/recording"
)

// Record returns a client of the database at url, a live one or a [Server]. At the
// end of the test it writes the client's requests and their answers to file, for
// [Replay]:
//
//	server := upstashtest.NewServer(t)
//	client := upstashtest.Record(t, "testdata/webhooks.json", server.URL, server.Token)
//
// If the test has failed, or the file cannot be written, the old one stays. A missing
// directory is made.
//
// For each attempt the file holds the method, path and body of the request, and
// the form of answer that [upstash.Command.Binary] asks for. Of the answer it
// holds the status, body, Content-Type and Retry-After, or the fact that there
// was none. If a body contains the token or the host, in plain or in JSON, base64
// or URL escapes, the test fails and nothing is written. Keys and items are in the
// file as they were sent, so record with made-up data.
//
// The same requests and answers make the same file: start with an empty database,
// or with keys the test deletes first. Requests that overlap in time are written in
// the order in which they began: those of an AddAll in several requests may change
// places.
//
// The client does not follow [Server.FastForward]. It uses net/http and the
// proxy of the environment. A WithTransport among opts has no effect. An answer above 64 MiB counts as no answer.
func Record(tb testing.TB, file, url, token string, opts ...upstash.Option) *upstash.Client {
	tb.Helper()
	return recording.Record(tb, file, url, token, opts...)
}

// Recorded is Replay. If the environment has UPBLOOM_RECORD=1, it is Record
// with the database of upstash.FromEnv. The same test then makes its file and
// runs from it:
//
//	UPBLOOM_RECORD=1 go test -count=1 -run TestWebhook .
//
// Without -count=1 go test would repeat an earlier result, and record nothing.
func Recorded(tb testing.TB, file string, opts ...upstash.Option) *upstash.Client {
	tb.Helper()
	return recording.Recorded(tb, file, opts...)
}

// Replay returns a client whose answers come from file, a recording of [Record],
// by github.com/jarcoal/httpmock in place of the network. Pass the same options as
// to Record. The client is safe for concurrent use; the end of the test closes it.
//
// The test fails if a request is not in the recording, or if it ends before each
// recorded request was made. The log shows which call made the request, the first
// difference to the closest recorded one, and how to record again. The caller
// gets an [*upstash.Error] with status 400, which the client does not try again.
//
// A recorded request answers once, and equal ones in the recorded order. Different
// requests may come in any order, as the parts of an AddAll do. Attempts that
// failed and were tried again are answered as recorded, without a pause: only a
// recorded Retry-After makes the client wait, and you may take it out of the file.
//
// What differs between two runs cannot be replayed: a key with a date or a random
// part, an item made from the time. Let the test pass in the clock and the source
// of such names. Three things are no difference: the birth numbers and the names of
// an upload's keys that package bloom draws, for which the file has fixed ones;
// whether a script goes by its text or its SHA-1; and the time, because no key
// expires.
func Replay(tb testing.TB, file string, opts ...upstash.Option) *upstash.Client {
	tb.Helper()
	return recording.Replay(tb, file, opts...)
}
