// Package lots gives package bloom the random numbers that decide when it looks
// at a filter's fill. It is for tests whose runs depend on a seed alone.
package lots

import "context"

type key struct{}

// With returns a context under which draw draws the lots: numbers from 0 up to
// 1.
func With(ctx context.Context, draw func() float64) context.Context {
	return context.WithValue(ctx, key{}, draw)
}

// From returns the function of With in ctx, or nil.
func From(ctx context.Context) (draw func() float64) {
	draw, _ = ctx.Value(key{}).(func() float64)
	return draw
}
