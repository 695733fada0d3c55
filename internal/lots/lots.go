// Package lots draws the random numbers of package bloom, so that a recording can
// note what was drawn.
package lots

import "math/rand/v2"

// Uint64 draws birth numbers and the names of scratch keys. The recordings of
// package upstashtest replace it.
var Uint64 = rand.Uint64
