//go:build !wasm

package upstash

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestMaxConns has bursts of callers. The open connections never exceed the
// limit, and only the first burst opens any.
func TestMaxConns(t *testing.T) {
	const limit, callers = 5, 50
	var dialled, running, most atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), running.Add(1)))
		time.Sleep(time.Millisecond) // lets calls overlap
		running.Add(-1)
		answerOne(w, r)
	}, func(net.Conn) { dialled.Add(1) })
	c := newClient(t, s.URL, WithRetry(0), WithMaxConns(limit))
	for range 3 {
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				if _, err := c.Do(t.Context(), Cmd("INCR", "k")); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
	if dialled.Load() > limit || most.Load() > limit {
		t.Errorf("%d connections, %d calls at once; want at most %d", dialled.Load(), most.Load(), limit)
	}
}

// TestNoConnectionIsFree: after a wait in vain, the error says what the call
// waited for, and that it did not run.
func TestNoConnectionIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe() // nobody reads at the far end
		// Both clients share a transport, so the second waits for the first
		// one's connection.
		tr := transportOver(t, 1, func() net.Conn { return near })
		first := newClient(t, testURL, WithTransport(tr), WithTimeout(0), WithRetry(0))
		done := make(chan error, 1)
		go func() {
			_, err := first.Do(t.Context(), Cmd("INCR", "k"))
			done <- err
		}()
		synctest.Wait() // until the connection is in use
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, byContext := first.Do(ctx, Cmd("INCR", "k"))
		second := newClient(t, testURL, WithTransport(tr), WithTimeout(time.Second), WithRetry(0))
		_, byTimeout := second.Do(t.Context(), Cmd("INCR", "k"))
		for _, err := range []error{byContext, byTimeout} {
			if !errors.Is(err, context.DeadlineExceeded) || !SafeToRetry(err) ||
				!strings.Contains(err.Error(), "WithMaxConns") {
				t.Errorf("got %v", err)
			}
		}
		_ = far.Close()
		if err := <-done; err == nil {
			t.Error("the call over a connection that broke returned no error")
		}
	})
}

// TestAnObserverHoldsNoConnection: while an observer runs, the only connection
// is free for a call, also if the observer never returns to its own call.
func TestAnObserverHoldsNoConnection(t *testing.T) {
	s := serve(t, answerOne, func(net.Conn) {})
	var c *Client
	call := func(ctx context.Context) error {
		_, err := c.Do(ctx, Cmd("INCR", "k"))
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ends := map[string]func() error{
		"calls":              func() error { return call(ctx) },
		"panics":             func() error { panic("observer") },
		"ends its goroutine": func() error { runtime.Goexit(); return nil },
	}
	type label struct{}
	c = newClient(t, s.URL, WithMaxConns(1), WithTimeout(0), WithObserver(func(ctx context.Context, _ Event) {
		if name, ok := ctx.Value(label{}).(string); ok {
			if err := ends[name](); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}))
	for name := range ends {
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			_ = call(context.WithValue(ctx, label{}, name))
		}()
		<-done
		if err := call(ctx); err != nil {
			t.Errorf("after an observer that %s: %v", name, err)
		}
	}
}
