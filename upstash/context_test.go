package upstash

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

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
	})
}

func TestNoTimeout(t *testing.T) {
	c, _ := newFake(t, []answer{{body: `{"result":1}`, hook: func(ctx context.Context) {
		if d, ok := ctx.Deadline(); ok {
			t.Errorf("a deadline: %v", d)
		}
	}}}, WithTimeout(0))
	if _, err := c.Do(context.Background(), Cmd("GET", "k")); err != nil {
		t.Error(err)
	}
}
