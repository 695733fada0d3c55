package engine_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/upstash"
)

// several begins requests of n records at one server, which takes so many bytes.
// Each is about one item.
func several(t *testing.T, n, limit int, adding bool, steps ...step) (reqs []*engine.Request) {
	t.Helper()
	first, s := newRecord(t, steps...)
	c := client(t, s, upstash.WithMaxRequest(limit), upstash.WithRetry(0))
	for i := range n {
		r := &engine.Record{
			Client: c, Key: fmt.Sprint("key ", i+100), Header: header, Items: first.Items, Meaning: first.Meaning,
		}
		if adding {
			q := r.BeginWrite(t.Context(), engine.Options{})
			q.AppendWrite("a")
			reqs = append(reqs, q)
		} else {
			q := r.BeginRead(t.Context(), engine.Options{})
			q.AppendRead("a")
			reqs = append(reqs, q)
		}
	}
	return reqs
}

// replies answers a pipeline of n commands, each with these words.
func replies(n int, words string) step {
	return step{answer: "[" + strings.Repeat(`,{"result":[`+words+`]}`, n)[1:] + "]"}
}

// Of ten writes seven go into the limit, and of thirty look-ups 19, to the byte.
func TestRequestsInParts(t *testing.T) {
	const seen = "null,H,null,1"
	write := several(t, 1, 1<<10, true)[0].Size() + len(",")
	reqs := several(t, 10, 7*write+1, true, replies(7, seen).to("key 106"), replies(3, seen).to(`[["BITFIELD","key 107"`))
	engine.WriteAll(t.Context(), reqs)
	for i, q := range reqs {
		if q.Err != nil || !q.Wrote.Applied || q.Added[0] {
			t.Errorf("write %d: %v, want it seen", i, q.Err)
		}
	}
	look := several(t, 1, 1<<10, false)[0].Size() + len(",")
	reqs = several(t, 30, 20*look, false, replies(19, "H,1").to("key 118"), replies(11, "H,0").to(`[["BITFIELD","key 119"`))
	engine.ReadAll(t.Context(), reqs)
	for i, q := range reqs {
		if q.Err != nil || q.Found[0] != (i < 19) {
			t.Errorf("look-up %d: %v, %v, want %v", i, q.Found, q.Err, i < 19)
		}
	}
}

// After a request that failed nothing more is sent, and what was not says so. What
// the server said of the other request is nothing about its own key.
func TestRequestAfterOneThatFailed(t *testing.T) {
	for _, failure := range []step{lost, {refused: "WRONGTYPE Operation against a key holding the wrong kind of value"}} {
		writes, reads := several(t, 10, 1<<10, true, failure), several(t, 30, 1<<10, false, failure)
		engine.WriteAll(t.Context(), writes)
		engine.ReadAll(t.Context(), reads)
		for _, c := range []struct{ failed, unsent *engine.Request }{{writes[4], writes[5]}, {reads[17], reads[18]}} {
			err := c.unsent.Err
			wantSafe(t, err, true)
			if err == nil || c.unsent.Wrote.Applied || !strings.Contains(err.Error(), "nothing was sent") ||
				engine.IsForeign(err) || c.unsent.Rec.MayWrite() != nil {
				t.Errorf("%v, want that it was not sent, and nothing of its key", err)
			}
			if err := c.failed.Err; err == nil || strings.Contains(err.Error(), "nothing was sent") {
				t.Errorf("%v, want the failed request's own error", err)
			}
		}
		wantSafe(t, writes[4].Err, failure.refused != "")
		server, is := errors.AsType[*upstash.Error](writes[5].Err)
		if is != (failure.refused != "") {
			t.Errorf("%v: the server's error is found: %v", server, is)
		}
	}
}

// What is too long by itself goes alone, and is refused.
func TestCommandLongerThanARequest(t *testing.T) {
	r, s := newRecord(t, step{answer: `[{"result":1}]`, sent: "short"})
	c := client(t, s, upstash.WithMaxRequest(1<<10))
	long := upstash.Cmd("GET", strings.Repeat("a", 1<<10))
	var errs []error
	engine.InParts(t.Context(), c, []upstash.Command{upstash.Cmd("GET", "short"), long, upstash.Cmd("GET", r.Key)},
		func(_ int, _ upstash.Reply, err error) { errs = append(errs, err) })
	if len(errs) != 3 || errs[0] != nil || !errors.Is(errs[1], upstash.ErrRequestTooLarge) || errs[2] == nil {
		t.Errorf("errors %v", errs)
	}
}

// After a function that panicked, or ended its goroutine, no other begins, and
// whoever waits gets the same.
func TestPoolEnds(t *testing.T) {
	for want, f := range map[any]func(){"panic": func() { panic("panic") }, nil: runtime.Goexit} {
		p := engine.NewPool(1)
		never := func() bool { return false }
		if !p.Run(never, f) || p.Run(never, func() {}) {
			t.Errorf("%v: want the first to begin, and not the second", want)
		}
		ended := make(chan any)
		go func() {
			defer func() { ended <- recover() }()
			p.Wait()
			t.Errorf("%v: Wait returned", want)
		}()
		if got := <-ended; got != want {
			t.Errorf("Wait ended with %v, want %v", got, want)
		}
	}
}

// What is over begins nothing.
func TestPoolIsOver(t *testing.T) {
	p := engine.NewPool(1)
	if p.Run(func() bool { return true }, func() { t.Error("it began") }) {
		t.Error("Run says that it began")
	}
	p.Wait()
}
