// Package lots draws the random numbers of package bloom, so that a simulation can
// depend on its seed alone and a recording can note what was drawn.
package lots

import (
	"context"
	"math/rand/v2"
)

type key struct{}

// With returns a context under which [Lot] draws by draw.
func With(ctx context.Context, draw func() float64) context.Context {
	return context.WithValue(ctx, key{}, draw)
}

// From returns the function of [With], or nil.
func From(ctx context.Context) (draw func() float64) {
	draw, _ = ctx.Value(key{}).(func() float64)
	return draw
}

// Lot draws a number from 0 up to 1: a write looks at the filter's fill by chance.
func Lot(ctx context.Context) float64 {
	if draw, ok := ctx.Value(key{}).(func() float64); ok {
		return draw()
	}
	return Float64()
}

// Uint64 draws birth numbers and the names of scratch keys, and Float64 draws for
// [Lot]. The recordings of package upstashtest replace both.
var (
	Uint64  = rand.Uint64
	Float64 = rand.Float64
)
