package bloomtest

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/upbloom/upbloom/bloom"
)

// The encoder in this file follows the description of the format and shares no
// code with package bloom. Its bits are characters, and its arithmetic is
// math/big's.

const headBits = 192

// HeaderOf returns the first 24 bytes of a filter of another program: 53 bits
// of header, 11 zeros, a word of zeros, and the kind's word, which is zero for
// KindFilter.
func HeaderOf(kind bloom.Kind, g bloom.Geometry) string { return HeaderOfVersion(1, kind, g) }

// HeaderOfVersion is HeaderOf for a version of the format. There is only 1.
func HeaderOfVersion(version int, kind bloom.Kind, g bloom.Geometry) string {
	tag := uint64(0)
	if g.Seed != 0 {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], g.Seed)
		tag = 1 + xxh3.Hash(b[:])%127
	}
	bits := fmt.Sprintf("1%02b%02b%03b%06b%07b%032b", kind%4, version, g.Scheme, g.Hashes, tag, g.Bits)
	bits += strings.Repeat("0", 11+64)
	if kind != bloom.KindFilter {
		bits += "1" // of the kind's own word
	}
	return packed(bits + strings.Repeat("0", headBits-len(bits)))
}

// packed makes bytes of bits. The first bit is the top bit of the first byte.
func packed(bits string) string {
	bits += strings.Repeat("0", (8-len(bits)%8)%8)
	out := make([]byte, len(bits)/8)
	for i := range out {
		n, err := strconv.ParseUint(bits[i*8:i*8+8], 2, 8)
		if err != nil {
			panic(err)
		}
		out[i] = byte(n)
	}
	return string(out)
}

// PositionsOf computes an item's cells over the integers.
func PositionsOf(g bloom.Geometry, item string) []uint64 {
	wrap := new(big.Int).Lsh(big.NewInt(1), 64)
	m := new(big.Int).SetUint64(g.Bits)
	var out []uint64
	if g.Scheme == bloom.SchemeFNV1a {
		h1, h2 := fnvOf(item, 0xcbf29ce484222325), fnvOf(item, 0x84222325cbf29ce4)
		for i := range g.Hashes {
			sum := new(big.Int).Mul(h2, big.NewInt(int64(i)))
			out = append(out, sum.Add(sum, h1).Mod(sum, m).Uint64())
		}
		return out
	}
	h := xxh3.HashString128Seed(item, g.Seed)
	x, y := new(big.Int).SetUint64(h.Hi), new(big.Int).SetUint64(h.Lo)
	for i := 0; len(out) < g.Hashes; i++ {
		if g.Scheme == bloom.SchemeBlocked {
			out = append(out, pairOf(x, g.Bits/53)...)
		} else {
			out = append(out, new(big.Int).Mod(x, m).Uint64())
		}
		x.Add(x, y).Mod(x, wrap)
		y.Add(y, big.NewInt(int64(i+1))).Mod(y, wrap)
	}
	return out
}

// pairOf returns the two bits of a word chosen by x.
func pairOf(x *big.Int, words uint64) []uint64 {
	q, w := new(big.Int).DivMod(x, new(big.Int).SetUint64(words), new(big.Int))
	q, a := q.DivMod(q, big.NewInt(53), new(big.Int))
	b := q.Mod(q, big.NewInt(52)).Uint64()
	if b >= a.Uint64() {
		b++
	}
	return []uint64{53*w.Uint64() + a.Uint64(), 53*w.Uint64() + b}
}

func fnvOf(item string, offset uint64) *big.Int {
	wrap := new(big.Int).Lsh(big.NewInt(1), 64)
	h := new(big.Int).SetUint64(offset)
	for _, c := range []byte(item) {
		h.Xor(h, big.NewInt(int64(c)))
		h.Mul(h, big.NewInt(1099511628211)).Mod(h, wrap)
	}
	return h
}

// StringOf returns the whole Redis string of a filter with these items. Its
// second word is zero.
func StringOf(g bloom.Geometry, layout bloom.Layout, items ...string) string {
	cells := []byte(strings.Repeat("0", int(g.Bits)))
	for _, item := range items {
		for _, p := range PositionsOf(g, item) {
			cells[p] = '1'
		}
	}
	if layout == bloom.LayoutBare {
		return packed(string(cells))
	}
	return HeaderOf(bloom.KindFilter, g) + packed(string(cells))
}

// Small1000 is a filter of 1,060 bits.
var Small1000 = bloom.Geometry{Bits: 53 * 20, Hashes: 4}

// Spoilt returns a Small1000 filter whose header has a bit set that must be 0.
func Spoilt(bit int) string {
	b := []byte(StringOf(Small1000, bloom.LayoutHeaded, "item"))
	b[bit/8] |= 0x80 >> (bit % 8)
	return string(b)
}
