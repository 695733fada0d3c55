package upstashtest

import (
	"testing"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/recording"
)

// Record returns a client of the database at url. It writes the client's
// requests and their answers to file, for [Replay]. The database is a live one,
// or a [Server]:
//
//	server := upstashtest.NewServer(t)
//	client := upstashtest.Record(t, "testdata/webhooks.json", server.URL, server.Token)
//
// The file is written at the end of the test. If the test has failed, the old
// file stays. A missing directory is made.
//
// For each attempt the file holds the method, path and body of the request, and
// the form of answer that [upstash.Command.Binary] asks for. Of the answer it
// holds the status, body, Content-Type and Retry-After, or the fact that there
// was none. It holds no token, no host, no date and no other header. If a body
// contains the token or the host, in plain or in JSON, base64 or URL escapes,
// the test fails and nothing is written. Keys and items are in the file as they
// were sent, so record with made-up data.
//
// The same requests and answers make the same file. Requests that overlap in
// time are written in the order in which they began, which may differ between
// two runs. To keep the order, set BatchParallel to 1 in the filter's Config.
// Start with an empty database, or with keys the test deletes first.
//
// The client uses net/http and the proxy of the environment. A WithTransport
// among opts has no effect. An answer above 64 MiB counts as no answer. Unlike
// those of Replay, the requests reach the database, which bills them.
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

// Replay returns a client whose answers come from file, a recording of
// [Record]. It needs no database, no token and no network, and each answer
// comes at once: github.com/jarcoal/httpmock stands in for the network.
//
// The test fails if a request is not in the recording, because its method,
// path, body or form of answer differs. The log then shows the first difference
// to the closest recorded request that is left, with the operation if it is in a
// BITFIELD, which call of the test made the request, and how to record again. The
// test also fails if it ends before each recorded request was made. A recorded
// request answers once. Equal requests get their answers in the recorded order.
// Different requests may come in any order, as the parts of an AddAll do. A script
// by its text and by its SHA-1 is the same request, because several calls at once
// send the one or the other.
//
// If a request is not in the recording, its caller gets an [*upstash.Error]
// with status 400, which the client does not try again. If an attempt was tried
// again while recording, so it is here, with the recorded answers and without a
// pause. Only a recorded Retry-After makes the client wait; you may lower it or
// take it out of the file.
//
// If a request differs between two runs, it cannot be replayed: a key with a
// date or a random part, an item made from the time. Let the test pass in the
// clock and the source of such names. What package bloom draws at random is no
// difference: in the file fixed numbers stand for birth numbers and for the names
// of an upload's keys. While a test records or replays, no chance leads to a look
// at a filter's fill: a WarnFill is called later, and a Scalable grows by AddAll
// alone. Answers do not depend on the time: no key expires.
//
// Pass the same options as to Record. A WithTransport among them has no effect.
// Several goroutines may use the client at once, until the end of the test,
// which closes it.
func Replay(tb testing.TB, file string, opts ...upstash.Option) *upstash.Client {
	tb.Helper()
	return recording.Replay(tb, file, opts...)
}
