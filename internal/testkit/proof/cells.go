package proof

import (
	"fmt"
	mathbits "math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/upbloom/upbloom/bloom"
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
			b[p/64] |= 1 << (p % 64)
		}
	}
	return b
}

func (b bits) with(c bits) bits { return bits{b[0] | c[0], b[1] | c[1]} }

func (b bits) has(c bits) bool { return b.with(c) == b }

// first is the lowest of the cells.
func (b bits) first() int {
	if b[0] == 0 {
		return 64 + mathbits.TrailingZeros64(b[1])
	}
	return mathbits.TrailingZeros64(b[0])
}

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

// ownCell returns the cell of an item in a type whose items share none. An item
// added to another filter has no cell.
func ownCell(v Verb, item string) bits {
	if v == Smudge {
		return bits{}
	}
	n, err := strconv.Atoi(strings.TrimPrefix(item, "item-"))
	if err != nil {
		n = MaxBits - 1 - slices.Index(lastItems[:], item)
	}
	return bitsOf([]uint64{uint64(n)}, MaxBits)
}

const (
	// longBits makes three parts of partBytes, which is as small as a part can
	// be.
	longBits, longHashes = 53 * 400, 4
	partBytes            = 1 << 10
	// fromNowhere is a cell of the model that no item has.
	fromNowhere = MaxBits - 1
)

// longItem returns an item of a Long filter. The one of the last calls is behind
// the others.
func longItem(n int) string {
	if n == itemCount {
		return itemAtLast
	}
	return itemName(n)
}

// longCellsOf returns the cells of an item in the model.
func longCellsOf(item string) (b bits) {
	for n := range itemCount + 1 {
		for i := range uint64(longHashes) {
			if longItem(n) == item {
				b = b.with(bitsOf([]uint64{uint64(n)*longHashes + i}, MaxBits))
			}
		}
	}
	return b
}

// longCells returns the cells of the model for those of a string. A cell that no
// item has is fromNowhere.
func longCells(g bloom.Geometry, isSet func(uint64) bool) (b bits) {
	known := 0
	for n := range itemCount + 1 {
		for i, at := range g.Positions(nil, longItem(n)) {
			if isSet(at) {
				known++
				b = b.with(bitsOf([]uint64{uint64(n*longHashes + i)}, MaxBits))
			}
		}
	}
	for at := range g.Bits {
		if isSet(at) {
			known--
		}
	}
	if known != 0 {
		b = b.with(bitsOf([]uint64{fromNowhere}, MaxBits))
	}
	return b
}
