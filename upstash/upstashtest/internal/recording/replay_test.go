package recording_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/faketest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/recording"
)

// exchangesOf writes a file of exchanges, given as JSON.
func exchangesOf(t *testing.T, exchanges ...string) string {
	t.Helper()
	return writeFile(t, `{"version": 1, "exchanges": [`+strings.Join(exchanges, ",\n")+`]}`)
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "recording.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const (
	setA = `{"request": {"method": "POST", "path": "/", "body": ["SET", "a", "1"]},
		"response": {"status": 200, "body": {"result": "OK"}}}`
	getA1 = `{"request": {"method": "POST", "path": "/", "body": ["GET", "a"]},
		"response": {"status": 200, "body": {"result": "1"}}}`
	pipe = `{"request": {"method": "POST", "path": "/pipeline", "body": [["SET", "a", "1"], ["GET", "a"]]},
		"response": {"status": 200, "body": [{"result": "OK"}, {"result": "1"}]}}`
	getRESP2 = `{"request": {"method": "POST", "path": "/", "encoding": "resp2", "body": ["GET", "a"]},
		"response": {"status": 200, "text": "$1\r\n1\r\n"}}`
	putA = `{"request": {"method": "PUT", "path": "/", "body": ["GET", "a"]},
		"response": {"status": 200, "body": {"result": "1"}}}`
	wide = `{"request": {"method": "POST", "path": "/",
		"body": ["BITFIELD", "k", "GET", "u1", "17", "GET", "u1", "18"]},
		"response": {"status": 200, "body": {"result": [0, 0]}}}`
)

// setRaw is a SET as RawCmd sends it, with all but the last argument in the
// path.
const setRaw = `{"request": {"method": "POST", "path": "/set/a", "text": "x"},
		"response": {"status": 200, "body": {"result": "OK"}}}`

// Commands of the tests.
var (
	cmdSetA = upstash.Cmd("SET", "a", "1")
	cmdGetA = upstash.Cmd("GET", "a")
)

func TestReplayShowsTheDifference(t *testing.T) {
	long := strings.Repeat("x", 200)
	tests := map[string]struct {
		recorded []string
		send     func(context.Context, *upstash.Client) error
		want     []string // one for each failure
	}{
		"as recorded": {
			[]string{setA, getA1, pipe, getRESP2},
			func(ctx context.Context, c *upstash.Client) error {
				_, err := c.Pipeline(ctx, cmdSetA, cmdGetA)
				return errors.Join(err, answered(cmdSetA, cmdGetA, cmdGetA.Binary())(ctx, c))
			}, nil,
		},
		"body": {
			[]string{getA1, setA},
			one(upstash.Cmd("SET", "a", "2")),
			[]string{
				"request 1 is not in the recording; the closest left is number 2:\n" +
					"    SET, argument 2\n" +
					"    want: \"SET\",\"a\",\"1\"\n" +
					"    got:  \"SET\",\"a\",\"2\"\n" +
					"                    ^",
				"2 of 2 recorded requests were never made, first number 1:\n    POST /: \"GET\",\"a\"",
			},
		},
		"in the midst": {
			[]string{wide},
			one(upstash.Cmd("BITFIELD", "k", "GET", "u1", "99", "GET", "u1", "18")),
			[]string{
				"    BITFIELD, argument 4 (operation 1, \"GET\",\"u1\",\"99\")\n" +
					"    want: …,\"k\",\"GET\",\"u1\",\"17\",\"GET\",\"u1\",…\n" +
					"    got:  …,\"k\",\"GET\",\"u1\",\"99\",\"GET\",\"u1\",…\n" +
					"                           ^",
				"1 of 1",
			},
		},
		"shorter": {
			[]string{setA},
			one(upstash.Cmd("SET", "a")),
			[]string{"want: \"SET\",\"a\",\"1\"\n    got:  \"SET\",\"a\",(nothing)\n", "1 of 1"},
		},
		"longer": {
			[]string{setA},
			one(upstash.Cmd("SET", "a", "1", "NX")),
			[]string{"want: \"SET\",\"a\",\"1\",(nothing)\n    got:  \"SET\",\"a\",\"1\",\"NX\"\n", "1 of 1"},
		},
		"another command": {
			[]string{setA},
			one(upstash.Cmd("INCR", "a")),
			[]string{"the command's name\n    want: \"SET\",\"a\",\"1\"\n    got:  \"INCR\",\"a\"", "1 of 1"},
		},
		"a long argument": {
			[]string{strings.ReplaceAll(setA, `"1"`, `"`+long+"y"+long+`"`)},
			one(upstash.Cmd("SET", "a", long+"z"+long)),
			[]string{
				"want: \"SET\",\"a\",…" + long[:20] + "y" + long[:39] + "…\n" +
					"    got:  \"SET\",\"a\",…" + long[:20] + "z" + long[:39] + "…\n",
				"1 of 1",
			},
		},
		"path": {
			[]string{getA1},
			pipeline(cmdGetA),
			[]string{"closest left is number 1:\n    want: POST /\n    got:  POST /pipeline", "1 of 1"},
		},
		"another command in a path": {
			[]string{setRaw},
			one(upstash.RawCmd("APPEND", []byte("x"), "a")),
			[]string{"closest left is number 1:\n    want: POST /set/a\n    got:  POST /append/a", "1 of 1"},
		},
		"method": {
			[]string{putA},
			one(cmdGetA),
			[]string{"closest left is number 1:\n    want: PUT /\n    got:  POST /", "1 of 1"},
		},
		"form of the answer": {
			[]string{getRESP2},
			one(cmdGetA),
			[]string{"closest left is number 1:\n    want: POST / (resp2)\n    got:  POST /", "1 of 1"},
		},
		"within a pipeline": {
			[]string{pipe},
			pipeline(cmdSetA, upstash.Cmd("GET", "b")),
			[]string{"command 2: GET, argument 1\n    want: \"GET\",\"a\"\n    got:  \"GET\",\"b\"\n", "1 of 1"},
		},
		"a pipeline's end": {
			[]string{pipe},
			pipeline(cmdSetA),
			[]string{
				"command 2: the whole command\n    want: \"GET\",\"a\"\n    got:  (nothing)\n",
				"1 of 1 recorded requests were never made, first number 1:\n" +
					"    POST /pipeline: \"SET\",\"a\",\"1\", and 1 more",
			},
		},
		"once too often": {
			[]string{setA, setA, getA1},
			func(ctx context.Context, c *upstash.Client) error {
				return errors.Join(answered(cmdSetA, cmdSetA)(ctx, c), one(cmdSetA)(ctx, c))
			},
			[]string{"request 3 is made once more than recorded:\n    POST /: \"SET\",\"a\",\"1\"", "1 of 3"},
		},
		"after all": {
			nil, one(cmdSetA),
			[]string{"request 1 is not in the recording, whose 0 requests were all made before:\n    POST /: \"SET\""},
		},
		"missing": {
			[]string{setA, getA1},
			answered(cmdSetA),
			[]string{"1 of 2 recorded requests were never made, first number 2:\n    POST /: \"GET\",\"a\""},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := exchangesOf(t, test.recorded...)
			var err error
			fake := faketest.Run(func(tb testing.TB) {
				err = test.send(t.Context(), recording.Replay(tb, file))
			})
			fake.WantFailures(t, test.want...)
			for _, text := range fake.Failures {
				if !strings.HasPrefix(text, "upstashtest: "+file+": ") {
					t.Errorf("failure %q, want one that names the file %s", text, file)
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestReplaySaysWhichCall adds another item than the recorded one.
func TestReplaySaysWhichCall(t *testing.T) {
	server := upstashtest.NewServer(t)
	file := filepath.Join(t.TempDir(), "recording.json")
	add := func(c *upstash.Client, item string) error {
		f, err := bloom.New(c, "filter", bloom.Config{Capacity: 1000, FPRate: 0.01})
		if err == nil {
			_, err = f.Add(t.Context(), item)
		}
		return err
	}
	faketest.Run(func(tb testing.TB) {
		if err := add(recording.Record(tb, file, server.URL, server.Token), "a"); err != nil {
			tb.Errorf("%v", err)
		}
	}).WantFailures(t)
	fake := faketest.Run(func(tb testing.TB) { _ = add(recording.Replay(tb, file), "b") })
	text := strings.Join(fake.Failures, "\n")
	for _, want := range []string{
		"BITFIELD, argument 19 (operation 4, \"SET\",\"u1\",", "made by bloom.Filter.Add at replay_test.go:",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the failures are\n%s\nwant in them\n%s", text, want)
		}
	}
	const anew = "UPBLOOM_RECORD=1 go test -count=1 -run '^TestFake$'\nand UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN set"
	if log := strings.Join(fake.Logs, "\n"); !strings.Contains(log, anew) {
		t.Errorf("the log is\n%s\nwant in it\n%s", log, anew)
	}
}

// one sends a command that is not in the recording. The client may repeat it.
func one(cmd upstash.Command) func(context.Context, *upstash.Client) error {
	return func(ctx context.Context, c *upstash.Client) error {
		return refused(c.Do(ctx, cmd.Repeatable(true)))
	}
}

// pipeline sends commands that are not in the recording.
func pipeline(cmds ...upstash.Command) func(context.Context, *upstash.Client) error {
	return func(ctx context.Context, c *upstash.Client) error { return refused(c.Pipeline(ctx, cmds...)) }
}

// answered sends commands that are in the recording.
func answered(cmds ...upstash.Command) func(context.Context, *upstash.Client) error {
	return func(ctx context.Context, c *upstash.Client) error {
		for _, cmd := range cmds {
			if _, err := c.Do(ctx, cmd); err != nil {
				return err
			}
		}
		return nil
	}
}

// refused checks the error of a request that is not in the recording. It is an
// answer of the server, so the client does not retry, and it does not show the
// arguments.
func refused[T any](_ T, err error) error {
	var server *upstash.Error
	if !errors.As(err, &server) || server.StatusCode != 400 || !upstash.SafeToRetry(err) ||
		server.Message != "ERR not in the recording: see the test's log" {
		return fmt.Errorf("want a refusal, got %w", err)
	}
	return nil
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
	const found, missing = `200, "body": {"result": "ran"}`, `400, "body": {"error": "NOSCRIPT No matching script. Please use EVAL."}`
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
		"bb":  {exchange(sum, "b", missing), exchange(text, "b", found), exchange(sum, "b", found)},
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

// TestReplayOfRetryAfter: a recorded Retry-After makes the client wait, or give up if
// it is longer than a call waits.
func TestReplayOfRetryAfter(t *testing.T) {
	incr := func(answer string) string {
		return `{"request": {"method": "POST", "path": "/", "body": ["INCR", "n"]},
			"response": {"status": ` + answer + `}}`
	}
	c := recording.Replay(t, exchangesOf(t,
		incr(`429, "body": {"error": "ERR slow"}`), incr(`200, "body": {"result": 1}`),
		incr(`429, "retryAfter": "3600", "body": {"error": "ERR quota"}`),
	))
	if _, err := c.Do(t.Context(), upstash.Cmd("INCR", "n")); err != nil {
		t.Errorf("limited, and then not: %v", err)
	}
	_, err := c.Do(t.Context(), upstash.Cmd("INCR", "n"))
	server, is := errors.AsType[*upstash.Error](err)
	if !is || server.StatusCode != 429 || server.RetryAfter != time.Hour {
		t.Errorf("limited for an hour: %v, want status 429 and the hour", err)
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
		"empty":   {writeFile(t, ""), "unexpected end of JSON input: take back what was edited, or record it anew"},
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
		"no method": {
			exchangesOf(t, `{"request": {"path": "/"}, "response": {"status": 200}}`), "its request needs",
		},
		"no slash": {
			exchangesOf(t, strings.Replace(setA, `"/"`, `"x"`, 1)), "its request needs",
		},
		"no answer":   {exchangesOf(t, `{`+request+`}`), "exchange 1: its status is 0"},
		"no status":   {exchangesOf(t, `{`+request+`, "response": {"status": 1000}}`), "its status is 1000"},
		"odd failure": {exchangesOf(t, `{`+request+`, "response": {"failure": "?"}}`), `its failure is "?"`},
		"odd encoding": {
			exchangesOf(t, strings.Replace(getRESP2, "resp2", "resp3", 1)),
			`its encoding is "resp3"`,
		},
		"two bodies": {
			exchangesOf(t, `{`+request+`, "response": {"status": 200, "body": 1, "text": "1"}}`),
			"more than one of",
		},
		"body and base64": {
			exchangesOf(t, `{`+request+`, "response": {"status": 200, "body": 1, "base64": "AA=="}}`),
			"more than one of",
		},
		"text and base64": {
			exchangesOf(t, `{`+request+`, "response": {"status": 200, "text": "1", "base64": "AA=="}}`),
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
