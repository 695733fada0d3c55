package bloom

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/upbloom/upbloom/internal/woken"
)

// A pool runs functions on goroutines, and no more than its size at once.
type pool struct {
	slots   chan struct{}
	begun   int
	running sync.WaitGroup
}

func newPool(size int) *pool { return &pool{slots: make(chan struct{}, size)} }

// run waits until a goroutine is free, and starts f on it. If over returns true
// by then, run does not start f and returns false.
func (p *pool) run(ctx context.Context, over func() bool, f func(context.Context)) bool {
	p.slots <- struct{}{}
	if over() {
		<-p.slots
		return false
	}
	p.begun++
	ctx = woken.Among(ctx, p.begun)
	p.running.Go(func() {
		defer func() { <-p.slots }()
		woken.Up(ctx)
		f(ctx)
	})
	return true
}

// wait returns when all functions have.
func (p *pool) wait() { p.running.Wait() }

// eachSpan cuts the range from begin to end into spans of size, the last one
// perhaps shorter, and calls do for each, several at once. After the first
// error it begins no more spans, and returns that error. If ctx ends, the error
// begins with what was interrupted.
func eachSpan(ctx context.Context, what string, parallel, begin, end, size int,
	do func(ctx context.Context, from, to int) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	spans := newPool(parallel)
	over := func() bool { return ctx.Err() != nil }
	for from := begin; from < end; from += size {
		if !spans.run(ctx, over, func(ctx context.Context) {
			if err := do(ctx, from, min(from+size, end)); err != nil {
				cancel(&spanError{err})
			}
		}) {
			break
		}
	}
	spans.wait()
	if cause, ok := context.Cause(ctx).(*spanError); ok {
		return cause.err
	}
	if err := ended(ctx); err != nil {
		return fmt.Errorf("bloom: %s: %w", what, err)
	}
	return nil
}

// ended returns the error of a context and its cause, as package upstash does,
// or nil if it has not ended.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// spanError tells the error of a span from one of the caller's context.
type spanError struct{ err error }

func (e *spanError) Error() string { return e.err.Error() }
