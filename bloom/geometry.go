package bloom

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

// A Geometry decides which bits an item owns: two programs that share a filter
// use the same four values. [Config.Geometry] works them out. The zero value is
// no filter.
type Geometry struct {
	// Bits is the number of cells, m, and Hashes the number of positions an
	// item, k: see [Config.Bits].
	Bits   uint64
	Hashes int
	// Scheme turns an item into positions.
	Scheme Scheme
	// Seed is the Config's seed.
	Seed uint64 `json:"-"`
}

// Bytes returns the length of the filter's Redis string: the cells, in whole
// bytes, and the 24 bytes of header of [LayoutHeaded].
func (g Geometry) Bytes(layout Layout) uint64 {
	return format.Bytes(layout.bodyOffset(), g.Bits, format.Scheme(g.Scheme).CellBits())
}

// FalsePositiveRate returns the false positive rate, from 0 to 1, with n items
// (copies, in a Cuckoo). FORMAT.md has the formulas and their sources. That of
// the classic schemes is a little low for very small filters.
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
// setBits cells are set.
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

// EstimateItems is the function [EstimateItems] for this geometry; of a Cuckoo
// it returns copies.
func (g Geometry) EstimateItems(setBits uint64) float64 {
	if g.isTable() {
		return cells.CuckooItems(g.Hashes, setBits)
	}
	return EstimateItems(g.Bits, g.Hashes, setBits)
}

// isTable reports whether a Cuckoo has the geometry.
func (g Geometry) isTable() bool {
	return g.Scheme == SchemeCuckoo && g.header(KindCuckoo).Impossible() == ""
}

// impossible says what of the geometry no Filter with a header has, or "".
func (g Geometry) impossible() string {
	if !g.Scheme.oneBit() || g.Hashes < 1 || g.Hashes > format.MaxHashes || g.header(KindFilter).Impossible() != "" {
		return g.String()
	}
	return ""
}

// String describes the geometry to a person, without the seed: "107,484 bits
// (13.1 KiB), k=4, blocked, seeded".
func (g Geometry) String() string {
	cells := "bits"
	if format.Scheme(g.Scheme).CellBits() > 1 {
		cells = "counters"
	}
	s := fmt.Sprintf("%s %s (%s), k=%d, %v",
		human.Count(g.Bits), cells, human.Bytes(g.Bytes(LayoutBare)), g.Hashes, g.Scheme)
	if g.Seed != 0 {
		s += ", seeded"
	}
	return s
}

func (g Geometry) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, g.String()) }

// A Scheme says how an item becomes positions. The zero value is
// [SchemeBlocked], the one to use.
type Scheme uint8

const (
	// SchemeBlocked cuts the cells into words of 53 bits and sets two bits in
	// each of a few words, all from one 128-bit XXH3 digest (Putze, Sanders and
	// Singler, WEA 2007). Requests are short. It takes 12% more memory than
	// [SchemeXXH3].
	SchemeBlocked Scheme = 0

	// SchemeFNV1a is double hashing over two 64-bit FNV-1a digests, as in the
	// article "Building a high-speed Bloom Filter with Upstash Redis". Use it
	// only to share filters with such programs, mostly with [LayoutBare]. Its
	// false positive rate is often several times the formula's: see
	// MIGRATING.md.
	SchemeFNV1a Scheme = 1

	// SchemeXXH3 takes independent bits from one 128-bit XXH3 digest by
	// enhanced double hashing (Dillinger and Manolios, FMCAD 2004). A look-up
	// reads 3.5 times as much. In a filter for fewer than 50 items the rate is
	// above FPRate: up to 1.6 times at 1 in 100, and 6.5 times at 1 in 10,000.
	SchemeXXH3 Scheme = 4

	// SchemeCuckoo stores fingerprints in buckets of k slots. It is the scheme
	// of a [Cuckoo]; a [Config] does not accept it.
	SchemeCuckoo Scheme = 5
)

const wordBits = format.WordBits

// String returns the scheme's name, such as "blocked".
func (s Scheme) String() string { return format.Scheme(s).String() }

func (s Scheme) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the String of an exported Scheme. Any other text is
// [upstash.ErrArgument].
func (s *Scheme) UnmarshalText(name []byte) error {
	return unmarshalName(s, name, SchemeBlocked, SchemeXXH3, SchemeFNV1a, SchemeCuckoo)
}

// oneBit reports whether a Filter can be of this scheme.
func (s Scheme) oneBit() bool {
	return s == SchemeBlocked || s == SchemeFNV1a || s == SchemeXXH3
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
	// without an error, a missing filter counts as empty, and [Filter.Delete]
	// removes whatever is at the key.
	LayoutBare Layout = 1
)

// String returns "headed" or "bare".
func (l Layout) String() string { return nameOf("Layout", l, "headed", "bare") }

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
	return format.HeaderBits
}

// A Kind says what a stored string is, by its header.
type Kind uint8

const (
	KindFilter   Kind = 0 // a [Filter]
	KindShard    Kind = 1 // one shard of a [Sharded]
	KindScalable Kind = 2 // the layers of a [Scalable]
	KindWindow   Kind = 3 // the panes of a [Window]
	KindCuckoo   Kind = 4 // a [Cuckoo]
)

// String returns the kind's name, such as "filter".
func (k Kind) String() string {
	return nameOf("Kind", k, "filter", "shard", "scalable", "window", "cuckoo")
}

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
	k := min(g.Hashes, format.MaxHashes)
	if g.Scheme == SchemeFNV1a {
		return cells.AppendFNV1a(dst, item, g.Bits, k)
	}
	x, y := cells.Digest(item, g.Seed)
	if g.Scheme == SchemeBlocked {
		return cells.AppendBlocked(dst, x, y, g.Bits/wordBits, k/2)
	}
	return cells.AppendEnhanced(dst, x, y, g.Bits, k)
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
// positives rarest in a filter of m bits with n items: max(1, round(m/n ln 2)).
// n = 0 counts as 1.
func OptimalHashes(m, n uint64) int {
	return cells.ClassicHashes(m, n)
}

// EstimateItems returns the likely number of distinct items in a filter of m
// bits with setBits of them set, and k positions an item: -(m/k) ln(1 -
// setBits/m) (Swamidass and Baldi, J. Chem. Inf. Model. 47(3), 2007). If
// setBits >= m or k < 1, it returns +Inf.
func EstimateItems(m uint64, k int, setBits uint64) float64 {
	if setBits == 0 {
		return 0
	}
	if setBits >= m || k < 1 {
		return math.Inf(1)
	}
	return -float64(m) / float64(k) * math.Log1p(-float64(setBits)/float64(m))
}

// header is the header of a kind of filter with this geometry. It must be valid: a
// value too large for its field would spill into the next.
func (g Geometry) header(kind Kind) format.Header {
	return format.Header{
		Kind: format.Kind(kind), Scheme: format.Scheme(g.Scheme), Hashes: g.Hashes, SeedTag: format.SeedTag(g.Seed),
		Bits: g.Bits,
	}
}

// geometryOf returns the geometry in a header, with the caller's seed if the tag
// agrees with it, else with seed 0.
func geometryOf(h format.Header, seed uint64) Geometry {
	if format.SeedTag(seed) != h.SeedTag {
		seed = 0
	}
	return Geometry{Bits: h.Bits, Hashes: h.Hashes, Scheme: Scheme(h.Scheme), Seed: seed}
}

// holds returns how many items a filter of the geometry holds at the coded rate
// divided by parts. It is 0 if the rate is not known.
//
// A filter's string says in the low bits of its birth number which rate it was
// made for. Its geometry holds a Capacity at that rate. That is about the one
// asked for: half a step of the rate is 1.1%, and a small filter holds more,
// because it has a least size.
func (g Geometry) holds(code uint64, parts int) uint64 {
	p, ok := cells.RateOf(code)
	if !ok || !g.Scheme.oneBit() {
		return 0
	}
	if g.Scheme == SchemeBlocked {
		return cells.BlockedHolds(g.Bits/wordBits, g.Hashes/2, p/float64(parts))
	}
	return cells.ClassicHolds(g.Bits, g.Hashes, p/float64(parts))
}

// nameOf returns the name of a value, or "Scheme(9)" for one without a name.
func nameOf[T ~uint8](typ string, v T, names ...string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", typ, uint8(v))
}

// unmarshalName sets *to to the value with this name.
func unmarshalName[T fmt.Stringer](to *T, name []byte, values ...T) error {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = v.String()
		if names[i] == string(name) {
			*to = v
			return nil
		}
	}
	_, typ, _ := strings.Cut(fmt.Sprintf("%T", *to), ".")
	return fault.Errorf("bloom: %w: no %s is called %q: use one of %s",
		upstash.ErrArgument, typ, name, strings.Join(names, ", "))
}
