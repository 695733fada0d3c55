package transporttest

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/internal/dialctx"
	"github.com/upbloom/upbloom/upstash"
)

// lateContext has a deadline, and ends later: its timer is behind that of the
// network, which counts to the same deadline by itself.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// hangs is a dial that ends at the deadline of its context, as a net.Dialer's
// does. It does not wait for the end of the context.
func hangs(ctx context.Context, _, _ string) (net.Conn, error) {
	deadline, _ := ctx.Deadline()
	time.Sleep(time.Until(deadline))
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
}

const anywhere = "https://127.0.0.1:1" // for dials of dialctx

// testDialHangs: if the deadline of the caller's context ended a dial, the error
// says so, and has the context's cause. WithTimeout is not to blame. It does not
// matter which timer was first, and by how much.
func (s suite) testDialHangs(t *testing.T) {
	cause := errors.New("the handler's time is over")
	for _, timeout := range []time.Duration{0, 10 * time.Second, time.Minute} {
		for _, late := range []time.Duration{time.Nanosecond, time.Millisecond, time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				c := limited(t, s.newTransport(t, anywhere), anywhere, timeout)
				start := time.Now()
				ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond+late, cause)
				defer cancel()
				ctx = dialctx.With(lateContext{ctx, start.Add(50 * time.Millisecond)}, hangs)
				_, err := c.Do(ctx, upstash.Cmd("INCR", "k"))
				if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "WithTimeout") ||
					strings.Contains(err.Error(), "?") || !upstash.SafeToRetry(err) {
					t.Errorf("WithTimeout(%v), %v late: got %v, want the context's end", timeout, late, err)
				}
				inTime := late < time.Second
				if errors.Is(err, cause) != inTime {
					t.Errorf("WithTimeout(%v), %v late: got %v; want the cause: %v", timeout, late, err, inTime)
				}
				if took := time.Since(start); took > 2*time.Second {
					t.Errorf("the call took %v, for a deadline after 50ms", took)
				}
				time.Sleep(time.Minute) // the dial may end a moment later
			})
		}
	}
}

// testDialHangsUntilTheLimit: WithTimeout ended the dial, whichever timer was
// first. On a virtual clock both go off in one instant, in any order.
func (s suite) testDialHangsUntilTheLimit(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			c := limited(t, s.newTransport(t, anywhere), anywhere, time.Second)
			_, err := c.Do(dialctx.With(t.Context(), hangs), upstash.Cmd("INCR", "k"))
			if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "?") ||
				!strings.Contains(err.Error(), "no answer within 1s (WithTimeout)") || !upstash.SafeToRetry(err) {
				t.Errorf("got %v, want one that names WithTimeout", err)
			}
			time.Sleep(time.Minute) // as above
		})
	}
}
