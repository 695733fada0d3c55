// Package cells is the arithmetic of the filters: which cells an item owns, and
// how many cells a number of items takes. It knows no header, no key and no
// server.
package cells

import "github.com/zeebo/xxh3"

// WordBits is the width of a word of the blocked and the cuckoo scheme: the
// widest integer that JSON readers, JavaScript and Lua all carry exactly.
const WordBits = 53

// Digest is the 128-bit hash behind every scheme but fnv1a: its upper half x
// and its lower half y.
func Digest(item string, seed uint64) (x, y uint64) {
	h := xxh3.HashString128Seed(item, seed)
	return h.Hi, h.Lo
}

// AppendEnhanced appends x mod m, then adds y to x and i+1 to y, k times over:
// enhanced double hashing (Dillinger and Manolios 2004), in uint64 with
// wrap-around. Plain double hashing lacks the growing y: its items fall on the
// same few cells if their steps share a factor with m or agree mod m.
//
// The remainder is a division on purpose: multiplying by a reciprocal of m is
// slower.
func AppendEnhanced(dst []uint64, x, y, m uint64, k int) []uint64 {
	for i := range uint64(k) {
		dst = append(dst, x%m)
		x += y
		y += i + 1
	}
	return dst
}

// AppendFNV1a appends (h1 + i*h2) mod m for i = 0..k-1, over the integers. The sum
// does not wrap at 2^64, because the other programs of the scheme count with big
// integers.
func AppendFNV1a(dst []uint64, item string, m uint64, k int) []uint64 {
	pos, step := FNV1aStep(item, m)
	for range k {
		dst = append(dst, pos)
		pos = AddMod(pos, step, m)
	}
	return dst
}

// AddMod returns (a+b) mod m for a and b below m. No sum overflows, even if m
// is above 2^63.
func AddMod(a, b, m uint64) uint64 {
	if a >= m-b {
		return a - (m - b)
	}
	return a + b
}

const (
	fnvPrime   = 1099511628211
	fnvOffset1 = 0xcbf29ce484222325 // the standard one
	fnvOffset2 = 0x84222325cbf29ce4 // its two halves swapped
)

// FNV1aStep returns an item's first position, and the step from each position to
// the next: its two 64-bit FNV-1a hashes, mod m. These don't wait for each other in
// the processor: both cost as much as one.
func FNV1aStep(item string, m uint64) (pos, step uint64) {
	h1, h2 := uint64(fnvOffset1), uint64(fnvOffset2)
	for i := range len(item) {
		c := uint64(item[i])
		h1 = (h1 ^ c) * fnvPrime
		h2 = (h2 ^ c) * fnvPrime
	}
	return h1 % m, h2 % m
}

// The blocked scheme. The body is words of 53 bits; an item owns two different
// bits in each of z words. Two of its words may be the same one.

// AppendBlocked appends two positions a word, z words in all. x and y move as
// in AppendEnhanced. The remainder of each x chooses the word, and the quotient
// both bits.
func AppendBlocked(dst []uint64, x, y, words uint64, z int) []uint64 {
	if words == 0 {
		return dst
	}
	for i := range uint64(z) {
		w, a, b := BlockedBits(x, words)
		dst = append(dst, WordBits*w+a, WordBits*w+b)
		x += y
		y += i + 1
	}
	return dst
}

// BlockedBits returns the word chosen by x and the two bits in it, from 0 to
// 52.
func BlockedBits(x, words uint64) (w, a, b uint64) {
	q := x / words
	w = x - q*words
	a = q % WordBits
	b = q / WordBits % (WordBits - 1)
	if b >= a {
		b++
	}
	return w, a, b
}

// A Word is a word in which an item owns bits.
type Word struct {
	Index uint64 // of the word in the body
	Mask  int64  // the item's bits, as GET u53 shows them: bit a has the value 2^(52-a)
}

// AppendWords appends the words of the digest x, y: z words of a body of so
// many words. If the item meets a word twice, AppendWords appends it once, with
// all of its bits.
func AppendWords(dst []Word, x, y, words uint64, z int) []Word {
	first := len(dst)
next:
	for i := range uint64(z) {
		w, a, b := BlockedBits(x, words)
		mask := int64(1)<<(WordBits-1-a) | int64(1)<<(WordBits-1-b)
		x += y
		y += i + 1
		for j := first; j < len(dst); j++ {
			if dst[j].Index == w {
				dst[j].Mask |= mask
				continue next
			}
		}
		dst = append(dst, Word{w, mask})
	}
	return dst
}
