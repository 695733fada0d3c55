package bloom

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/zeebo/xxh3"
)

// A Geometry decides which bits an item owns: two programs that share a filter
// use the same four values. [Config.Geometry] works them out. It is a small
// value to copy and compare. The zero value is no filter.
type Geometry struct {
	// Bits is the number of cells, m: a multiple of 53 for [SchemeBlocked]. See
	// [Config.Bits].
	Bits uint64
	// Hashes is the number of positions an item, k: even for [SchemeBlocked].
	Hashes int
	// Scheme turns an item into positions.
	Scheme Scheme
	// Seed is [Config.Seed]. No verb of fmt shows it, and no JSON.
	Seed uint64 `json:"-"`
}

// Bytes returns the length of the filter's Redis string: the cells, in whole
// bytes, and the 24 bytes of header of [LayoutHeaded].
func (g Geometry) Bytes(layout Layout) uint64 {
	cell := g.Scheme.cellBits()
	// Rounding up by parts: Bits*cell may be more than a uint64 holds.
	body := g.Bits/8*cell + (g.Bits%8*cell+7)/8
	return layout.bodyOffset()/8 + body
}

// FalsePositiveRate returns the false positive rate, from 0 to 1, with n items
// (copies, in a Cuckoo). For the classic schemes it is (1 - e^(-kn/m))^k, a
// little low for very small filters (Bose et al. 2008). For [SchemeBlocked] it is
// (1 - 2e^-u + e^(-5459u/2756))^(k/2) with u = kn/m (Putze, Sanders and Singler
// 2007, section 3).
func (g Geometry) FalsePositiveRate(n uint64) float64 {
	if g.isTable() {
		return cells.CuckooRate(g.Bits/wordBits, g.Hashes, float64(n))
	}
	if g.Scheme != SchemeBlocked {
		if g.Bits == 0 || g.Hashes < 1 {
			return 1
		}
		// 1 - e^-x loses all its digits if x is small; -expm1(-x) keeps them.
		fill := -math.Expm1(-float64(g.Hashes) * float64(n) / float64(g.Bits))
		return math.Pow(fill, float64(g.Hashes))
	}
	if g.Bits < wordBits || g.Hashes < 2 {
		return 1
	}
	return cells.BlockedRate(g.Hashes/2, -float64(g.Hashes)*float64(n)/float64(g.Bits))
}

// LiveFalsePositiveRate returns the false positive rate, from 0 to 1, if
// setBits cells are set: (setBits/m)^k for the classic schemes, and for
// [SchemeBlocked] the formula of [Geometry.FalsePositiveRate] at u = -ln(1 -
// setBits/m).
func (g Geometry) LiveFalsePositiveRate(setBits uint64) float64 {
	if g.isTable() {
		return cells.CuckooRate(g.Bits/wordBits, g.Hashes, g.EstimateItems(setBits))
	}
	if g.Scheme != SchemeBlocked {
		if g.Hashes < 1 || setBits >= g.Bits {
			return 1
		}
		return math.Pow(float64(setBits)/float64(g.Bits), float64(g.Hashes))
	}
	if g.Bits < wordBits || g.Hashes < 2 || setBits >= g.Bits {
		return 1
	}
	return cells.BlockedRate(g.Hashes/2, math.Log1p(-float64(setBits)/float64(g.Bits)))
}

// EstimateItems is the function [EstimateItems] for this geometry. In a Cuckoo
// it counts copies.
func (g Geometry) EstimateItems(setBits uint64) float64 {
	if g.isTable() {
		return cells.CuckooItems(g.Hashes, setBits)
	}
	return EstimateItems(g.Bits, g.Hashes, setBits)
}

// isTable reports whether the geometry is that of a Cuckoo.
func (g Geometry) isTable() bool { return g.Scheme == SchemeCuckoo && g.info().impossible() == "" }

// impossible says what of the geometry no Filter with a header has, or "".
func (g Geometry) impossible() string {
	if !g.Scheme.oneBit() || g.Hashes < 1 || g.Hashes > maxHashes || g.info().impossible() != "" {
		return g.String()
	}
	return ""
}

// String describes the geometry to a person, without the seed: "107,484 bits
// (13.1 KiB), k=4, blocked, seeded".
func (g Geometry) String() string {
	cells := "bits"
	if g.Scheme.cellBits() > 1 {
		cells = "counters"
	}
	s := fmt.Sprintf("%s %s (%s), k=%d, %v",
		human.Count(g.Bits), cells, human.Bytes(g.Bytes(LayoutBare)), g.Hashes, g.Scheme)
	if g.Seed != 0 {
		s += ", seeded"
	}
	return s
}

// Format is String for every verb.
func (g Geometry) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, g.String()) }

// A Scheme says how an item becomes positions. The zero value is
// [SchemeBlocked], the one to use.
type Scheme uint8

const (
	// SchemeBlocked cuts the cells into words of 53 bits and sets two bits in
	// each of a few words, all from one 128-bit XXH3 digest (Putze, Sanders and
	// Singler, WEA 2007). Requests are short. It takes 12% more memory than
	// [SchemeXXH3]. Measured rates are within 5% of the formula.
	SchemeBlocked Scheme = 0

	// SchemeFNV1a is double hashing over two 64-bit FNV-1a digests, as in the
	// article "Building a high-speed Bloom Filter with Upstash Redis". Use it
	// only to share filters with such programs, mostly with [LayoutBare]. It
	// takes no seed. Its false positive rate is often several times the
	// formula's, less with odd Bits and Hashes: see MIGRATING.md.
	SchemeFNV1a Scheme = 1

	// SchemeXXH3 takes independent bits from one 128-bit XXH3 digest by
	// enhanced double hashing (Dillinger and Manolios, FMCAD 2004). A look-up
	// reads 3.5 times as much.
	SchemeXXH3 Scheme = 4

	// SchemeCuckoo stores fingerprints in buckets of k slots. It is the scheme
	// of a [Cuckoo]; a [Config] does not accept it.
	SchemeCuckoo Scheme = 5

	// The schemes reserved by the format, which a Config does not accept. The
	// header parser knows them: an error can name them.
	schemeXXH3Count4 Scheme = 2
	schemeXXH3Count8 Scheme = 3
)

const wordBits = cells.WordBits

// String returns the scheme's name, such as "blocked", or "Scheme(9)" for an
// unknown one.
func (s Scheme) String() string {
	return nameOf("Scheme", s, "blocked", "fnv1a", "xxh3/4-bit", "xxh3/8-bit", "xxh3", "cuckoo")
}

// MarshalText returns the String.
func (s Scheme) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the String of an exported Scheme. Any other text is
// [upstash.ErrArgument].
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

// ofWords reports whether the cells are whole words of 53 bits.
func (s Scheme) ofWords() bool { return s == SchemeBlocked || s == SchemeCuckoo }

// maxCells returns how many cells of a scheme fit into a Redis string.
func maxCells(s Scheme, l Layout) uint64 {
	width := s.cellBits()
	if width == 0 {
		return 0
	}
	cells := (maxStringBits - l.bodyOffset()) / width
	if s.ofWords() {
		cells -= cells % wordBits
	}
	return cells
}

// A Layout says what a Redis string holds beside the cells. The zero value is
// [LayoutHeaded], the one to use.
type Layout uint8

const (
	// LayoutHeaded puts a header of 24 bytes in front of the cells, which every
	// command reads.
	LayoutHeaded Layout = 0

	// LayoutBare has the cells alone, from bit 0: for strings of other
	// programs. Nothing can be checked: a wrong Config leads to wrong answers
	// without an error, and a missing filter counts as empty.
	LayoutBare Layout = 1
)

const (
	maxStringBits = 1 << 32 // a Redis string holds 512 MiB
	headerBits    = 192
	headerBytes   = headerBits / 8
)

// String returns "headed", "bare", or "Layout(9)" for an unknown one.
func (l Layout) String() string { return nameOf("Layout", l, "headed", "bare") }

// MarshalText returns the String.
func (l Layout) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads a String. Any other text is [upstash.ErrArgument].
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

// A Kind says what a stored string is, by its header.
type Kind uint8

const (
	KindFilter   Kind = 0 // a [Filter]
	KindShard    Kind = 1 // one shard of a [Sharded]
	KindScalable Kind = 2 // the layers of a [Scalable]
	KindWindow   Kind = 3 // the panes of a [Window]
	KindCuckoo   Kind = 4 // a [Cuckoo]: 0 in the header, with [SchemeCuckoo]
)

// String returns the kind's name, such as "filter", or "Kind(9)" for an unknown
// one.
func (k Kind) String() string {
	return nameOf("Kind", k, "filter", "shard", "scalable", "window", "cuckoo")
}

// MarshalText returns the String.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a String. Any other text is [upstash.ErrArgument].
func (k *Kind) UnmarshalText(name []byte) error {
	return unmarshalName(k, name, KindFilter, KindShard, KindScalable, KindWindow, KindCuckoo)
}

// Positions appends the item's positions to dst and returns the longer slice:
// g.Hashes numbers from 0 to g.Bits-1, some perhaps equal, or fewer if no
// Config accepts g. Position p is bit 192+p of the Redis string, or bit p in
// the Bare layout. It allocates nothing if dst has room.
func (g Geometry) Positions(dst []uint64, item string) []uint64 {
	if g.Bits == 0 || g.Hashes < 1 {
		return dst
	}
	if g.Scheme == SchemeFNV1a {
		h1, h2 := cells.FNV1aPair(item)
		return cells.AppendDoubleHashed(dst, h1, h2, g.Bits, g.Hashes)
	}
	x, y := cells.Digest(item, g.Seed)
	if g.Scheme == SchemeBlocked {
		return cells.AppendBlocked(dst, x, y, g.Bits/wordBits, g.Hashes/2)
	}
	return cells.AppendEnhanced(dst, x, y, g.Bits, g.Hashes)
}

// OptimalBits returns the number of bits of a classic Bloom filter
// ([SchemeXXH3], [SchemeFNV1a]) for n items with a false positive rate of p:
// ceil(-n ln p / (ln 2)^2), at least 1 (Bloom 1970). With a whole number of
// hashes the rate is up to 5% above p, or 12% for p above 0.5. It returns
// math.MaxUint64 if p <= 0 or the size is above that, and 0 for NaN.
func OptimalBits(n uint64, p float64) uint64 {
	return cells.ClassicBits(n, p)
}

// OptimalHashes returns the number of positions an item that makes false
// positives rarest in a filter of m bits with n items: max(1, round(m/n ln 2)),
// at most math.MaxInt32. n = 0 counts as 1.
func OptimalHashes(m, n uint64) int {
	return cells.ClassicHashes(m, n)
}

// EstimateItems returns the likely number of distinct items in a filter of m
// bits with setBits of them set, and k positions an item: -(m/k) ln(1 -
// setBits/m) (Swamidass and Baldi, J. Chem. Inf. Model. 47(3), 2007). If
// setBits >= m or k < 1, it returns +Inf.
func EstimateItems(m uint64, k int, setBits uint64) float64 {
	switch {
	case setBits == 0:
		return 0
	case setBits >= m || k < 1:
		return math.Inf(1)
	}
	return -float64(m) / float64(k) * math.Log1p(-float64(setBits)/float64(m))
}

// The header word is a u53 at bit 0 of the string, from its top bit down:
//
//	1 | kind:2 | version:2 | scheme:3 | k:6 | seedTag:7 | m:32
//
// It has 53 bits: JavaScript reads it exactly. The top bit is always 1, and the
// sum of two words is larger than the largest u53. This makes BITFIELD's
// OVERFLOW FAIL INCRBY a "set if zero". Bits 53 to 63 are 0.
const (
	formatVersion = 1
	maxHashes     = 63

	seedTagShift = 32
	hashesShift  = 39
	schemeShift  = 45
	versionShift = 48
	kindShift    = 50
	markerBit    = 1 << 52
)

// headerInfo is a header word in its parts. The seed is known by its tag only.
type headerInfo struct {
	kind    Kind
	scheme  Scheme
	hashes  int
	seedTag uint8
	bits    uint64 // cells, m
}

// encodeHeader returns the header word of a filter. The geometry must be valid:
// a value too large for its field would spill into the next.
func encodeHeader(kind Kind, g Geometry) uint64 {
	h := g.info()
	h.kind = kind
	return h.word()
}

// info is the header of a plain filter or a Cuckoo of this geometry.
func (g Geometry) info() headerInfo {
	return headerInfo{kindIn(0, g.Scheme), g.Scheme, g.Hashes, seedTag(g.Seed), g.Bits}
}

// kindIn returns the kind that a header's two bits and its scheme say.
func kindIn(bits uint64, s Scheme) Kind {
	if bits == 0 && s == SchemeCuckoo {
		return KindCuckoo
	}
	return Kind(bits)
}

func (h headerInfo) word() uint64 {
	return markerBit |
		uint64(h.kind&3)<<kindShift | // a Cuckoo has 0
		formatVersion<<versionShift |
		uint64(h.scheme)<<schemeShift |
		uint64(h.hashes)<<hashesShift |
		uint64(h.seedTag)<<seedTagShift |
		h.bits
}

// geometry returns the geometry in the header, with the caller's seed if the
// tag agrees with it, else with seed 0.
func (h headerInfo) geometry(seed uint64) Geometry {
	if seedTag(seed) != h.seedTag {
		seed = 0
	}
	return Geometry{Bits: h.bits, Hashes: h.hashes, Scheme: h.scheme, Seed: seed}
}

// hasWord reports whether the kind has a word of its own at bit 128.
func (h headerInfo) hasWord() bool { return h.kind != KindFilter }

// parseHeader reads a header word. It refuses a word no filter of version 1
// has; the error wraps ErrNotFilter. A word of 0 is a missing filter, and the
// caller's to deal with.
func parseHeader(word uint64) (headerInfo, error) {
	h := headerInfo{
		scheme:  Scheme(word >> schemeShift & 7),
		hashes:  int(word >> hashesShift & 63),
		seedTag: uint8(word >> seedTagShift & 127),
		bits:    word & (1<<32 - 1),
	}
	h.kind = kindIn(word>>kindShift&3, h.scheme)
	if word>>52 != 1 {
		return headerInfo{}, fmt.Errorf("%w: its first 53 bits hold no header; use a key that"+
			" holds nothing else", ErrNotFilter)
	}
	if v := word >> versionShift & 3; v != formatVersion {
		return headerInfo{}, fmt.Errorf(
			"%w that this package can read: its header says format version %d, not %d: upgrade the"+
				" package if a newer one made it; if not, it is other data, whose first bytes an Add"+
				" has changed; use a key that holds nothing else",
			ErrNotFilter, v, formatVersion)
	}
	if wrong := h.impossible(); wrong != "" {
		return headerInfo{}, fmt.Errorf("%w: its header says %s; use a key that holds nothing else",
			ErrNotFilter, wrong)
	}
	return h, nil
}

// impossible says what no filter has, or "".
func (h headerInfo) impossible() string {
	switch {
	case h.scheme.cellBits() == 0:
		return h.scheme.String()
	case h.hashes == 0 || h.bits == 0 || h.bits > maxCells(h.scheme, LayoutHeaded):
		return fmt.Sprintf("k=%d and %d cells", h.hashes, h.bits)
	case h.scheme == SchemeFNV1a && h.seedTag != 0:
		return "fnv1a with a seed"
	case h.scheme == SchemeBlocked && (h.hashes%2 != 0 || h.bits%wordBits != 0):
		return fmt.Sprintf("blocked with k=%d and %d cells", h.hashes, h.bits)
	case h.scheme == SchemeCuckoo && (h.hashes < 2 || h.hashes > 5 || h.bits%wordBits != 0):
		return fmt.Sprintf("cuckoo with k=%d and %d cells", h.hashes, h.bits)
	}
	return ""
}

// seedTags is how many tags a seed other than 0 can have.
const seedTags = 127

// seedTag returns seven bits for the header, by which filters of different
// seeds differ: 0 for seed 0, else 1 to 127. It reveals less than seven bits of
// a secret seed. In return two secret seeds have the same tag once in 127.
func seedTag(seed uint64) uint8 {
	if seed == 0 {
		return 0
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], seed)
	return uint8(1 + xxh3.Hash(b[:])%seedTags)
}
