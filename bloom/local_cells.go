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
// Cells of 64 bits that are set by atomic operations would let Adds run beside
// each other and beside look-ups. Measured at a million items, such an Add took
// twice the time and a look-up no less than here, while a lock for which nobody
// waits takes 2 ns of a look-up and 10 of an Add. So there is no such variant.

// padded returns the length of a buffer for a string of n bytes: each word has
// eight bytes to load, and the whole is a multiple of eight. What is behind the
// string stays 0.
func padded(n int) int { return (n+7)&^7 + 8 }

func load(buf []byte, at uint64) uint64     { return binary.BigEndian.Uint64(buf[at : at+8]) }
func store(buf []byte, at uint64, v uint64) { binary.BigEndian.PutUint64(buf[at:at+8], v) }

// wordAt returns the bit of the string at which the word that x chooses begins,
// and the item's two bits in it, the word's bit 0 being the topmost. They are
// those of cells.BlockedBits. inverse is reciprocal(words).
//
// A look-up in a large filter mostly waits for memory. The processor goes on to
// the next items meanwhile, as far as some 200 instructions reach. So the fewer
// they are, the better: a multiplication instead of a division, a table of the
// pairs, no call. At ten million items, that took a quarter of the time away.
func wordAt(x, words, inverse uint64, pairs *pairTable) (bit, pair uint64) {
	q, _ := bits.Mul64(x, inverse)
	w := x - q*words
	if w >= words { // q was one too low, which is rare
		w -= words
		q++
	}
	return headerBits + wordBits*w, pairs[q%pairCount]
}

// reciprocal returns the number of times that words goes into 2^64-1. The upper
// half of its product with x is x/words, or one less.
func reciprocal(words uint64) uint64 { return math.MaxUint64 / words }

const pairCount = wordBits * (wordBits - 1)

// A pairTable has the two bits of a word for each remainder of q by pairCount,
// which decides both. It takes 22 KB.
type pairTable [pairCount]uint64

// sharedPairs returns the one table, which all Locals share.
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
	h := cells.Digest(item, l.geo.Seed)
	x, y, m := h.Hi, h.Lo, l.geo.Bits
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
	h := cells.Digest(item, l.geo.Seed)
	x, y, m := h.Hi, h.Lo, l.geo.Bits
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

// learnWord sets the bits of one word of the body, as GET u53 answered it.
func (l *Local) learnWord(index uint64, word int64) {
	bit := headerBits + wordBits*index
	at := bit / 8
	store(l.buf, at, load(l.buf, at)|uint64(word)<<(64-wordBits)>>(bit%8))
}

// orBytes sets the bits of a part of a Redis string that starts at the byte
// offset. It leaves out what the part says of the header, and what is behind
// the last cell.
func (l *Local) orBytes(offset int, part []byte) {
	if skip := headerBytes - offset; skip > 0 {
		part = part[min(skip, len(part)):]
		offset = headerBytes
	}
	if offset >= l.size {
		return
	}
	part = part[:min(len(part), l.size-offset)]
	orInto(l.buf[offset:], part)
	l.clearTail()
}

// clearTail clears the bits of the last byte that are no cells.
func (l *Local) clearTail() { l.buf[l.size-1] &= 0xff << (-l.geo.Bits & 7) }

// orInto sets the bits of src in dst, which is as long or longer.
func orInto(dst, src []byte) {
	for len(src) >= 8 {
		word := binary.LittleEndian.Uint64(dst) | binary.LittleEndian.Uint64(src)
		binary.LittleEndian.PutUint64(dst, word)
		dst, src = dst[8:], src[8:]
	}
	for i, b := range src {
		dst[i] |= b
	}
}

// putHeader writes the header of a filter that is a string by itself; bits 53
// to 191 are 0.
func putHeader(buf []byte, g Geometry) {
	store(buf, 0, encodeHeader(KindFilter, g)<<(64-wordBits))
	store(buf, 8, 0)
	store(buf, 16, 0)
}
