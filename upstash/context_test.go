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

func TestContextErrorsStayVisible(t *testing.T) {
	cause := errors.New("the user left")
	synctest.Test(t, func(t *testing.T) {
		for name, tt := range map[string]struct {
			ctx  func() (context.Context, context.CancelFunc)
			want []error
		}{
			"cancelled": {func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			}, []error{context.Canceled}},
			"deadline": {func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(t.Context(), time.Second)
			}, []error{context.DeadlineExceeded}},
			"cause": {func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(cause) })
				return ctx, func() { cancel(nil) }
			}, []error{context.Canceled, cause}},
		} {
			ctx, cancel := tt.ctx()
			// A transport may return any error once the context has ended.
			network := os.ErrDeadlineExceeded
			if name == "cause" {
				network = cause
			}
			c, f := newFake(t, []answer{{hook: untilDone, err: network}})
			_, during := c.Do(ctx, Cmd("INCR", "k"))
			_, before := c.Do(ctx, Cmd("INCR", "k"))
			cancel()
			for _, want := range tt.want {
				if !errors.Is(during, want) || !errors.Is(before, want) {
					t.Errorf("%s: got %v and %v, want %v", name, during, before, want)
				}
			}
			if SafeToRetry(during) || !SafeToRetry(before) {
				t.Errorf("%s: SafeToRetry is %v during, %v before, want false and true",
					name, SafeToRetry(during), SafeToRetry(before))
			}
			if f.count() != 1 {
				t.Errorf("%s: %d requests, want 1", name, f.count())
			}
		}
	})
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
