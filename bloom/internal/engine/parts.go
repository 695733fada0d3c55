package engine

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/upstash"
)

// InParts sends commands in one request, or in several, one after the other, if
// upstash.WithMaxRequest asks for it. take gets each reply as it comes, or the
// error of its whole request: then nothing more is sent, and the errors of the
// rest say so. It returns the number of requests.
func InParts(ctx context.Context, c *upstash.Client, cmds []upstash.Command,
	take func(i int, reply upstash.Reply, err error),
) (requests int64) {
	var failed error
	for from := 0; from < len(cmds); {
		to, size := from, len("]")
		for to < len(cmds) && (to == from || size+cmds[to].Size()+len(",") <= door.MaxRequest(c)) {
			size += cmds[to].Size() + len(",") // before the first one it is a bracket
			to++
		}
		replies, err := make([]upstash.Reply, to-from), failed
		if failed == nil {
			requests++
			if got, e := c.Pipeline(ctx, cmds[from:to]...); e == nil {
				replies = got
			} else {
				err, failed = e, fault.Unsent(e)
			}
		}
		for i, reply := range replies {
			take(from+i, reply, err)
		}
		from = to
	}
	return requests
}

// Pipeline is InParts for commands of which none counts if one request fails.
func Pipeline(ctx context.Context, c *upstash.Client, cmds []upstash.Command) (replies []upstash.Reply, err error) {
	InParts(ctx, c, cmds, func(_ int, reply upstash.Reply, failed error) {
		replies = append(replies, reply)
		if err == nil {
			err = failed
		}
	})
	return replies, Explain(err)
}

// A Pool runs functions on goroutines, and no more than its size at once.
type Pool struct {
	slots    chan struct{}
	running  sync.WaitGroup
	panicked atomic.Pointer[any]
	exited   atomic.Bool // a function ended its goroutine, by runtime.Goexit
}

// NewPool makes a pool of a size.
func NewPool(size int) *Pool { return &Pool{slots: make(chan struct{}, size)} }

// Run waits until a goroutine is free, and starts f on it. If over returns true
// by then, or another function has panicked or ended its goroutine, Run does not
// start f and returns false.
func (p *Pool) Run(over func() bool, f func()) bool {
	p.slots <- struct{}{}
	if over() || p.panicked.Load() != nil || p.exited.Load() {
		<-p.slots
		return false
	}
	p.running.Go(func() {
		defer func() { <-p.slots }()
		returned := false
		defer func() {
			if v := recover(); v != nil {
				p.panicked.CompareAndSwap(nil, &v)
			} else if !returned {
				p.exited.Store(true)
			}
		}()
		f()
		returned = true
	})
	return true
}

// Wait returns when all functions have. If one of them panicked, such as a
// callback of the user, Wait panics with the same value: the caller's goroutine
// has the panic, and may recover. If one ended its goroutine, as the FailNow of a
// test does, Wait ends the caller's.
func (p *Pool) Wait() {
	p.running.Wait()
	if v := p.panicked.Load(); v != nil {
		panic(*v)
	}
	if p.exited.Load() {
		runtime.Goexit()
	}
}

// EachSpan cuts the range from begin to end into spans of size, the last one
// perhaps shorter, and calls do for each, several at once. After the first
// error it begins no more spans, and returns that error. If ctx ends, the error
// begins with what was interrupted.
func EachSpan(ctx context.Context, what string, parallel, begin, end, size int,
	do func(ctx context.Context, from, to int) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	spans := NewPool(parallel)
	over := func() bool { return ctx.Err() != nil }
	for from := begin; from < end; from += size {
		if !spans.Run(over, func() {
			if err := do(ctx, from, min(from+size, end)); err != nil {
				cancel(&spanError{err})
			}
		}) {
			break
		}
	}
	spans.Wait()
	if cause, ok := context.Cause(ctx).(*spanError); ok {
		return cause.err
	}
	if err := Ended(ctx); err != nil {
		return fault.Errorf("bloom: %s: %w", what, err)
	}
	return nil
}

// Ended returns the error of a context and its cause, as package upstash does,
// or nil if it has not ended.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fault.Errorf("%w: %w", err, cause)
}

// spanError tells the error of a span from one of the caller's context.
type spanError struct{ err error }

func (e *spanError) Error() string { return e.err.Error() }
