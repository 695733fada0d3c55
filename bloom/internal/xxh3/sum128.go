package xxh3

import (
	"encoding/binary"
	"math/bits"
)

// Sum128 returns the upper and the lower half of the 128-bit hash of s.
func Sum128(s string, seed uint64) (hi, lo uint64) {
	n := len(s)
	switch {
	case n > 16:
		if n > 128 {
			return over128(s, seed)
		}
		lo = uint64(n) * prime64x1
		if n > 32 {
			if n > 64 {
				if n > 96 {
					x, y := at16(s, 48), at16(s, n-64)
					lo = mix(lo, x, y, key96, key104, seed)
					hi = mix(hi, y, x, key112, key120, seed)
				}
				x, y := at16(s, 32), at16(s, n-48)
				lo = mix(lo, x, y, key64, key72, seed)
				hi = mix(hi, y, x, key80, key88, seed)
			}
			x, y := at16(s, 16), at16(s, n-32)
			lo = mix(lo, x, y, key32, key40, seed)
			hi = mix(hi, y, x, key48, key56, seed)
		}
		x, y := at16(s, 0), at16(s, n-16)
		lo = mix(lo, x, y, key0, key8, seed)
		hi = mix(hi, y, x, key16, key24, seed)
		return end128(hi, lo, n, seed)

	case n > 8:
		first := binary.LittleEndian.Uint64(at8(s, 0)[:])
		last := binary.LittleEndian.Uint64(at8(s, n-8)[:])
		hi, lo = bits.Mul64(first^last^(key32^key40-seed), prime64x1)
		lo += uint64(n-1) << 54
		last ^= key48 ^ key56 + seed
		hi += last + uint64(uint32(last))*(prime32x2-1)
		top, lo := bits.Mul64(lo^bits.ReverseBytes64(hi), prime64x2)
		return avalanche(top + hi*prime64x2), avalanche(lo)

	case n > 3:
		first := binary.LittleEndian.Uint32(at4(s, 0)[:])
		last := binary.LittleEndian.Uint32(at4(s, n-4)[:])
		seed ^= uint64(bits.ReverseBytes32(uint32(seed))) << 32
		hi, lo = bits.Mul64((uint64(first)|uint64(last)<<32)^(key16^key24+seed), prime64x1+uint64(n)<<2)
		hi += lo << 1
		lo ^= hi >> 3
		lo = (lo ^ lo>>35) * primeMX2
		return avalanche(hi), lo ^ lo>>28

	case n > 0:
		x := upTo3(s)
		y := bits.RotateLeft32(bits.ReverseBytes32(x), 13)
		lo = uint64(x) ^ (key0&0xFFFFFFFF ^ key0>>32 + seed)
		hi = uint64(y) ^ (key8&0xFFFFFFFF ^ key8>>32 - seed)
		return avalanche64(hi), avalanche64(lo)
	}
	return avalanche64(seed ^ key80 ^ key88), avalanche64(seed ^ key64 ^ key72)
}

// over128 is Sum128 for more than 128 bytes.
func over128(s string, seed uint64) (hi, lo uint64) {
	n := len(s)
	if n > 240 {
		return long128(s, seed)
	}
	lo = uint64(n) * prime64x1
	for i := range 4 {
		x, y := at16(s, 32*i), at16(s, 32*i+16)
		k := (*[4]uint64)(secret[4*i : 4*i+4])
		lo = mix(lo, x, y, k[0], k[1], seed)
		hi = mix(hi, y, x, k[2], k[3], seed)
	}
	hi, lo = avalanche(hi), avalanche(lo)
	for i := range min(n/32-4, 3) {
		x, y := at16(s, 32*i+128), at16(s, 32*i+144)
		w := (*[5]uint64)(secret[4*i : 4*i+5]) // from byte 3 on
		lo = mix(lo, x, y, w[0]>>24|w[1]<<40, w[1]>>24|w[2]<<40, seed)
		hi = mix(hi, y, x, w[2]>>24|w[3]<<40, w[3]>>24|w[4]<<40, seed)
	}
	x, y, k := at16(s, n-16), at16(s, n-32), secret.from(103)
	lo = mix(lo, x, y, k[0], k[1], -seed)
	hi = mix(hi, y, x, k[2], k[3], -seed)
	return end128(hi, lo, n, seed)
}

// mix adds 16 bytes of an item to sum, under 16 of the secret, and 16 others.
func mix(sum uint64, a, b *[16]byte, k0, k1, seed uint64) uint64 {
	sum += fold(binary.LittleEndian.Uint64(a[:8])^(k0+seed), binary.LittleEndian.Uint64(a[8:])^(k1-seed))
	return sum ^ (binary.LittleEndian.Uint64(b[:8]) + binary.LittleEndian.Uint64(b[8:]))
}

func end128(hi, lo uint64, n int, seed uint64) (uint64, uint64) {
	sum := lo*prime64x1 + hi*prime64x4 + (uint64(n)-seed)*prime64x2
	return -avalanche(sum), avalanche(hi + lo)
}
