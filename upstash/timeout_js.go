package upstash

import (
	"context"
	"errors"
	"fmt"
	"math"
	"syscall/js"
	"time"
)

// withTimeout is context.WithTimeout with a timer of the host's, which cancel
// clears. A timer of Go's stays set in the host when it is stopped. If it then
// calls back into an ended program, this is an uncaught error and ends Node. If
// the host starts no timer, withTimeout returns an ended context, and its cause
// says why: nothing else could end a wait for it.
func withTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	deadline := time.Now().Add(d)
	if earlier, ok := parent.Deadline(); ok && !earlier.After(deadline) {
		return ctx, func() { cancel(nil) }
	}
	t := &timedContext{Context: ctx, deadline: deadline}
	// A host counts in milliseconds, and takes more than MaxInt32 of them for
	// 0.
	millis := min((d+time.Millisecond-1)/time.Millisecond, math.MaxInt32)
	stop, err := startTimer(int(millis), func() {
		t.over = ctx.Err() == nil
		cancel(context.DeadlineExceeded)
	})
	if err != nil {
		cancel(err)
		return ctx, func() {}
	}
	return t, func() {
		stop()
		cancel(nil)
	}
}

// timedContext is canceled when its time is over. There is one thread on js: no
// field needs a lock.
type timedContext struct {
	context.Context
	deadline time.Time
	over     bool // the time, before anything else ended the context
}

func (t *timedContext) Deadline() (time.Time, bool) { return t.deadline, true }

func (t *timedContext) Err() error {
	if t.over {
		return context.DeadlineExceeded
	}
	return t.Context.Err()
}

// startTimer has the host call f once, unless stop comes first. Without an
// error, stop must be called, even after f was.
func startTimer(millis int, f func()) (stop func(), err error) {
	for _, name := range []string{"setTimeout", "clearTimeout"} {
		if err := hostLacks(name); err != nil {
			return nil, err
		}
	}
	over := js.FuncOf(func(js.Value, []js.Value) any {
		f()
		return nil
	})
	defer catch(func(thrown js.Value) {
		over.Release()
		err = fmt.Errorf("the host's setTimeout failed: %.200s", text(thrown, "message"))
	})
	timer := js.Global().Call("setTimeout", over, millis)
	return func() {
		defer catch(func(js.Value) {}) // f may still be called: over stays
		js.Global().Call("clearTimeout", timer)
		over.Release()
	}, nil
}

// hostLacks returns an error if the host has no global function of this name.
func hostLacks(name string) (err error) {
	defer catch(func(js.Value) { err = errors.New("the host's " + name + " cannot be read") })
	if get(js.Global(), name).Type() != js.TypeFunction {
		return fmt.Errorf("%w (this host has no %s)", ErrNoTransport, name)
	}
	return nil
}
