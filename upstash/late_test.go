//go:build !wasm

package upstash

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
)

// lateContext has a deadline, and ends later: its timer is behind that of the
// network, which counts to the same deadline by itself.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// timedOut is the error of a dial at the deadline of its context.
var timedOut = &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}

// hangs is a dial that ends at the deadline of its context, as a net.Dialer's
// does. It does not wait for the end of the context.
func hangs(ctx context.Context, _, _ string) (net.Conn, error) {
	deadline, _ := ctx.Deadline()
	time.Sleep(time.Until(deadline))
	return nil, timedOut
}

// hanging is a transport whose dial hangs.
type hanging struct{}

func (hanging) RoundTrip(ctx context.Context, _ *Request, _ *Response) error {
	_, err := hangs(ctx, "", "")
	return NotSent(err)
}

// TestADialHangsUntilTheDeadline: if the deadline of the caller's context ended
// a dial, the error says so, and has the context's cause. WithTimeout is not to
// blame. It does not matter which timer was first, and by how much.
func TestADialHangsUntilTheDeadline(t *testing.T) {
	cause := errors.New("the handler's time is over")
	for _, timeout := range []time.Duration{0, 10 * time.Second, time.Minute} {
		for name, own := range map[string]Transport{"default": nil, "own": hanging{}} {
			for _, late := range []time.Duration{time.Nanosecond, time.Millisecond, time.Hour} {
				synctest.Test(t, func(t *testing.T) {
					c, err := New("https://127.0.0.1:1", testToken, WithTransport(own), WithTimeout(timeout))
					if err != nil {
						t.Fatal(err)
					}
					start := time.Now()
					ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond+late, cause)
					defer cancel()
					ctx = dialctx.With(lateContext{ctx, start.Add(50 * time.Millisecond)}, hangs)
					_, err = c.Do(ctx, Cmd("INCR", "k"))
					if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "WithTimeout") ||
						strings.Contains(err.Error(), "?") || !SafeToRetry(err) {
						t.Errorf("WithTimeout(%v), %s transport, %v late: got %v, want the context's end",
							timeout, name, late, err)
					}
					inTime := late < time.Second
					if errors.Is(err, cause) != inTime {
						t.Errorf("WithTimeout(%v), %s transport, %v late: got %v; want the cause: %v",
							timeout, name, late, err, inTime)
					}
					if took := time.Since(start); took > 2*time.Second {
						t.Errorf("the call took %v, for a deadline after 50ms", took)
					}
				})
			}
		}
	}
}

// TestADialHangsUntilTheLimit: WithTimeout ended the dial, whichever timer was
// first. On a virtual clock both go off in one instant, in any order.
func TestADialHangsUntilTheLimit(t *testing.T) {
	for name, own := range map[string]Transport{"default": nil, "own": hanging{}} {
		for range 20 {
			synctest.Test(t, func(t *testing.T) {
				c, err := New("https://127.0.0.1:1", testToken, WithTransport(own), WithTimeout(time.Second),
					WithRetry(0))
				if err != nil {
					t.Fatal(err)
				}
				_, err = c.Do(dialctx.With(t.Context(), hangs), Cmd("INCR", "k"))
				if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "?") ||
					!strings.Contains(err.Error(), "no answer within 1s (WithTimeout)") || !SafeToRetry(err) {
					t.Errorf("%s transport: got %v, want one that names WithTimeout", name, err)
				}
			})
		}
	}
}
