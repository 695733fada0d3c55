package xxh3

import (
	"encoding/binary"
	"math/bits"
)

// Sum64 returns the 64-bit hash of b, without a seed.
func Sum64(b []byte) uint64 {
	s, n := text(b), len(b)
	switch {
	case n > 240:
		a := sumsOf(s, &secret)
		return a.merge(&secret, 11, uint64(n)*prime64x1)

	case n > 128:
		sum := uint64(n) * prime64x1
		for i := range 8 {
			sum += mix64(at16(s, 16*i), secret[2*i], secret[2*i+1])
		}
		sum = avalanche(sum)
		for i := range min(n/16-8, 7) {
			k := secret.from(uint(16*i + 3))
			sum += mix64(at16(s, 16*i+128), k[0], k[1])
		}
		k := secret.from(119)
		return avalanche(sum + mix64(at16(s, n-16), k[0], k[1]))

	case n > 16:
		sum := uint64(n) * prime64x1
		for i := range (n-1)/32 + 1 {
			k := secret[4*i : 4*i+4]
			sum += mix64(at16(s, 16*i), k[0], k[1]) + mix64(at16(s, n-16*i-16), k[2], k[3])
		}
		return avalanche(sum)

	case n > 8:
		first := binary.LittleEndian.Uint64(at8(s, 0)[:]) ^ key24 ^ key32
		last := binary.LittleEndian.Uint64(at8(s, n-8)[:]) ^ key40 ^ key48
		return avalanche(uint64(n) + bits.ReverseBytes64(first) + last + fold(first, last))

	case n > 3:
		first := binary.LittleEndian.Uint32(at4(s, 0)[:])
		last := binary.LittleEndian.Uint32(at4(s, n-4)[:])
		h := (uint64(last) | uint64(first)<<32) ^ key8 ^ key16
		h ^= bits.RotateLeft64(h, 49) ^ bits.RotateLeft64(h, 24)
		h *= primeMX2
		h = (h ^ (h>>35 + uint64(n))) * primeMX2
		return h ^ h>>28

	case n > 0:
		return avalanche64(uint64(upTo3(s)) ^ key0&0xFFFFFFFF ^ key0>>32)
	}
	return avalanche64(key56 ^ key64)
}

// mix64 mixes 16 bytes of an item with 16 of the secret.
func mix64(b *[16]byte, k0, k1 uint64) uint64 {
	return fold(binary.LittleEndian.Uint64(b[:8])^k0, binary.LittleEndian.Uint64(b[8:])^k1)
}
