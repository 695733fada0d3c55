package xxh3

import "encoding/binary"

// More than 240 bytes are cut into stripes of 64. Each is added to eight sums,
// and after a block of 16 stripes the sums are scrambled. The last stripe ends
// with the last byte, and may overlap the one before.
const (
	stripeBytes  = 64
	blockStripes = 16
	blockBytes   = blockStripes * stripeBytes
)

type sums [8]uint64

var firstSums = sums{
	prime32x3, prime64x1, prime64x2, prime64x3, prime64x4, prime32x2, prime64x5, prime32x1,
}

func long128(s string, seed uint64) (hi, lo uint64) {
	k := secret
	if seed != 0 {
		for i := 0; i < len(k); i += 2 {
			k[i] += seed
			k[i+1] -= seed
		}
	}
	n := uint64(len(s))
	a := sumsOf(s, &k)
	return a.merge(&k, 117, ^(n * prime64x2)), a.merge(&k, 11, n*prime64x1)
}

func sumsOf(s string, k *keys) sums {
	a, rest := firstSums, s
	for len(rest) > blockBytes {
		a.block(rest[:blockBytes], k)
		rest = rest[blockBytes:]
	}
	a.end(rest, s[len(s)-stripeBytes:], k)
	return a
}

// block adds a whole block, if it is not the last one.
func (a *sums) block(s string, k *keys) {
	a.stripes(s, k[:])
	for i, x := range a {
		a[i] = (x ^ x>>47 ^ k[blockStripes+i]) * prime32x1
	}
}

// end adds the last block, of one byte or more, and the last stripe.
func (a *sums) end(block, stripe string, k *keys) {
	a.stripes(block[:(len(block)-1)/stripeBytes*stripeBytes], k[:])
	w := k.from(121)
	a.stripes(stripe, w[:])
}

// stripes adds at most 16 stripes. The secret of each begins one word further
// on.
func (a *sums) stripes(s string, k []uint64) {
	for i := range min(len(s)/stripeBytes, blockStripes) {
		b, w := at64(s, stripeBytes*i), (*[8]uint64)(k[i:i+8])
		a.pair(0, b, w)
		a.pair(2, b, w)
		a.pair(4, b, w)
		a.pair(6, b, w)
	}
}

// pair adds the words i and i+1 of a stripe.
func (a *sums) pair(i int, b *[stripeBytes]byte, k *[8]uint64) {
	x, y := binary.LittleEndian.Uint64(b[8*i:]), binary.LittleEndian.Uint64(b[8*i+8:])
	u, v := x^k[i], y^k[i+1]
	a[i] += y + uint64(uint32(u))*(u>>32)
	a[i+1] += x + uint64(uint32(v))*(v>>32)
}

// merge returns the hash of the sums. i is the byte of the secret at which its
// words begin.
func (a *sums) merge(k *keys, i uint, h uint64) uint64 {
	w := k.from(i)
	for j := 0; j < len(a); j += 2 {
		h += fold(a[j]^w[j], a[j+1]^w[j+1])
	}
	return avalanche(h)
}
