// Package lots draws the random numbers of package bloom, so that a recording can
// note what was drawn.
package lots

import "math/rand/v2"

// Uint64 draws birth numbers and the names of scratch keys. The recordings of
// package upstashtest replace it.
var Uint64 = rand.Uint64

// attempts are the bits of a birth number that say which attempt at a command sent
// it. Only Create leaves them out, by OfCall, to know the filter that an attempt of its
// own made. All others compare whole numbers.
const attempts = 15 << 10

// OfAttempt returns the birth number of the n-th attempt after the first. The
// seventeenth attempt has that of the first again.
func OfAttempt(birth int64, n int) int64 { return birth | int64(n)<<10&attempts }

// OfCall returns the birth number of the first attempt at the same command.
func OfCall(birth int64) int64 { return birth &^ attempts }
