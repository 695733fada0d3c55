package upstash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/internal/synced"
)

func TestPipeline(t *testing.T) {
	c, f := newFake(t, always(`[{"result":"OK"},{"error":"WRONGTYPE no '`+secretKey+`'"},{"result":[1,null]}]`))
	bits := NewBitField("b").Set("u1", 0, 1).Get("u1", 1)
	replies, err := c.Pipeline(t.Context(), Cmd("SET", "a", "1"), Cmd("INCR", secretKey), bits.Command())
	if err != nil || len(replies) != 3 {
		t.Fatalf("%d replies, want 3: %v", len(replies), err)
	}
	const want = `[["SET","a","1"],["INCR","key-of-a-user"],["BITFIELD","b","SET","u1","0",1,"GET","u1","1"]]`
	if r := f.requests[0]; r.URL != testURL+"/pipeline" || string(r.Body) != want {
		t.Errorf("sent %s to %s", r.Body, r.URL)
	}
	if s, err := replies[0].Text(); s != "OK" || err != nil {
		t.Errorf("SET = %q, %v, want OK", s, err)
	}
	var server *Error
	if !errors.As(replies[1].Err(), &server) || server.Command != "INCR" || server.Code() != "WRONGTYPE" ||
		strings.Contains(server.Message, secretKey) {
		t.Errorf("INCR: %v, want WRONGTYPE without the key", replies[1].Err())
	}
	if ints, err := replies[2].Ints(nil); len(ints) != 2 || ints[1].Valid || err != nil {
		t.Errorf("BITFIELD = %v, %v, want two, the second null", ints, err)
	}
}

func TestMultiExec(t *testing.T) {
	c, f := newFake(t, always(`[{"result":1}]`))
	_, err := c.MultiExec(t.Context(), Cmd("INCR", "a"))
	if err != nil || f.requests[0].URL != testURL+"/multi-exec" {
		t.Errorf("%v, sent to %s", err, f.requests[0].URL)
	}
	c, _ = newFake(t, []answer{{status: 400, body: `{"error":"EXECABORT discarded"}`}})
	_, err = c.MultiExec(t.Context(), Cmd("INCR", "a"), Cmd("NOPE"))
	var server *Error
	if !errors.As(err, &server) || server.Command != "MULTI-EXEC" ||
		server.Code() != "EXECABORT" || !SafeToRetry(err) {
		t.Errorf("discarded: %v, want EXECABORT of MULTI-EXEC, safe to retry", err)
	}
}

// None of the commands ran, a script neither. But a script may say so itself.
func TestADiscardedTransactionOfAScript(t *testing.T) {
	script := NewScript("return redis.error_reply('EXECABORT discarded')").Cmd([]string{"a"})
	discarded := answer{status: 400, body: `{"error":"EXECABORT discarded"}`}
	own := answer{body: `[{"error":"EXECABORT discarded"}]`}
	aborted := func(err error, safe bool) {
		t.Helper()
		if !errors.Is(err, ErrAborted) || SafeToRetry(err) != safe || strings.Contains(err.Error(), "may have run") == safe {
			t.Errorf("%v, want ErrAborted, safe to retry: %t", err, safe)
		}
	}
	c, _ := newFake(t, []answer{discarded, own, discarded, discarded, {status: 400, body: `{"error":"ERR x"}`}})
	_, err := c.MultiExec(t.Context(), script, Cmd("NOPE"))
	aborted(err, true)
	replies, err := c.MultiExec(t.Context(), script)
	if err != nil {
		t.Fatal(err)
	}
	aborted(replies[0].Err(), false)
	_, err = c.Pipeline(t.Context(), script)
	aborted(err, false)
	_, err = c.Do(t.Context(), script)
	aborted(err, false)
	if _, err = c.MultiExec(t.Context(), script); err == nil || SafeToRetry(err) {
		t.Errorf("another error of a transaction: %v, want one that is not safe to retry", err)
	}
}

// The other commands of the batch have run, and repeating the batch would run
// them twice. The caller therefore decides about the refused one.
func TestALimitForOneCommandOfABatchIsNotTriedAgain(t *testing.T) {
	// Each command alone could be repeated.
	cmds := []Command{Cmd("SADD", "s", "m"), Cmd("SET", "k", "v"), Cmd("GET", "k")}
	for message, kind := range map[string]error{
		"ERR max requests limit exceeded. Limit: 500000, Usage: 500000": ErrQuota,
		"ERR too many requests": nil, // not a known text of the service
	} {
		for _, transaction := range []bool{false, true} {
			c, f := newFake(t, always(`[{"result":1},{"error":"`+message+`"},{"result":"v"}]`))
			replies, err := sendAll(t.Context(), c, cmds, transaction)
			if err != nil || f.count() != 1 {
				t.Fatalf("%s: %v after %d attempts, want one", message, err, f.count())
			}
			refused := replies[1].Err()
			if !SafeToRetry(refused) || kind != nil && !errors.Is(refused, kind) {
				t.Errorf("got %v, SafeToRetry %v", refused, SafeToRetry(refused))
			}
			if n, err := replies[0].Int64(); n != 1 || err != nil || replies[2].Err() != nil {
				t.Errorf("%s: the others got %d, %v, %v", message, n, err, replies[2].Err())
			}
		}
	}
}

// If one command must not be repeated, the whole batch is not.
func TestBatchIsAsSafeAsItsWorstCommand(t *testing.T) {
	for _, tt := range []struct {
		cmds []Command
		want int
	}{
		{[]Command{Cmd("GET", "a"), Cmd("SET", "a", "b")}, 5},
		{[]Command{Cmd("GET", "a"), Cmd("INCR", "a")}, 1},
		{[]Command{Cmd("INCR", "a").Repeatable(true), Cmd("GET", "a")}, 5},
		{[]Command{Cmd("EVAL", "x", "0"), Cmd("GET", "a")}, 1},
	} {
		c, f := newFake(t, []answer{{err: dropped}})
		if _, err := c.MultiExec(t.Context(), tt.cmds...); err == nil || f.count() != tt.want {
			t.Errorf("%v: %d attempts, want %d (%v)", tt.cmds, f.count(), tt.want, err)
		}
	}
}

func TestBatchBinary(t *testing.T) {
	c, f := newFake(t, always(`[{"result":"/w=="},{"result":"OK"}]`))
	replies, err := c.Pipeline(t.Context(), Cmd("GET", "a").Binary(), Cmd("SET", "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	if encoding, _ := f.last("Upstash-Encoding"); encoding != "base64" {
		t.Errorf("asked for encoding %q, want base64", encoding)
	}
	if b, err := replies[0].Bytes(); string(b) != "\xff" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
	if s, err := replies[1].Text(); s != "OK" || err != nil {
		t.Errorf("got %q, %v", s, err)
	}
}

func TestResponseOverTheLimit(t *testing.T) {
	const body = `{"result":"0123456789"}`
	for limit, ok := range map[int]bool{len(body): true, len(body) - 1: false} {
		c, f := newFake(t, always(body), WithMaxResponse(limit))
		_, err := c.Do(t.Context(), Cmd("GET", "k"))
		if ok != (err == nil) || !ok && !errors.Is(err, ErrResponseTooLarge) || f.count() != 1 {
			t.Errorf("limit %d: %v, %d attempts", limit, err, f.count())
		}
		if f.requests[0].MaxResponse != limit {
			t.Errorf("the transport was told %d, want %d", f.requests[0].MaxResponse, limit)
		}
		c.endpoint.path = "/get/foo" // it is not asked about
		if _, err := c.Do(t.Context(), Cmd("GET", "k")); err != nil && strings.Contains(err.Error(), "?") {
			t.Errorf("with a path: %v, want no question", err)
		}
	}
}

// A body that is longer than the limit is not sent, whatever it consists of.
func TestRequestOverTheLimit(t *testing.T) {
	fill := func(room int) string { return strings.Repeat("x", room) }
	const limit = 2000
	two := func(bytes int) []Command {
		return []Command{Cmd("GET", "k"), Cmd("SET", "k", fill(bytes-len(`[["GET","k"],["SET","k",""]]`)))}
	}
	for name, commands := range map[string]func(bytes int) []Command{
		"command":  func(bytes int) []Command { return []Command{Cmd("SET", "k", fill(bytes-len(`["SET","k",""]`)))} },
		"raw body": func(bytes int) []Command { return []Command{RawCmd("SET", []byte(fill(bytes)), "k")} },
		"script": func(bytes int) []Command {
			return []Command{NewScript("return 1").Cmd(nil, fill(bytes-len(`["EVAL","return 1","0",""]`)))}
		},
		"pipeline": two, "transaction": two,
	} {
		var attempts, calls int
		c, f := newFake(t, []answer{{status: 429}}, WithRetry(0), WithMaxRequest(limit),
			observing(func(Event) { attempts++ }), WithCallObserver(func(_ context.Context, e Event) { calls++ }))
		send := func(bytes int) error {
			_, err := sendAll(t.Context(), c, commands(bytes), name == "transaction")
			return err
		}
		if err := send(limit); !errors.Is(err, ErrRateLimited) || len(f.requests[0].Body) != limit {
			t.Errorf("%s of %d bytes: %v, sent %d", name, limit, err, len(f.requests[0].Body))
		}
		err := send(limit + 1)
		if !errors.Is(err, ErrRequestTooLarge) || !SafeToRetry(err) || f.count() != 1 {
			t.Errorf("%s of %d bytes: %v, safe %v, %d requests", name, limit+1, err, SafeToRetry(err), f.count())
		}
		for _, want := range []string{"2001 bytes", "limit is 2000", "send less at once", "WithMaxRequest", "did not run"} {
			if !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%s: %q lacks %q", name, err, want)
			}
		}
		if attempts != 1 || calls != 2 {
			t.Errorf("%s: %d attempts and %d calls observed, want 1 and 2", name, attempts, calls)
		}
	}
}

// The text of a script may be too long if its checksum is not. If the server has
// lost the text, nothing has run.
func TestScriptTextOverTheLimit(t *testing.T) {
	s := NewScript("return 1 -- " + strings.Repeat("x", 1500))
	c, f := newFake(t, []answer{
		{body: `{"result":1}`},
		{status: 400, body: `{"error":"NOSCRIPT No matching script."}`},
	}, WithMaxRequest(2000))
	if _, err := c.Do(t.Context(), s.Cmd(nil)); err != nil {
		t.Fatal(err)
	}
	_, err := c.Do(t.Context(), s.Cmd(nil, strings.Repeat("x", 500)))
	if !errors.Is(err, ErrRequestTooLarge) || !SafeToRetry(err) || f.count() != 2 {
		t.Errorf("got %v, safe %v, after %d requests", err, SafeToRetry(err), f.count())
	}
}

// untilDone is a server that never answers.
func untilDone(ctx context.Context) { <-ctx.Done() }

// If a context ends, the error is its own, whatever the transport returns then.
func TestContextErrorsStayVisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cancelled, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		wantContextError(t, cancelled, os.ErrDeadlineExceeded, context.Canceled)

		expiring, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		wantContextError(t, expiring, os.ErrDeadlineExceeded, context.DeadlineExceeded)

		cause := errors.New("the user left")
		left, leave := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { leave(cause) })
		wantContextError(t, left, cause, context.Canceled, cause)
	})
}

// wantContextError makes a call that ctx ends, with the transport returning
// network, and another one under the ended context, which sends nothing.
func wantContextError(t *testing.T, ctx context.Context, network error, want ...error) {
	t.Helper()
	c, f := newFake(t, []answer{{hook: untilDone, err: network}})
	_, during := c.Do(ctx, Cmd("INCR", "k"))
	_, after := c.Do(ctx, Cmd("INCR", "k"))
	for _, want := range want {
		if !errors.Is(during, want) || !errors.Is(after, want) {
			t.Errorf("got %v, then %v, want %v", during, after, want)
		}
	}
	if SafeToRetry(during) || !SafeToRetry(after) || f.count() != 1 {
		t.Errorf("SafeToRetry is %v, then %v, after %d requests; want false, true, 1",
			SafeToRetry(during), SafeToRetry(after), f.count())
	}
}

func TestTimeoutLimitsAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t, []answer{{hook: untilDone, err: os.ErrDeadlineExceeded}, {body: `{"result":1}`}},
			WithTimeout(3*time.Second), WithBackoff(0, 0))
		start := time.Now()
		if _, err := c.Do(t.Context(), Cmd("GET", "k")); err != nil || f.count() != 2 {
			t.Errorf("%v after %d attempts, want an answer to the second", err, f.count())
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("the call took %v, want 3s", took)
		}
		c, _ = newFake(t, []answer{{hook: untilDone, err: os.ErrDeadlineExceeded}}, WithTimeout(3*time.Second))
		_, err := c.Do(t.Context(), Cmd("INCR", "k"))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "WithTimeout") {
			t.Errorf("got %v, want one that names WithTimeout", err)
		}
		for own, want := range map[time.Duration]time.Duration{time.Second: 3 * time.Second, time.Minute: time.Minute} {
			start := time.Now()
			_, _ = c.Do(t.Context(), Cmd("INCR", "k").Timeout(own))
			if took := time.Since(start); took != want {
				t.Errorf("an attempt of a command with a limit of %v took %v, want %v", own, took, want)
			}
		}
	})
}

// early is a context whose deadline comes before its end.
type early struct{ context.Context }

func (early) Deadline() (time.Time, bool) { return time.Now(), true }

// The network's timer for a deadline may go off before that of the context, whose
// cause is the error. It is not waited for for long.
func TestADeadlineThatTheNetworkSeesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left, leave := context.WithCancelCause(t.Context())
		time.AfterFunc(maxLate/2, func() { leave(io.EOF) })
		for ctx, want := range map[context.Context]error{left: io.EOF, t.Context(): context.DeadlineExceeded} {
			c, _ := newFake(t, []answer{{err: os.ErrDeadlineExceeded}})
			if _, err := c.Do(early{ctx}, Cmd("INCR", "k")); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
	})
}

func TestNoTimeout(t *testing.T) {
	c, _ := newFake(t, []answer{{body: `{"result":1}`, hook: func(ctx context.Context) {
		if d, ok := ctx.Deadline(); ok {
			t.Errorf("a deadline: %v", d)
		}
	}}}, WithTimeout(0))
	if _, err := c.Do(context.Background(), Cmd("GET", "k").Timeout(time.Minute)); err != nil {
		t.Error(err)
	}
}

func TestSyncTokenIsSentOn(t *testing.T) {
	c, f := newFake(t, []answer{
		{body: `{"result":1}`, syncToken: "one"},
		{body: `{"result":1}`},
		{status: 400, body: `{"error":"ERR"}`, syncToken: "two"},
		{body: `[{"result":1}]`, syncToken: "three"},
		{body: `{"result":1}`},
	})
	for i, want := range []string{"", "one", "one", "two", "three"} {
		var err error
		if i == 3 {
			_, err = c.Pipeline(t.Context(), Cmd("GET", "k"))
		} else {
			_, err = c.Do(t.Context(), Cmd("GET", "k"))
		}
		if server := new(Error); err != nil && !errors.As(err, &server) {
			t.Fatal(err)
		}
		if got, there := f.last("Upstash-Sync-Token"); got != want || !there {
			t.Errorf("request %d: sent %q (%v), want %q", i, got, there, want)
		}
	}
}

func TestWithoutSyncToken(t *testing.T) {
	c, f := newFake(t, []answer{{body: `{"result":1}`, syncToken: "one"}}, WithoutSyncToken())
	for range 2 {
		if _, err := c.Do(t.Context(), Cmd("SET", "k", "v")); err != nil {
			t.Fatal(err)
		}
		if got, there := f.last("Upstash-Sync-Token"); there {
			t.Errorf("sent %q", got)
		}
	}
}

// TestSyncTokenOfALateRead: if a read was sent before a write finished, it must
// not bring back the state before the write.
func TestSyncTokenOfALateRead(t *testing.T) {
	var tokens syncTokens
	_, before := tokens.load()
	for _, step := range []struct {
		token, sent string
		late, read  bool // sent before any answer; a read
		want        string
	}{
		{"after a write beside it", "", true, false, "after a write beside it"},
		{"after the write", "", true, false, "after the write"},
		{"before the write", "", true, true, "after the write"},
		{"newer", "after the write", false, true, "newer"}, // a read that knew the write
		{"", "newer", false, false, "newer"},               // an answer without a token
		{"newest", "newer", false, true, "newest"},
	} {
		_, mark := tokens.load()
		if step.want == "newest" { // it was sent beside one that brings nothing new
			tokens.store("newer", "newer", mark, true)
		}
		if step.late {
			mark = before
		}
		tokens.store(step.token, step.sent, mark, step.read)
		if got, _ := tokens.load(); got != step.want {
			t.Errorf("after %q: %q is kept, want %q", step.token, got, step.want)
		}
	}
}

// A call with the token of its operation may get an answer that is older than the
// client's. That of a look, although its command may write, is not kept either.
func TestSyncTokenOfAnOperation(t *testing.T) {
	c, f := newFake(t, []answer{
		{body: `{"result":1}`, syncToken: "one"},
		{body: `{"result":1}`, syncToken: "two"},
		{body: `{"result":1}`, syncToken: "old"},
		{body: `{"result":1}`, syncToken: "looked"},
		{body: `{"result":1}`, syncToken: "\x00"},
		{body: `{"result":1}`},
	})
	var o synced.Operation
	operation, other := synced.With(t.Context(), &o), synced.With(t.Context(), new(synced.Operation))
	for i, step := range []struct {
		ctx        context.Context
		name, sent string
	}{
		{operation, "GET", ""},
		{t.Context(), "SET", "one"},
		{operation, "GET", "one"},
		{synced.Looking(t.Context()), "EVAL", "two"},
		{other, "GET", "two"},
		{other, "GET", "two"},
	} {
		if _, err := c.Do(step.ctx, Cmd(step.name, "k", "0")); err != nil {
			t.Fatal(err)
		}
		if got, _ := f.last("Upstash-Sync-Token"); got != step.sent {
			t.Errorf("request %d: sent %q, want %q", i, got, step.sent)
		}
		o.Fix()
	}
}

// If a token cannot be sent back, it would make every later call fail.
func TestSyncTokenOfStrangeShape(t *testing.T) {
	var tokens syncTokens
	tokens.store("good", "", 0, false)
	for _, bad := range []string{"", "\x00", "a\r\nb", "\x7f", "\u00e9", strings.Repeat("x", maxSyncToken+1)} {
		sent, mark := tokens.load()
		tokens.store(bad, sent, mark, false)
		if got, _ := tokens.load(); got != "good" {
			t.Fatalf("kept %.20q", got)
		}
	}
}

// The server counts writes. Its answer and its token are the count.
func TestSyncTokenConcurrently(t *testing.T) {
	var mu sync.Mutex
	writes := 0
	c := clientOver(t, transportFunc(func(req *Request, resp *Response) error {
		mu.Lock()
		defer mu.Unlock()
		if string(req.Body) == `["INCR","k"]` {
			writes++
		}
		resp.SetHeader("Upstash-Sync-Token", fmt.Sprint(writes))
		resp.Body = fmt.Appendf(nil, `{"result":%d}`, writes)
		return nil
	}))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 100 {
				name := "INCR"
				if i%2 == 0 {
					name = "GET"
				}
				if _, err := c.Do(t.Context(), Cmd(name, "k")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	// Without other callers, each write's own token is sent next.
	r, err := c.Do(t.Context(), Cmd("INCR", "k"))
	if err != nil {
		t.Fatal(err)
	}
	n, _ := r.Int64()
	if got, _ := c.tokens.load(); got != fmt.Sprint(n) || n != 8*50+1 {
		t.Errorf("token %q after write %d", got, n)
	}
}

// closable is a transport that can be closed.
type closable struct {
	fakeTransport
	closed bool
}

func (c *closable) Close() error {
	c.closed = true
	return nil
}

// Who made a transport closes it.
func TestCloseLeavesACallersTransport(t *testing.T) {
	own := new(closable)
	if err := clientOver(t, own).Close(); err != nil || own.closed {
		t.Errorf("closed: %t, %v, want neither", own.closed, err)
	}
}
