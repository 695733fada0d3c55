//go:build !wasm

package upstash

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// overRedis carries commands with a [Command.Binary] reply straight to a Redis:
// no server in between changes a word of it.
type overRedis struct {
	conn net.Conn
	r    *bufio.Reader
}

func newOverRedis(t *testing.T) *overRedis {
	conn, err := net.Dial("tcp", testenv.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &overRedis{conn, bufio.NewReader(conn)}
}

func (o *overRedis) RoundTrip(_ context.Context, req *Request, resp *Response) error {
	var args []string
	if err := json.Unmarshal(req.Body, &args); err != nil {
		return NotSent(err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := o.conn.Write(b.Bytes()); err != nil {
		return err
	}
	resp.StatusCode = 200
	for _, err := checkRESP2(resp.Body); err != nil; _, err = checkRESP2(resp.Body) {
		line, err := o.r.ReadBytes('\n')
		if err != nil {
			return err
		}
		resp.Body = append(resp.Body, line...)
	}
	if resp.Body[0] == '-' {
		resp.StatusCode = 400
	}
	return nil
}

// TestScriptErrorsOfRedis: what a script raises is not taken for a refusal,
// whatever it says, and a refusal of Redis is.
func TestScriptErrorsOfRedis(t *testing.T) {
	redis := newOverRedis(t)
	var c *Client
	var key string
	begin := func(name string) { // a client that knows nothing of the server
		c, key = clientOver(t, redis, WithRetry(0)), name
	}
	do := func(cmd Command) (Reply, error) { return c.Do(t.Context(), cmd.Binary()) }
	wantRuns := func(name string, want int64) {
		t.Helper()
		r, err := do(Cmd("INCRBY", key, "0"))
		if n, _ := r.Int64(); n != want {
			t.Errorf("%s: ran %d times (%v), want %d", name, n, err, want)
		}
	}
	const run = "redis.call('INCR', KEYS[1]) if ARGV[1] then "
	for i, words := range []string{
		"ERR unknown command 'EVALSHA', with args beginning with: ",
		"ERR unknown command 'EVALSHA', with args beginning with: 'x' ",
		"ERR unknown command 'EVALSHA', with args beginning with: '{sum}' ",
		"ERR unknown command `EVALSHA`, with args beginning with: `{sum}`, ",
		"ERR unknown command 'EVALSHA'",
		"NOSCRIPT No matching script. Please use EVAL.",
		"NOSCRIPT No matching script.",
		"NOPERM this user has no permissions to run the 'evalsha' command",
		"NOPERM this user has no permissions to run the 'eval' command",
		"NOPERM User app has no permissions to run the 'evalsha' command",
		"ERR Unexpected flag in script shebang: allow-key-locking",
	} {
		begin(fmt.Sprint("raised:", i))
		s := NewScript(run + "error({err = ARGV[1]}) end return 1")
		words := strings.ReplaceAll(words, "{sum}", sumOf(s))
		if _, err := do(s.Cmd([]string{key})); err != nil { // from now on it goes as EVALSHA
			t.Fatal(err)
		}
		_, err := do(s.Cmd([]string{key}, words))
		if err == nil || SafeToRetry(err) {
			t.Errorf("raised %q: SafeToRetry(%v) is true", words, err)
		}
		wantRuns("raised "+words, 2)
	}

	// What a script returns, Redis changes nothing of: but it is no refusal if it
	// is of another command than the one that was sent.
	for i, words := range []string{
		"NOPERM this user has no permissions to run the 'evalsha' command",
		"NOPERM this user has no permissions to run the 'eval_ro' command",
		"NOPERM this user has no permissions to run the 'fcall' command or its subcommand",
		"NOPERM this user has no permissions to run the 'eval|x' command",
		"NOPERM THIS USER has no permissions to run the 'eval' command",
		"ERR unknown command 'EVALSHA'",
		"NOSCRIPT No matching script. Please use EVAL.",
		"ERR Invalid script shebang",
		"ERR Unexpected flag in script shebang: allow-key-locking",
	} {
		begin(fmt.Sprint("returned:", i))
		_, err := do(Cmd("EVAL", run+"return redis.error_reply(ARGV[1]) end", "1", key, words))
		if err == nil || SafeToRetry(err) {
			t.Errorf("returned %q: SafeToRetry(%v) is true", words, err)
		}
		wantRuns("returned "+words, 1)
	}
	begin("element")
	r, err := do(Cmd("EVAL", run+"return {redis.error_reply(ARGV[1])} end", "1", key,
		"NOPERM this user has no permissions to run the 'eval' command"))
	if err != nil {
		t.Fatal(err)
	}
	if list, err := r.Array(); err != nil || len(list) != 1 || list[0].Err() == nil || SafeToRetry(list[0].Err()) {
		t.Errorf("an error in an array: %v, %v: SafeToRetry is true of a script that ran", list, err)
	}
	wantRuns("an error in an array", 1)

	// Redis's own.
	s := NewScript(keyLocking + "return redis.call('INCR', KEYS[1])")
	begin("refused")
	for i, prepare := range []Command{
		Cmd("PING"), // the first line
		Cmd("SCRIPT", "FLUSH"),
		Cmd("ACL", "SETUSER", "default", "-evalsha"),
	} {
		if _, err := do(prepare); err != nil {
			t.Fatal(err)
		}
		r, err := do(s.Cmd([]string{key}))
		if n, _ := r.Int64(); err != nil || n != int64(i+1) || r.MaybeRepeated() {
			t.Errorf("after %s: %d, %v, MaybeRepeated %v; want %d", prepare.Name(), n, err, r.MaybeRepeated(), i+1)
		}
	}
	if _, err := do(Cmd("ACL", "SETUSER", "default", "-eval")); err != nil {
		t.Fatal(err)
	}
	if _, err := do(s.Cmd([]string{key})); err == nil || !SafeToRetry(err) {
		t.Errorf("no permission for EVAL: SafeToRetry(%v) is false", err)
	}
}
