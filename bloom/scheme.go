package bloom

import (
	"strconv"

	"github.com/upbloom/upbloom/bloom/internal/cells"
)

// A Scheme says how an item becomes positions, and how wide a cell is. It is
// part of the stored format: all programs that share a filter must use the same
// one. The zero value is [SchemeBlocked], the one to use.
type Scheme uint8

const (
	// SchemeBlocked cuts the cells into words of 53 bits and sets two bits in
	// each of a few words, all taken from one 128-bit XXH3 digest. A look-up
	// reads one word for each factor of ten of the false positive rate (2 at 1
	// in 100) instead of single bits, and an Add writes two bits a word. So
	// requests are short and the server does little. It takes 12% more memory
	// than [SchemeXXH3]. Measured rates are within 5% of the formula.
	//
	// It is a multi-blocked filter: Putze, Sanders and Singler, "Cache-, hash-
	// and space-efficient Bloom filters", WEA 2007.
	SchemeBlocked Scheme = 0

	// SchemeFNV1a is double hashing over two 64-bit FNV-1a digests, as the
	// TypeScript filter of the article "Building a high-speed Bloom Filter with
	// Upstash Redis" does it. It exists to share filters with such programs,
	// mostly with [LayoutBare]. It takes no seed.
	//
	// Its false positive rate depends on the number of bits. With an odd one it
	// is near the formula's, with an even one higher. A Config with Capacity and
	// FPRate leads to either: set odd Bits, and Hashes, to reach a rate. Measured
	// at capacities of 1,000 and more, the rate is at most so many times that of
	// the formula, and so many times [Stats.LiveFPRate]:
	//
	//	bits, made for     1 in 10     1 in 100    1 in 1,000  1 in 10,000
	//	odd                1.1, 1.7    1.1, 1.5    1.3, 1.6    2, 3.5
	//	even               1.3, 1.7    3, 4        8, 15       15, 35
	//	a multiple of 4    1.7, 2.2    6, 11       25, 80      65, 200
	//
	// Beside the formula, items that look random are the worst, decimal numbers
	// among the best. In smaller filters and at lower rates both factors are
	// larger, and in half full ones: up to 16 and 23 at 1 in 100. Estimates of
	// cardinality are up to 40% low, and right only with an odd number of bits and
	// items that look random.
	SchemeFNV1a Scheme = 1

	// SchemeXXH3 takes independent bits from one 128-bit XXH3 digest by
	// enhanced double hashing (Dillinger and Manolios, "Bloom filters in
	// probabilistic verification", FMCAD 2004): the least memory, and 3.5 times
	// the reads of [SchemeBlocked].
	SchemeXXH3 Scheme = 4

	// SchemeCuckoo stores fingerprints in buckets of k slots. This makes items
	// removable: Fan, Andersen, Kaminsky and Mitzenmacher, "Cuckoo filter:
	// practically better than Bloom", CoNEXT 2014. It is the scheme of a
	// [Cuckoo]; a [Config] does not accept it.
	SchemeCuckoo Scheme = 5

	// The schemes reserved by the format, which a Config does not accept. The
	// header parser knows them: an error can name them.
	schemeXXH3Count4 Scheme = 2
	schemeXXH3Count8 Scheme = 3
)

const wordBits = cells.WordBits

// String returns the scheme's name: "blocked", "fnv1a", "xxh3", "cuckoo",
// "xxh3/4-bit" or "xxh3/8-bit" for those reserved by the format, or "Scheme(9)"
// for an unknown one.
func (s Scheme) String() string {
	switch s {
	case SchemeBlocked:
		return "blocked"
	case SchemeFNV1a:
		return "fnv1a"
	case SchemeXXH3:
		return "xxh3"
	case schemeXXH3Count4:
		return "xxh3/4-bit"
	case schemeXXH3Count8:
		return "xxh3/8-bit"
	case SchemeCuckoo:
		return "cuckoo"
	}
	return "Scheme(" + strconv.Itoa(int(s)) + ")"
}

// MarshalText returns what String returns, for JSON and log/slog.
func (s Scheme) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name of an exported Scheme, as a file of settings may
// have it. Any other text is [upstash.ErrArgument].
func (s *Scheme) UnmarshalText(name []byte) error {
	return unmarshalName(s, name, SchemeBlocked, SchemeXXH3, SchemeFNV1a, SchemeCuckoo)
}

// cellBits returns the width of a cell: 1, or 4 or 8 for the counting schemes.
// An unknown scheme has cells of 0 bits.
func (s Scheme) cellBits() uint64 {
	switch s {
	case SchemeBlocked, SchemeFNV1a, SchemeXXH3, SchemeCuckoo:
		return 1
	case schemeXXH3Count4:
		return 4
	case schemeXXH3Count8:
		return 8
	}
	return 0
}

// oneBit reports whether a Filter can be of this scheme.
func (s Scheme) oneBit() bool {
	return s == SchemeBlocked || s == SchemeFNV1a || s == SchemeXXH3
}

// maxCells returns how many cells of a scheme fit into a Redis string.
func maxCells(s Scheme, l Layout) uint64 {
	width := s.cellBits()
	if width == 0 {
		return 0
	}
	cells := (maxStringBits - l.bodyOffset()) / width
	if s == SchemeBlocked || s == SchemeCuckoo {
		cells -= cells % wordBits
	}
	return cells
}

// A Layout says what a Redis string holds beside the cells. The zero value is
// [LayoutHeaded], the one to use.
type Layout uint8

const (
	// LayoutHeaded puts a header of 24 bytes in front of the cells. Every
	// command reads it: a missing filter or one of another geometry is an error
	// and never a wrong "no".
	LayoutHeaded Layout = 0

	// LayoutBare has the cells alone, from bit 0: for strings that other
	// programs wrote. Nothing can be checked: a wrong number of bits or hashes,
	// a wrong scheme or seed leads to wrong answers without an error, and a
	// missing filter counts as an empty one. [SchemeBlocked] has no bare form.
	LayoutBare Layout = 1
)

const (
	maxStringBits = 1 << 32 // a Redis string holds 512 MiB
	headerBits    = 192
	headerBytes   = headerBits / 8
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

// MarshalText returns what String returns, for JSON and log/slog.
func (l Layout) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads the name of an exported Layout, as a file of settings may
// have it. Any other text is [upstash.ErrArgument].
func (l *Layout) UnmarshalText(name []byte) error {
	return unmarshalName(l, name, LayoutHeaded, LayoutBare)
}

// bodyOffset returns the bit at which cell 0 starts.
func (l Layout) bodyOffset() uint64 {
	if l == LayoutBare {
		return 0
	}
	return headerBits
}

// A Kind says what a stored string is: a filter by itself, or one of the types
// made of several parts. It is in the header: one kind is not taken for
// another. The zero value is [KindFilter].
type Kind uint8

const (
	KindFilter Kind = 0 // a filter by itself
	KindShard  Kind = 1 // one shard of a sharded filter
	KindLayers Kind = 2 // the layers of a scalable filter
	KindWindow Kind = 3 // the panes of a window
)

// String returns "filter", "shard", "layers", "window", or "Kind(9)" for an
// unknown one.
func (k Kind) String() string {
	switch k {
	case KindFilter:
		return "filter"
	case KindShard:
		return "shard"
	case KindLayers:
		return "layers"
	case KindWindow:
		return "window"
	}
	return "Kind(" + strconv.Itoa(int(k)) + ")"
}

// MarshalText returns what String returns, for JSON and log/slog.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the name of an exported Kind, as a file of settings may
// have it. Any other text is [upstash.ErrArgument].
func (k *Kind) UnmarshalText(name []byte) error {
	return unmarshalName(k, name, KindFilter, KindShard, KindLayers, KindWindow)
}
