package transporttest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/internal/dialctx"
	"github.com/upbloom/upbloom/upstash"
)

// vanishing is a server on pipes, whose system has no TCP_USER_TIMEOUT. From
// vanish on, nothing comes over the connections that were open then.
type vanishing struct {
	mu    sync.Mutex
	gone  map[int]bool
	dials int
	slow  map[string]bool // paths or bodies that are never answered
	says  string          // what a silent connection says before
	all   sync.WaitGroup
	ends  []net.Conn
}

func (v *vanishing) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	v.mu.Lock()
	n := v.dials
	v.dials++
	v.ends = append(v.ends, far)
	v.mu.Unlock()
	v.all.Go(func() { v.serve(n, far) })
	return near, nil
}

func (v *vanishing) serve(n int, c net.Conn) {
	serve(c, func(_ *http.Request, body string) bool {
		time.Sleep(time.Millisecond)
		v.mu.Lock()
		answer := withLength(`{"result":1}`)
		if v.gone[n] || v.slow[body] {
			answer = v.says
		}
		v.mu.Unlock()
		return say(c, answer)
	})
}

// vanish cuts all connections that are open, without a word.
func (v *vanishing) vanish() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.gone = make(map[int]bool)
	for n := range v.dials {
		v.gone[n] = true
	}
}

func (v *vanishing) dialled() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.dials
}

// overVanishing runs f with a client that keeps five connections.
func (s suite) overVanishing(t *testing.T, f func(t *testing.T, v *vanishing, get getter), opts ...upstash.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		v := new(vanishing)
		tr := s.newTransport(t, "http://localhost")
		c := clientOf(t, tr, "http://localhost", opts...)
		get := func(ctx context.Context, key string) error {
			_, err := c.Do(dialctx.With(ctx, v.dial), upstash.Cmd("GET", key))
			return err
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { wantAnswer(t, get, "before") })
		}
		all.Wait()
		if v.dialled() != 5 {
			t.Fatalf("%d connections, want 5", v.dialled())
		}
		f(t, v, get)
		closeTransport(tr)
		v.mu.Lock()
		for _, end := range v.ends {
			_ = end.Close()
		}
		v.mu.Unlock()
		v.all.Wait()
	})
}

// getter makes a call.
type getter func(ctx context.Context, key string) error

func wantAnswer(t *testing.T, get getter, when string) {
	t.Helper()
	if err := get(t.Context(), "k"); err != nil {
		t.Errorf("%s: %v", when, err)
	}
}

// testVanished: an attempt that one of them has cost says
// enough of the others. The next one dials.
func (s suite) testVanished(t *testing.T) {
	t.Run("retries", func(t *testing.T) {
		var attempts atomic.Int64
		s.overVanishing(t, func(t *testing.T, v *vanishing, get getter) {
			v.vanish()
			attempts.Store(0)
			wantAnswer(t, get, "with retries")
			if n := attempts.Load(); n != 2 {
				t.Errorf("%d attempts, want 2", n)
			}
			wantAnswer(t, get, "after that")
			if v.dialled() != 6 {
				t.Errorf("%d dials, want 6", v.dialled())
			}
		}, upstash.WithObserver(func(context.Context, upstash.Event) { attempts.Add(1) }))
	})
	t.Run("no retry", func(t *testing.T) {
		s.overVanishing(t, func(t *testing.T, v *vanishing, get getter) {
			v.vanish()
			failed := 0
			for range 12 {
				if err := get(t.Context(), "k"); err != nil {
					failed++
				}
			}
			if failed != 1 {
				t.Errorf("%d of 12 look-ups failed, want 1", failed)
			}
		}, upstash.WithTimeout(time.Second), upstash.WithRetry(0))
	})
	t.Run("a large request", func(t *testing.T) {
		s.overVanishing(t, func(t *testing.T, v *vanishing, get getter) {
			v.vanish()
			if err := get(t.Context(), strings.Repeat("k", 100_000)); err == nil {
				t.Error("an answer over a connection that is gone")
			}
			wantAnswer(t, get, "after a large request")
		}, upstash.WithRetry(0))
	})
}

// testNotVanished: a caller who left, or left little time, and an
// answer that has begun to come, do not cost the idle connections.
func (s suite) testNotVanished(t *testing.T) {
	errLeft := errors.New("left")
	for _, tt := range []struct {
		name  string
		limit time.Duration // of the caller
		leave time.Duration // when the caller cancels
		says  string
		dials int // after the five
	}{
		{"cancelled", 0, 5 * time.Second, "", 0},
		{"a short deadline", 2 * time.Second, 0, "", 0},
		{"a long deadline", 3 * time.Second, 0, "", 1},
		{"its own limit", 0, 0, "", 1},
		{"an answer that stops", 0, 0, "HTTP/1.1 200 OK\r\n", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.overVanishing(t, func(t *testing.T, v *vanishing, get getter) {
				v.mu.Lock()
				v.slow, v.says = map[string]bool{`["GET","slow"]`: true}, tt.says
				v.mu.Unlock()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tt.leave > 0 {
					time.AfterFunc(tt.leave, func() { cancel(errLeft) })
				}
				if tt.limit > 0 {
					var stop context.CancelFunc
					ctx, stop = context.WithTimeout(ctx, tt.limit)
					defer stop()
				}
				if err := get(ctx, "slow"); err == nil {
					t.Error("a slow command has an answer")
				}
				wantAnswer(t, get, "after that")
				if n := v.dialled() - 5; n != tt.dials {
					t.Errorf("%d dials, want %d", n, tt.dials)
				}
			}, upstash.WithRetry(0))
		})
	}
}

// testYoungerStay: a connection that had an answer after the one that
// vanished was last used is alive.
func (s suite) testYoungerStay(t *testing.T) {
	s.overVanishing(t, func(t *testing.T, v *vanishing, get getter) {
		v.mu.Lock()
		v.slow = map[string]bool{`["GET","slow"]`: true}
		v.mu.Unlock()
		var all sync.WaitGroup
		all.Go(func() {
			if err := get(t.Context(), "slow"); err == nil {
				t.Error("a slow command has an answer")
			}
		})
		synctest.Wait()
		wantAnswer(t, get, "meanwhile")
		all.Wait()
		wantAnswer(t, get, "after that")
		if v.dialled() != 5 {
			t.Errorf("%d dials, want 5", v.dialled())
		}
	}, upstash.WithRetry(0))
}

// testHungUpWhileIdle: the server hangs up after each answer, as it does while a
// process is frozen. The next INCR runs once, over another connection.
func (s suite) testHungUpWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int64
		ctx := dialctx.With(t.Context(), func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				defer far.Close()
				readRequest(far)
				ran.Add(1)
				_, _ = io.WriteString(far, withLength(`{"result":1}`))
			}()
			return near, nil
		})
		tr := s.newTransport(t, "http://localhost")
		defer closeTransport(tr)
		c := clientOf(t, tr, "http://localhost", upstash.WithBackoff(0, 0))
		for n := range int64(5) {
			if _, err := c.Do(ctx, upstash.Cmd("INCR", "k")); err != nil || ran.Load() != n+1 {
				t.Errorf("call %d: %v; %d ran", n+1, err, ran.Load())
			}
			synctest.Wait() // until the server has hung up
		}
	})
}
