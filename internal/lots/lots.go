// Package lots is about what package bloom draws at random. A test gives the
// numbers that decide when it looks at a filter's fill, so that a run depends on
// a seed alone. A recording notes the other numbers, which differ from run to
// run.
package lots

import (
	"context"
	"math/rand/v2"
)

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

// Lot draws a number from 0 up to 1, from where the context says, if it does.
func Lot(ctx context.Context) float64 {
	if draw, ok := ctx.Value(key{}).(func() float64); ok {
		return draw()
	}
	return Float64()
}

// Uint64 and Float64 draw for package bloom: birth numbers and names, and lots.
// Package upstashtest puts others in their place when it is initialized.
var (
	Uint64  = rand.Uint64
	Float64 = rand.Float64
)
