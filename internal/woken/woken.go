// Package woken is for tests on a virtual clock, where events of one instant
// have no order. A goroutine calls it after another one let it go on, and the
// test makes it wait for an instant of its own.
package woken

import "context"

type key struct{}

type sleeper struct {
	sleep  func(number int)
	number int
}

// With returns a context under which Up calls sleep.
func With(ctx context.Context, sleep func(number int)) context.Context {
	return context.WithValue(ctx, key{}, sleeper{sleep: sleep})
}

// Among returns a context for one of several goroutines that begin at once. The
// function of With gets the number, which is 0 for a caller by himself.
func Among(ctx context.Context, number int) context.Context {
	s, ok := ctx.Value(key{}).(sleeper)
	if !ok {
		return ctx
	}
	return context.WithValue(ctx, key{}, sleeper{s.sleep, number})
}

// Up is called by a goroutine that another one has just let go on, before it
// does anything else. Outside of such tests it does nothing.
func Up(ctx context.Context) {
	if s, ok := ctx.Value(key{}).(sleeper); ok {
		s.sleep(s.number)
	}
}
