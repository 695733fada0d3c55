package bloom

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sync"

	"github.com/upbloom/upbloom/bloom/internal/cells"
)

// How a Local reaches its cells. A word of 53 bits starts at any bit of a byte,
// and 7+53 bits are within eight bytes: one load, unaligned, in the order of a
// Redis string.
//
// Cells of 64 bits, set by atomic operations, would let Adds run beside each
// other and beside look-ups. But such an Add takes twice the time in a filter
// of a million items, and no look-up is faster. A lock without contention costs
// 2 ns of a look-up and 10 of an Add: callers lock instead.

// padded returns the length of a buffer for a string of n bytes: each word has
// eight bytes to load, and the whole is a multiple of eight. What is behind the
// string stays 0.
func padded(n int) int { return (n+7)&^7 + 8 }

func load(buf []byte, at uint64) uint64     { return binary.BigEndian.Uint64(buf[at : at+8]) }
func store(buf []byte, at uint64, v uint64) { binary.BigEndian.PutUint64(buf[at:at+8], v) }

// wordAt returns the bit of the string at which the word chosen by x begins,
// and the item's two bits in it, the word's bit 0 being the topmost. They are
// those of cells.BlockedBits. inverse and shift are reciprocal(words).
//
// A look-up in a large filter mostly waits for memory. Meanwhile the processor
// goes on to the next items, for some 500 instructions or up to a branch that
// it guessed wrongly. Both must be few: so there is a multiplication instead of
// a division, a table of the pairs, and no call.
func wordAt(x, words, inverse, shift uint64, pairs *pairTable) (bit, pair uint64) {
	q, _ := bits.Mul64(x, inverse)
	q >>= shift & 63 // shift is below 64: the compiler need not check
	w := x - q*words
	if w >= words { // q was one too low, which is rare
		w -= words
		q++
	}
	return headerBits + wordBits*w, pairs[q%pairCount]
}

// reciprocal returns 2^(64+shift)/words, rounded down, with the largest shift at
// which this has 64 bits. Then x times inverse, without its last 64+shift bits,
// is x/words, or one less: of all x in less than 2/words of them.
func reciprocal(words uint64) (inverse, shift uint64) {
	shift = uint64(bits.Len64(words) - 1)
	inverse, _ = bits.Div64(1<<shift-1, math.MaxUint64, words)
	return inverse, shift
}

// setPair sets two bits of the word that begins at a bit of the string, both
// from wordAt. It returns 0 if they were set before.
func setPair(buf []byte, bit, pair uint64) (missing uint64) {
	mask := bits.ReverseBytes64(pair >> (bit % 8))
	at := buf[bit/8 : bit/8+8]
	word := binary.LittleEndian.Uint64(at)
	binary.LittleEndian.PutUint64(at, word|mask)
	return mask &^ word
}

const pairCount = wordBits * (wordBits - 1)

// A pairTable has the two bits of a word for each remainder of q by pairCount,
// which decides both. It takes 22 KB.
type pairTable [pairCount]uint64

// sharedPairs returns the one table of all Locals.
var sharedPairs = sync.OnceValue(func() *pairTable {
	var t pairTable
	for q := range t {
		_, a, b := cells.BlockedBits(uint64(q), 1)
		t[q] = 1<<63>>a | 1<<63>>b
	}
	return &t
})

// addBits is Add for independent bits.
func (l *Local) addBits(item string) (added bool) {
	if l.size == 0 {
		panic("bloom: Add to a zero Local, which has no cells: make it with NewLocal")
	}
	if l.geo.Scheme == SchemeFNV1a {
		pos, step := cells.FNV1aStep(item, l.geo.Bits)
		for range l.geo.Hashes {
			added = l.setCell(pos) || added
			pos = cells.AddMod(pos, step, l.geo.Bits)
		}
		return added
	}
	x, y := cells.Digest(item, l.geo.Seed)
	m := l.geo.Bits
	for i := range uint64(l.geo.Hashes) {
		added = l.setCell(x%m) || added
		x += y
		y += i + 1
	}
	return added
}

// hasBits is Exists for independent bits.
func (l *Local) hasBits(item string) bool {
	if l.size == 0 {
		return false
	}
	if l.geo.Scheme == SchemeFNV1a {
		pos, step := cells.FNV1aStep(item, l.geo.Bits)
		for range l.geo.Hashes {
			if !l.hasCell(pos) {
				return false
			}
			pos = cells.AddMod(pos, step, l.geo.Bits)
		}
		return true
	}
	x, y := cells.Digest(item, l.geo.Seed)
	m := l.geo.Bits
	for i := range uint64(l.geo.Hashes) {
		if !l.hasCell(x % m) {
			return false
		}
		x += y
		y += i + 1
	}
	return true
}

// setCell sets a cell and reports whether it was 0.
func (l *Local) setCell(pos uint64) bool {
	b, bit := &l.buf[headerBytes+pos/8], byte(0x80)>>(pos%8)
	old := *b
	*b = old | bit
	return old&bit == 0
}

func (l *Local) hasCell(pos uint64) bool {
	return l.buf[headerBytes+pos/8]&(0x80>>(pos%8)) != 0
}
