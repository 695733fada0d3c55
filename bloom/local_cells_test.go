package bloom

import (
	"math"
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"github.com/upbloom/upbloom/bloom/internal/cells"
)

// The reciprocal never finds too high a quotient. For the first two remainders
// alone it may be one too low. A wrong guess at the branch that corrects it
// costs as much as a word of an item.
func TestReciprocalIsSeldomLow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.Uint64Range(1, maxCells(SchemeBlocked, LayoutHeaded)/wordBits).Draw(t, "words")
		x := rapid.Uint64().Draw(t, "x") * 0x9E3779B97F4A7C15 // rapid likes small numbers
		if rapid.Bool().Draw(t, "edge") {
			x -= x % words
			x += rapid.Uint64Range(0, min(3, words-1)).Draw(t, "rest")
		}
		inverse, shift := reciprocal(words)
		q, _ := bits.Mul64(x, inverse)
		if low := x/words - q>>shift; low > 1 || low == 1 && x%words > 1 {
			t.Fatalf("%d / %d: %d, want %d", x, words, q>>shift, x/words)
		}
	})
}

// wordAt multiplies by a reciprocal. It finds the word and the bits of the
// definition, which divides, even at the ends of both ranges.
func TestWordAtAgreesWithTheDefinition(t *testing.T) {
	edges := []uint64{0, 1, 52, 53, 1 << 32, 1 << 63, math.MaxUint64 - 1, math.MaxUint64}
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.OneOf(
			rapid.Uint64Range(1, maxCells(SchemeBlocked, LayoutHeaded)/wordBits),
			rapid.SampledFrom([]uint64{1, 2, 3, 1 << 20, maxCells(SchemeBlocked, LayoutHeaded) / wordBits}),
		).Draw(t, "words")
		x := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom(edges), rapid.Custom(func(t *rapid.T) uint64 {
			times := rapid.Uint64Range(0, math.MaxUint64/words).Draw(t, "times")
			return words*times - rapid.Uint64Range(0, 1).Draw(t, "less")
		})).Draw(t, "x")
		w, a, b := cells.BlockedBits(x, words)
		inverse, shift := reciprocal(words)
		bit, pair := wordAt(x, words, inverse, shift, sharedPairs())
		if bit != headerBits+wordBits*w || pair != 1<<(63-a)|1<<(63-b) {
			t.Fatalf("bit %d, pair %x, want word %d, bits %d and %d", bit, pair, w, a, b)
		}
	})
}
