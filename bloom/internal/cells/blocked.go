package cells

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
