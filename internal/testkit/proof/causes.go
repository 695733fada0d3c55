package proof

import (
	"context"
	"errors"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// causes are errors of other calls. An errgroup would end its members' contexts
// with them. They say nothing about the call they end.
var causes = makeCauses()

func makeCauses() []error {
	// These are errors of a client that never sent anything.
	c, err := upstash.New("http://127.0.0.1:1", "no-token", upstash.WithReadOnly())
	if err != nil {
		panic(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, notSent := c.Do(ended, upstash.Cmd("PING"))
	_, refused := c.Do(context.Background(), upstash.Cmd("SET", "key", "value"))
	_ = c.Close()
	return []error{
		notSent, refused,
		foreignError{},
		bloom.ErrNotFound, bloom.ErrUncertain, bloom.ErrRecreated,
		&upstash.Error{StatusCode: 429, Message: "ERR max requests limit exceeded", Command: "GET"},
		&upstash.Error{StatusCode: 400, Message: "ERR no such command", Command: "GET"},
		upstash.NotSent(errors.New("no connection")),
	}
}

// foreignError has the SafeToRetry method of this module's errors.
type foreignError struct{}

func (foreignError) Error() string             { return "another call did not run" }
func (foreignError) SafeToRetry() bool         { return true }
func (foreignError) RetryAfter() time.Duration { return 0 }

// within returns the context of a call, and the cause it may end with.
func (c Call) within(ctx context.Context) (_ context.Context, stop func(), cause error) {
	if c.Cause == 0 {
		return ctx, func() {}, nil
	}
	cause = causes[c.Cause-1]
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(c.CauseAfter, func() { cancel(cause) })
	return ctx, func() { timer.Stop(); cancel(nil) }, cause
}
