package proof

import (
	"fmt"
	mathbits "math/bits"
)

// If a string has more cells than the model, the model numbers the cells of
// the items, one item after another. Its items share no cells.

// bits is a set of at most MaxBits cells.
type bits [2]uint64

// MaxBits is the largest number of cells of a filter here. A small filter fills
// up in a few calls, and then has false positives.
const MaxBits = 128

// bitsOf returns the positions as a set. It leaves out those from m on.
func bitsOf(positions []uint64, m uint64) (b bits) {
	for _, p := range positions {
		if p < m {
			b.set(p)
		}
	}
	return b
}

func (b *bits) set(at uint64) { b[at/64] |= 1 << (at % 64) }

func (b bits) with(c bits) bits { return bits{b[0] | c[0], b[1] | c[1]} }

func (b bits) has(c bits) bool { return b.with(c) == b }

func (b bits) count() int { return mathbits.OnesCount64(b[0]) + mathbits.OnesCount64(b[1]) }

func (b bits) String() string {
	var at []int
	for i := range MaxBits {
		if b[i/64]>>(i%64)&1 == 1 {
			at = append(at, i)
		}
	}
	return fmt.Sprint(at)
}
