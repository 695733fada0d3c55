package bloom

import "strconv"

// A Scheme says how an item becomes positions, and how wide a cell is. It is part of the
// stored format: two programs that share a filter use the same one. The zero value is
// SchemeXXH3, the one to use.
type Scheme uint8

const (
	// SchemeXXH3 takes all positions from one 128-bit XXH3 digest by enhanced double hashing
	// (Dillinger and Manolios, "Bloom filters in probabilistic verification", FMCAD 2004).
	// Measured false positive rates are those of the formula from a thousand items up, and
	// within 5% at a hundred.
	SchemeXXH3 Scheme = 0

	// SchemeFNV1a is double hashing over two 64-bit FNV-1a digests, as the well-known short
	// TypeScript filter for Upstash does it. It exists to share filters with such programs,
	// mostly with LayoutBare: wherever the number of bits is even its false positive rate is
	// 2 to 10 times the target, and its estimates of cardinality are 4 to 14% low. It takes
	// no seed.
	SchemeFNV1a Scheme = 1

	// The counting schemes place items as SchemeXXH3 does. The header parser knows them, so
	// that a counting filter is told from a plain one; a Config does not accept them.
	schemeXXH3Count4 Scheme = 2
	schemeXXH3Count8 Scheme = 3
)

// String returns the scheme's name: "xxh3", "fnv1a", or "Scheme(9)" for an unknown one.
func (s Scheme) String() string {
	switch s {
	case SchemeXXH3:
		return "xxh3"
	case SchemeFNV1a:
		return "fnv1a"
	case schemeXXH3Count4:
		return "xxh3/4-bit"
	case schemeXXH3Count8:
		return "xxh3/8-bit"
	}
	return "Scheme(" + strconv.Itoa(int(s)) + ")"
}

// cellBits returns the width of a cell: 1, or 4 or 8 for the counting schemes. An unknown
// scheme has cells of 0 bits.
func (s Scheme) cellBits() uint64 {
	switch s {
	case SchemeXXH3, SchemeFNV1a:
		return 1
	case schemeXXH3Count4:
		return 4
	case schemeXXH3Count8:
		return 8
	}
	return 0
}

// A Layout says where in the Redis string the cells are. The zero value is LayoutHeaded,
// the one to use.
type Layout uint8

const (
	// LayoutHeaded puts a header of 16 bytes in front of the cells. Every command reads it,
	// so that a missing filter or one of another geometry is an error and never a wrong "no".
	LayoutHeaded Layout = 0

	// LayoutBare has the cells alone, from bit 0: for strings that other programs wrote.
	// Nothing can be checked: the wrong number of bits, hashes, scheme or seed gives wrong
	// answers without a word, and a missing filter is an empty one.
	LayoutBare Layout = 1
)

const (
	maxStringBits = 1 << 32 // a Redis string holds 512 MiB
	headerBits    = 128
)

// String returns "headed", "bare", or "Layout(9)" for an unknown one.
func (l Layout) String() string {
	switch l {
	case LayoutHeaded:
		return "headed"
	case LayoutBare:
		return "bare"
	}
	return "Layout(" + strconv.Itoa(int(l)) + ")"
}

// bodyOffset returns the bit at which cell 0 starts.
func (l Layout) bodyOffset() uint64 {
	if l == LayoutBare {
		return 0
	}
	return headerBits
}
