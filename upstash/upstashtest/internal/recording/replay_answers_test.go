package recording_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/faketest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/recording"
)

const getAMade2 = `{"request": {"method": "POST", "path": "/", "body": ["GET", "a"]},
	"response": {"status": 200, "body": {"result": "2"}}}`

func TestReplayAnswersEqualRequestsInOrder(t *testing.T) {
	c := recording.Replay(t, exchangesOf(t, getA1, setA, getAMade2))
	for _, want := range []string{"1", "2"} {
		r, err := c.Do(t.Context(), cmdGetA)
		if got, textErr := r.Text(); err != nil || textErr != nil || got != want {
			t.Errorf("GET = %q, %v, %v; want %q", got, err, textErr, want)
		}
	}
	if _, err := c.Do(t.Context(), cmdSetA); err != nil { // different ones in any order
		t.Error(err)
	}
}

func TestReplayInAnyOrderAtOnce(t *testing.T) {
	const n = 50
	var exchanges []string
	for range n {
		exchanges = append(exchanges, getA1, pipe, wide)
	}
	c := recording.Replay(t, exchangesOf(t, exchanges...))
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			_, e1 := c.Do(t.Context(), upstash.Cmd("BITFIELD", "k", "GET", "u1", "17", "GET", "u1", "18"))
			_, e2 := c.Pipeline(t.Context(), cmdSetA, cmdGetA)
			_, e3 := c.Do(t.Context(), cmdGetA)
			if err := errors.Join(e1, e2, e3); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// Which of several calls at once sends a script's text, and which its SHA-1, is
// no difference. But a NOSCRIPT answers a SHA-1 alone.
func TestReplayOfScriptsInAnyOrder(t *testing.T) {
	const text, sum = `"EVAL", "return \"x\" -- y"`, `"EVALSHA", "78ee2f063dcb7a1286f5ec1c2dde881c0d003935"`
	const found, missing = `200, "body": {"result": "ran"}`, `400, "body": {"error": "NOSCRIPT No matching script"}`
	exchange := func(script, arg, answer string) string {
		return `{"request": {"method": "POST", "path": "/", "body": [` + script + `, "0", "` + arg + `"]},
	"response": {"status": ` + answer + `}}`
	}
	first := exchange(text, "a", found)
	script := upstash.NewScript(`return "x" -- y`)
	for args, exchanges := range map[string][]string{
		"ab":  {first, exchange(sum, "b", found)},
		"ba":  {first, exchange(sum, "b", found)},
		"abc": {first, exchange(sum, "b", missing), exchange(text, "b", found), exchange(sum, "c", found)},
	} {
		c := recording.Replay(t, exchangesOf(t, exchanges...))
		for _, arg := range strings.Split(args, "") {
			r, err := c.Do(t.Context(), script.Cmd(nil, arg))
			if got, _ := r.Text(); err != nil || got != "ran" {
				t.Errorf("%s: %s = %q, %v", args, arg, got, err)
			}
		}
	}
}

// TestReplayOfRetries: each attempt of a call ends as it was recorded.
func TestReplayOfRetries(t *testing.T) {
	attempt := func(response string) string {
		return `{"request": {"method": "POST", "path": "/", "body": ["INCR", "n"]}, "response": ` + response + `}`
	}
	tests := map[string]struct {
		responses []string
		want      []int // status of each attempt
		wantErr   bool
	}{
		"never sent": {
			[]string{`{"failure": "not sent"}`, `{"status": 200, "body": {"result": 1}}`},
			[]int{0, 200},
			false,
		},
		"limited": {
			[]string{`{"status": 429, "body": {"error": "ERR slow"}}`, `{"status": 200, "body": {"result": 1}}`},
			[]int{429, 200},
			false,
		},
		"limited, and told when": {
			[]string{
				`{"status": 429, "retryAfter": "0", "body": {"error": "ERR slow"}}`,
				`{"status": 200, "body": {"result": 1}}`,
			},
			[]int{429, 200},
			false,
		},
		"unknown outcome": {[]string{`{"failure": "no answer"}`}, []int{0}, true},
		"not JSON": {
			[]string{`{"status": 502, "contentType": "text/html", "text": "<h1>502</h1>"}`},
			[]int{502},
			true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var file []string
			for _, r := range test.responses {
				file = append(file, attempt(r))
			}
			var got []int
			observe := func(_ context.Context, e upstash.Event) { got = append(got, e.StatusCode) }
			c := recording.Replay(t, exchangesOf(t, file...), upstash.WithObserver(observe))
			_, err := c.Do(t.Context(), upstash.Cmd("INCR", "n"))
			if (err != nil) != test.wantErr || !slices.Equal(got, test.want) {
				t.Errorf("attempts %v, error %v; want %v, error %v", got, err, test.want, test.wantErr)
			}
		})
	}
}

// TestReplayOfRetryAfter has an answer with a longer Retry-After than a call
// waits for. The call ends with an error that has it.
func TestReplayOfRetryAfter(t *testing.T) {
	c := recording.Replay(t, exchangesOf(t, `{"request": {"method": "POST", "path": "/", "body": ["GET", "a"]},
		"response": {"status": 429, "retryAfter": "3600", "body": {"error": "ERR quota"}}}`))
	_, err := c.Do(t.Context(), cmdGetA)
	var server *upstash.Error
	if !errors.As(err, &server) || server.RetryAfter != time.Hour {
		t.Errorf("%v; want a Retry-After of 1h", err)
	}
}

// TestReplayAfterTheEnd uses the client after its test ended. The client
// returns an error and does not touch the test, which would panic.
func TestReplayAfterTheEnd(t *testing.T) {
	var c *upstash.Client
	faketest.Run(func(tb testing.TB) { c = recording.Replay(tb, exchangesOf(t)) }).WantFailures(t)
	if _, err := c.Do(t.Context(), cmdGetA); !errors.Is(err, upstash.ErrClosed) {
		t.Errorf("%v; want ErrClosed", err)
	}
}

func TestReplayOfBadFiles(t *testing.T) {
	request := `"request": {"method": "POST", "path": "/", "body": ["PING"]}`
	tests := map[string]struct{ file, want string }{
		"missing": {filepath.Join(t.TempDir(), "none.json"), "make it with Record"},
		"empty":   {writeFile(t, ""), "unexpected end"},
		"newer": {
			writeFile(t, `{"version": 2, "calls": []}`),
			"it has version 2, and this package reads version 1: record it anew",
		},
		"another file":     {writeFile(t, `{"name": "x"}`), "it has version 0"},
		"an unknown field": {writeFile(t, `{"version": 1, "exchange": []}`), `unknown field "exchange"`},
		"an unknown field of an answer": {
			exchangesOf(t, setA, `{`+request+`, "response": {"state": 200}}`), `exchange 2: json: unknown field "state"`,
		},
		"a second document": {writeFile(t, `{"version": 1} {}`), "after top-level value"},
		"no request": {
			exchangesOf(t, setA, `{"response": {"status": 200}}`),
			"exchange 2: its request needs",
		},
		"no answer":   {exchangesOf(t, `{`+request+`}`), "exchange 1: its status is 0"},
		"odd failure": {exchangesOf(t, `{`+request+`, "response": {"failure": "?"}}`), `its failure is "?"`},
		"odd encoding": {
			exchangesOf(t, strings.Replace(getRESP2, "resp2", "resp3", 1)),
			`its encoding is "resp3"`,
		},
		"two bodies": {
			exchangesOf(t, `{`+request+`, "response": {"status": 200, "body": 1, "text": "1"}}`),
			"more than one of",
		},
		"bad base64": {
			exchangesOf(t, `{`+request+`, "response": {"status": 200, "base64": "?"}}`),
			"illegal base64",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fake := faketest.Run(func(tb testing.TB) {
				recording.Replay(tb, test.file)
				t.Error("the test went on")
			})
			fake.WantFailures(t, test.want)
		})
	}
}

func TestReplayWithABadOption(t *testing.T) {
	fake := faketest.Run(func(tb testing.TB) { recording.Replay(tb, exchangesOf(t), upstash.WithRetry(-1)) })
	fake.WantFailures(t, "making a client to replay with: upstash: bad argument")
}
