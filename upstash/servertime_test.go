package upstash

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A testClock has the clocks of a process. A test moves them.
type testClock struct {
	mu      sync.Mutex
	wall    time.Time
	elapsed time.Duration
}

func (c *testClock) pass(wall, elapsed time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.elapsed = c.wall.Add(wall), c.elapsed+elapsed
}

func (c *testClock) option() Option {
	return withClock(
		func() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.wall },
		func() time.Duration { c.mu.Lock(); defer c.mu.Unlock(); return c.elapsed },
	)
}

const serverSeconds = 1_700_000_000

func timeAnswer(seconds int64) answer {
	return answer{body: fmt.Sprintf(`{"result":["%d","0"]}`, seconds)}
}

func TestServerTime(t *testing.T) {
	// The process's clock is years behind.
	clock := &testClock{wall: time.Unix(1000, 0)}
	c, f := newFake(t, []answer{timeAnswer(serverSeconds), timeAnswer(serverSeconds + 5000)}, clock.option())
	if _, ok := c.knownServerTime(); ok {
		t.Fatal("the time is known before it was learned")
	}
	check := func(what string, want int64, requests int) {
		t.Helper()
		got, err := c.ServerTime(t.Context())
		if err != nil || got.Unix() != want || len(f.requests) != requests {
			t.Errorf("%s: %d, %v after %d requests, want %d after %d",
				what, got.Unix(), err, len(f.requests), want, requests)
		}
	}
	check("the first", serverSeconds, 1)
	clock.pass(9*time.Minute, 9*time.Minute)
	check("by the monotonic clock", serverSeconds+540, 1)
	clock.pass(500*time.Millisecond, 0)
	check("a small step of the wall clock", serverSeconds+540, 1)
	clock.pass(time.Minute, time.Second) // frozen: the monotonic clock stood still
	check("after a thaw", serverSeconds+5000, 2)
	clock.pass(11*time.Minute, 11*time.Minute)
	check("after ten minutes", serverSeconds+5000, 3)
	clock.pass(-time.Hour, 0)
	check("after the wall clock was set back", serverSeconds+5000, 4)
}

// The time in a slow answer may be stale.
func TestServerTimeOfASlowAnswer(t *testing.T) {
	clock := &testClock{wall: time.Unix(1000, 0)}
	slow := timeAnswer(serverSeconds)
	slow.hook = func(context.Context) { clock.pass(3*time.Second, 3*time.Second) }
	c, _ := newFake(t, []answer{slow, slow, timeAnswer(serverSeconds + 7)}, clock.option())
	if got, err := c.ServerTime(t.Context()); err != nil || got.Unix() != serverSeconds+7 {
		t.Errorf("got %v, %v", got, err)
	}
	c, f := newFake(t, []answer{slow}, clock.option())
	var call *CallError
	got, err := c.ServerTime(t.Context())
	if !errors.As(err, &call) || !SafeToRetry(err) || len(f.requests) != maxTimeTries {
		t.Errorf("got %v, %v after %d requests", got, err, len(f.requests))
	}
}

// It may also be stale if the process was frozen meanwhile, and its monotonic
// clock with it.
func TestServerTimeOfAFrozenProcess(t *testing.T) {
	clock := &testClock{wall: time.Unix(1000, 0)}
	frozen := timeAnswer(serverSeconds)
	frozen.hook = func(context.Context) { clock.pass(time.Hour, 0) }
	c, _ := newFake(t, []answer{frozen, timeAnswer(serverSeconds + 3600)}, clock.option())
	if got, err := c.ServerTime(t.Context()); err != nil || got.Unix() != serverSeconds+3600 {
		t.Errorf("got %v, %v", got, err)
	}
}

// Once its clocks have run apart the process knows the time no more, even if the
// wall clock is then set back by as much as the other stood: both are wrong.
func TestServerTimeOfClocksThatAgreeAgain(t *testing.T) {
	clock := &testClock{wall: time.Unix(1000, 0)}
	c, _ := newFake(t, []answer{timeAnswer(serverSeconds), {err: dropped}, timeAnswer(serverSeconds + 43)}, clock.option(), WithRetry(0))
	if _, err := c.ServerTime(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.pass(43*time.Second, 0)
	if got, err := c.ServerTime(t.Context()); err == nil {
		t.Errorf("got %v without an answer", got)
	}
	clock.pass(-43*time.Second, 0)
	if got, err := c.ServerTime(t.Context()); err != nil || got.Unix() != serverSeconds+43 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestServerTimeOfABadAnswer(t *testing.T) {
	for _, body := range []string{
		`{"result":null}`, `{"result":["1"]}`, `{"result":["1","2","3"]}`, `{"result":["x","0"]}`,
		`{"result":["-1","0"]}`, `{"result":[null,"0"]}`, `{"result":"now"}`,
	} {
		c, _ := newFake(t, always(body))
		got, err := c.ServerTime(t.Context())
		var call *CallError
		if !errors.Is(err, ErrBadResponse) || !errors.As(err, &call) || !SafeToRetry(err) {
			t.Errorf("%s: %v, %v, want ErrBadResponse, safe to retry", body, got, err)
		}
	}
}

// Simultaneous callers share one TIME. A caller whose context ends does not
// wait for it.
func TestServerTimeIsLearnedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		held := timeAnswer(serverSeconds)
		held.hook = func(context.Context) { <-release }
		c, f := newFake(t, []answer{held})
		var wait sync.WaitGroup
		for range 20 {
			wait.Go(func() {
				if got, err := c.ServerTime(t.Context()); err != nil || got.Unix() != serverSeconds {
					t.Errorf("got %v, %v", got, err)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := c.ServerTime(ctx); !errors.Is(err, context.DeadlineExceeded) || !SafeToRetry(err) {
			t.Errorf("a caller without time: %v, want DeadlineExceeded, safe to retry", err)
		}
		left, leave := context.WithCancelCause(t.Context())
		leave(errors.New("the user left"))
		if _, err := c.ServerTime(left); !errors.Is(err, context.Canceled) || !SafeToRetry(err) {
			t.Errorf("a caller that left: %v, want Canceled, safe to retry", err)
		}
		close(release)
		wait.Wait()
		if len(f.requests) != 1 {
			t.Errorf("%d requests, want 1", len(f.requests))
		}
	})
}
