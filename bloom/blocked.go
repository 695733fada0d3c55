package bloom

// The blocked scheme. The body is words of 53 bits; an item owns two different
// bits in each of z words. Two of its words may be the same one.

// appendBlocked appends two positions a word, z words in all. x and y move as
// in appendEnhanced; each x chooses the word by its remainder and both bits by
// what is left of the quotient.
func appendBlocked(dst []uint64, x, y, words uint64, z int) []uint64 {
	if words == 0 {
		return dst
	}
	for i := range uint64(z) {
		w, a, b := blockedBits(x, words)
		dst = append(dst, wordBits*w+a, wordBits*w+b)
		x += y
		y += i + 1
	}
	return dst
}

// blockedBits returns the word that x chooses and the two bits in it, from 0 to
// 52.
func blockedBits(x, words uint64) (w, a, b uint64) {
	q := x / words
	w = x - q*words
	a = q % wordBits
	b = q / wordBits % (wordBits - 1)
	if b >= a {
		b++
	}
	return w, a, b
}

// A cellWord is a word that an item owns bits in.
type cellWord struct {
	index uint64 // of the word in the body
	mask  int64  // the item's bits, as GET u53 shows them: bit a has the value 2^(52-a)
}

// appendWords appends the words of an item. A word that the item meets twice is
// appended once, with all of its bits.
func (g Geometry) appendWords(dst []cellWord, item string) []cellWord {
	h := digest(item, g.Seed)
	x, y, words := h.Hi, h.Lo, g.Bits/wordBits
	first := len(dst)
next:
	for i := range uint64(g.Hashes / 2) {
		w, a, b := blockedBits(x, words)
		mask := int64(1)<<(wordBits-1-a) | int64(1)<<(wordBits-1-b)
		x += y
		y += i + 1
		for j := first; j < len(dst); j++ {
			if dst[j].index == w {
				dst[j].mask |= mask
				continue next
			}
		}
		dst = append(dst, cellWord{w, mask})
	}
	return dst
}
