package upstash

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestRetryBudget: a thousand callers of a dead server send few more requests
// than they make calls. When the server is back, it gets retries again.
func TestRetryBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t, []answer{{status: 503}}, WithBackoff(defaultBackoffBase, defaultBackoffCap))
		const callers = 1000
		everyone := func(calls int) (requests int) {
			before := f.count()
			var group sync.WaitGroup
			for range callers {
				group.Go(func() {
					for range calls {
						_, _ = c.Do(t.Context(), Cmd("GET", "k"))
					}
				})
			}
			group.Wait()
			return f.count() - before
		}
		if n := everyone(1); n != callers+defaultRetryBudget {
			t.Errorf("%d requests of %d calls that spend the budget, want %d more",
				n, callers, defaultRetryBudget)
		}
		if n := everyone(5); n > 5*callers*12/10 {
			t.Errorf("%d requests of %d calls once the budget is spent, want 1.2 each at most",
				n, 5*callers)
		}
		setScript := func(a answer) {
			f.mu.Lock()
			f.script = append(make([]answer, len(f.requests)), a)
			f.script[len(f.requests)-1] = a
			f.mu.Unlock()
		}
		setScript(answer{body: `{"result":1}`})
		everyone(2)
		setScript(answer{status: 503})
		if n := everyone(1); n != callers+defaultRetryBudget {
			t.Errorf("%d requests of %d calls after 2,000 successes, want %d more",
				n, callers, defaultRetryBudget)
		}
	})
}

// A tenth of a token is not enough for a retry. With 0 there is no bound.
func TestRetryBudgetOfAnySize(t *testing.T) {
	for budget, want := range map[int]int{1: 10 + 1, 7: 10 + 7, 0: 10 * (1 + defaultRetries)} {
		c, f := newFake(t, []answer{{status: 503}}, WithRetryBudget(budget))
		for range 10 {
			_, _ = c.Do(t.Context(), Cmd("GET", "k"))
		}
		if f.count() != want {
			t.Errorf("WithRetryBudget(%d): %d requests, want %d", budget, f.count(), want)
		}
	}
	if _, err := New(testURL, testToken, WithRetryBudget(-1)); err == nil {
		t.Error("WithRetryBudget(-1): no error")
	}
}

// TestRetryAfterIsSpread: callers who are sent away together do not return
// together, and none returns too early.
func TestRetryAfterIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 200
		start := time.Now()
		var mu sync.Mutex
		var back []time.Duration
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				c, _ := newFake(t, []answer{{status: 429, retryAfter: "1"}, {body: `{"result":1}`}},
					WithBackoff(defaultBackoffBase, defaultBackoffCap))
				_, err := c.Do(t.Context(), Cmd("INCR", "k"))
				mu.Lock()
				defer mu.Unlock()
				if back = append(back, time.Since(start)); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		var in [10]int // tenths of the second after the pause; 20 callers are expected in each
		for _, d := range back {
			if d < time.Second || d >= 2*time.Second {
				t.Fatalf("one came back after %v, want 1 s to 2 s", d)
			}
			in[(d-time.Second)/(100*time.Millisecond)]++
		}
		for i, n := range in {
			if n > 50 { // seven standard deviations
				t.Errorf("%d of %d came back in the %d. tenth of a second, want 50 at most: %v",
					n, callers, i+1, in)
			}
		}
	})
}
