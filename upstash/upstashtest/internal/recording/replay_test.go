package recording_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
				_, e1 := c.Do(ctx, cmdSetA)
				_, e2 := c.Do(ctx, cmdGetA)
				_, e3 := c.Pipeline(ctx, cmdSetA, cmdGetA)
				_, e4 := c.Do(ctx, cmdGetA.Binary())
				return errors.Join(e1, e2, e3, e4)
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
			func(ctx context.Context, c *upstash.Client) error {
				return refused(c.Pipeline(ctx, cmdGetA))
			},
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
			func(ctx context.Context, c *upstash.Client) error {
				return refused(c.Pipeline(ctx, cmdSetA, upstash.Cmd("GET", "b")))
			},
			[]string{"command 2: GET, argument 1\n    want: \"GET\",\"a\"\n    got:  \"GET\",\"b\"\n", "1 of 1"},
		},
		"a pipeline's end": {
			[]string{pipe},
			func(ctx context.Context, c *upstash.Client) error {
				return refused(c.Pipeline(ctx, cmdSetA))
			},
			[]string{
				"command 2: the whole command\n    want: \"GET\",\"a\"\n    got:  (nothing)\n",
				"1 of 1 recorded requests were never made, first number 1:\n" +
					"    POST /pipeline: \"SET\",\"a\",\"1\", and 1 more",
			},
		},
		"once too often": {
			[]string{setA, setA},
			func(ctx context.Context, c *upstash.Client) error {
				_, e1 := c.Do(ctx, cmdSetA)
				_, e2 := c.Do(ctx, cmdSetA)
				if err := errors.Join(e1, e2); err != nil {
					return err
				}
				return one(cmdSetA)(ctx, c)
			},
			[]string{"request 3 is made once more than recorded:\n    POST /: \"SET\",\"a\",\"1\""},
		},
		"after all": {
			nil, one(cmdSetA),
			[]string{"request 1 is not in the recording, whose 0 requests were all made before:\n    POST /: \"SET\""},
		},
		"missing": {
			[]string{setA, getA1},
			func(ctx context.Context, c *upstash.Client) error {
				_, err := c.Do(ctx, cmdSetA)
				return err
			},
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
	const anew = "UPBLOOM_RECORD=1 go test -count=1 -run '^TestFake$'"
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
