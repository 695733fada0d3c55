package upstash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"
)

// claimingError is a foreign error that says yes to everything.
type claimingError struct{}

func (claimingError) Error() string             { return "of another package" }
func (claimingError) SafeToRetry() bool         { return true }
func (claimingError) RetryAfter() time.Duration { return time.Hour }
func (claimingError) Is(error) bool             { return true }
func (claimingError) As(target any) bool {
	switch t := target.(type) {
	case **Error:
		*t = &Error{StatusCode: 429, RetryAfter: time.Hour, outcome: outcomeRefused}
	case **CallError:
		*t = &CallError{outcome: outcomeNotSent, retryAfter: time.Hour}
	case **notSentError:
		*t = &notSentError{os.ErrNotExist}
	default:
		return false
	}
	return true
}

// othersErrors are errors of another call. Each says that its own command did
// not run.
func othersErrors() []error {
	refused := &Error{
		StatusCode: 429, Message: "ERR max", Command: "GET", RetryAfter: time.Hour,
		outcome: outcomeRefused,
	}
	all := []error{
		refused, &Error{StatusCode: 400, Message: "ERR", Command: "GET"},
		&CallError{Command: "GET", Attempts: 1, Err: os.ErrNotExist, outcome: outcomeNotSent},
		&CallError{Command: "GET", Attempts: 1, Err: refused, outcome: outcomeRefused, retryAfter: time.Hour},
		&CallError{Command: "GET", Attempts: 1, Err: os.ErrNotExist, outcome: outcomeRead},
		claimingError{},
		ErrNoTransport, ErrResponseTooLarge, ErrBadResponse, ErrReadOnly, ErrUncertain, ErrNil,
		ErrArgument, ErrClosed, ErrUnauthorized, ErrNoPermission, ErrRateLimited, ErrQuota,
		ErrRequestTooLarge, ErrRecordTooLarge, ErrOutOfMemory, ErrAborted,
	}
	for _, err := range all[:len(all):len(all)] {
		all = append(all, fmt.Errorf("app: %w", err), errors.Join(context.Canceled, err))
	}
	return append(all, fmt.Errorf("a RoundTripper: %w", NotSent(os.ErrNotExist)))
}

// TestAnotherCallsErrorDecidesNothing: if a command's answer was lost, it may
// have run, whatever errors of other calls turn up on the way.
func TestAnotherCallsErrorDecidesNothing(t *testing.T) {
	for i, other := range othersErrors() {
		for _, tt := range []struct {
			way       string
			returned  error  // by the transport
			cancelled string // by whom, with the other error for a cause; "" for nobody
		}{
			{"the cause of the context", os.ErrDeadlineExceeded, "transport"},
			{"the cause, which the transport returns", other, "transport"},
			{"returned by the transport", other, ""},
			{"the cause, after the attempt", dropped, "observer"},
			{"the cause, in the pause", dropped, "timer"},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			lost := answer{err: tt.returned}
			if tt.cancelled == "transport" {
				lost.hook = func(context.Context) { cancel(other) }
			}
			mayHaveRun := 0
			c, _ := newFake(t, []answer{lost}, WithBackoff(time.Hour, time.Hour), observing(func(e Event) {
				mayHaveRun += e.MayHaveRun
				switch {
				case tt.cancelled == "observer":
					cancel(other)
				case tt.cancelled == "timer" && e.Attempt == 1:
					time.AfterFunc(0, func() { cancel(other) })
				}
			}))
			cmd := Cmd("INCR", "k").Repeatable(tt.cancelled == "timer") // so that there is a pause
			_, err := c.Do(ctx, cmd)
			call, ok := err.(*CallError)
			if !ok || SafeToRetry(err) || RetryAfter(err) != 0 || mayHaveRun != 1 || call.outcome != outcomeUnknown {
				t.Errorf("%s, error %d (%v): got %T %v; SafeToRetry %v, RetryAfter %v, %d may have run",
					tt.way, i, other, err, err, SafeToRetry(err), RetryAfter(err), mayHaveRun)
			}
			if tt.cancelled == "transport" && !errors.Is(err, other) && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: the cause is not visible in %v", tt.way, err)
			}
			cancel(nil)
		}
	}
}
