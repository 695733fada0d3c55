package upstash

import (
	"context"
	"math"
	"syscall/js"
	"time"
)

// withTimeout is context.WithTimeout by a timer of the host's, which cancel
// clears. One of Go's stays set in the host when it is stopped: its callback
// into a program that has ended is an uncaught error there, of which Node dies.
// A host that has no timers keeps no time.
func withTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	deadline := time.Now().Add(d)
	if earlier, ok := parent.Deadline(); ok && !earlier.After(deadline) {
		return ctx, cancel
	}
	if !hostHas("setTimeout") || !hostHas("clearTimeout") {
		return ctx, cancel
	}
	t := &timedContext{Context: ctx, deadline: deadline}
	over := js.FuncOf(func(js.Value, []js.Value) any {
		t.over = ctx.Err() == nil
		cancel()
		return nil
	})
	// A host takes milliseconds, and more than these for none.
	millis := min((d+time.Millisecond-1)/time.Millisecond, math.MaxInt32)
	timer := js.Global().Call("setTimeout", over, int(millis))
	return t, func() {
		js.Global().Call("clearTimeout", timer)
		over.Release()
		cancel()
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

// hostHas reports whether the host has a global function of this name.
func hostHas(name string) bool { return get(js.Global(), name).Type() == js.TypeFunction }
