package xxh3

// A Hasher computes the Sum64 of everything written to it. The zero value is
// ready.
type Hasher struct {
	n    uint64 // bytes written so far
	sums sums   // of the blocks added so far

	// The last stripe added, and the bytes since then: at most a block, which
	// is not added before another byte comes.
	buf  [stripeBytes + blockBytes]byte
	held int // bytes since then
}

// Write never fails.
func (h *Hasher) Write(p []byte) (int, error) {
	n := len(p)
	if h.n == 0 {
		h.sums = firstSums
	}
	h.n += uint64(n)
	for len(p) > 0 {
		if h.held == blockBytes {
			h.block(h.buf[stripeBytes:])
			h.held = 0
		}
		for h.held == 0 && len(p) > blockBytes {
			h.block(p[:blockBytes])
			p = p[blockBytes:]
		}
		k := copy(h.buf[stripeBytes+h.held:], p)
		h.held += k
		p = p[k:]
	}
	return n, nil
}

func (h *Hasher) block(b []byte) {
	h.sums.block(text(b), &secret)
	copy(h.buf[:stripeBytes], b[blockBytes-stripeBytes:])
}

// Sum64 returns the hash so far.
func (h *Hasher) Sum64() uint64 {
	block := h.buf[stripeBytes : stripeBytes+h.held]
	if h.n <= blockBytes {
		return Sum64(block)
	}
	a := h.sums
	a.end(text(block), text(h.buf[h.held:h.held+stripeBytes]), &secret)
	return a.merge(&secret, 11, h.n*prime64x1)
}
