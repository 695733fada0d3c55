// Package sha1 names scripts by their SHA-1, as EVALSHA does. No secret depends
// on it. Package crypto/sha1 would add 60 KB to a compressed WebAssembly module.
package sha1

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
)

const block = 64 // bytes

// Hex returns the SHA-1 of text (FIPS 180-4, section 6.1) in 40 digits.
func Hex(text string) string {
	h := [5]uint32{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}
	// A one bit, zeros, and the length in bits end the last block.
	padded := append([]byte(text), 0x80)
	for len(padded)%block != block-8 {
		padded = append(padded, 0)
	}
	padded = binary.BigEndian.AppendUint64(padded, 8*uint64(len(text)))
	for ; len(padded) > 0; padded = padded[block:] {
		mix(&h, padded[:block])
	}
	var sum [20]byte
	for i, word := range h {
		binary.BigEndian.PutUint32(sum[4*i:], word)
	}
	return hex.EncodeToString(sum[:])
}

// mix works one block into h.
func mix(h *[5]uint32, p []byte) {
	var w [80]uint32
	for i := range 16 {
		w[i] = binary.BigEndian.Uint32(p[4*i:])
	}
	for i := 16; i < len(w); i++ {
		w[i] = bits.RotateLeft32(w[i-3]^w[i-8]^w[i-14]^w[i-16], 1)
	}
	a, b, c, d, e := h[0], h[1], h[2], h[3], h[4]
	for i, word := range w {
		var f, k uint32
		switch {
		case i < 20:
			f, k = b&c|^b&d, 0x5a827999
		case i < 40:
			f, k = b^c^d, 0x6ed9eba1
		case i < 60:
			f, k = b&c|b&d|c&d, 0x8f1bbcdc
		default:
			f, k = b^c^d, 0xca62c1d6
		}
		a, b, c, d, e = bits.RotateLeft32(a, 5)+f+e+k+word, a, bits.RotateLeft32(b, 30), c, d
	}
	h[0], h[1], h[2], h[3], h[4] = h[0]+a, h[1]+b, h[2]+c, h[3]+d, h[4]+e
}
