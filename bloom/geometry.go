package bloom

import (
	"fmt"
	"io"
	"math"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/internal/human"
)

// A Geometry decides which bits an item owns. Two programs agree about a filter
// if they use the same four values; [Config.Geometry] works them out and checks
// them.
//
// The zero value is no filter: it has no bits, and [Geometry.Positions] returns
// none. A Geometry is a small value to copy and compare, and safe for
// concurrent use.
type Geometry struct {
	// Bits is the number of cells, m: from 1 to 2^32-192 behind a header, to
	// 2^32 without one; a multiple of 53, up to 4,294,967,095, for
	// [SchemeBlocked]. A cell is one bit.
	Bits uint64
	// Hashes is the number of positions an item, k: 1 to 63, even for
	// [SchemeBlocked].
	Hashes int
	// Scheme turns an item into positions.
	Scheme Scheme
	// Seed of the hash; 0 is the usual one. A secret seed keeps others from
	// choosing items that collide. So no verb of fmt shows it, and no JSON.
	// [SchemeFNV1a] has none.
	Seed uint64 `json:"-"`
}

// Bytes returns the length of such a filter's Redis string, in bytes: the
// cells, rounded up to whole bytes, and the 24 bytes of header of
// [LayoutHeaded]. Redis takes more memory for it: see the package's Sizing.
func (g Geometry) Bytes(layout Layout) uint64 {
	cell := g.Scheme.cellBits()
	// Rounding up by parts: Bits*cell may be more than a uint64 holds.
	body := g.Bits/8*cell + (g.Bits%8*cell+7)/8
	return layout.bodyOffset()/8 + body
}

// FalsePositiveRate returns the false positive rate, from 0 to 1, of a filter of
// this geometry that holds n items. For the classic schemes it is
// (1 - e^(-kn/m))^k, as for the function of the same name.
//
// For [SchemeBlocked] it is (1 - 2e^-u + e^(-5459u/2756))^(k/2) with u = kn/m:
// the chance that both of an item's bits are set in each of its words, whose
// numbers of items are Poisson distributed (Putze, Sanders and Singler 2007,
// section 3).
//
// For [SchemeCuckoo] n counts copies, and the rate is the chance that one of
// the slots of an item's two buckets holds the item's fingerprint.
func (g Geometry) FalsePositiveRate(n uint64) float64 {
	if g.isTable() {
		return cells.CuckooRate(g.Bits/wordBits, g.Hashes, float64(n))
	}
	if g.Scheme != SchemeBlocked {
		return FalsePositiveRate(g.Bits, g.Hashes, n)
	}
	if g.Bits < wordBits || g.Hashes < 2 {
		return 1
	}
	return cells.BlockedRate(g.Hashes/2, -float64(g.Hashes)*float64(n)/float64(g.Bits))
}

// LiveFalsePositiveRate returns the false positive rate, from 0 to 1, of a
// filter of this geometry if setBits cells are set: (setBits/m)^k for the
// classic schemes, and for [SchemeBlocked] the formula of
// [Geometry.FalsePositiveRate] at u = -ln(1 - setBits/m).
func (g Geometry) LiveFalsePositiveRate(setBits uint64) float64 {
	if g.isTable() {
		return cells.CuckooRate(g.Bits/wordBits, g.Hashes, g.EstimateItems(setBits))
	}
	if g.Scheme != SchemeBlocked {
		return LiveFalsePositiveRate(g.Bits, g.Hashes, setBits)
	}
	if g.Bits < wordBits || g.Hashes < 2 || setBits >= g.Bits {
		return 1
	}
	return cells.BlockedRate(g.Hashes/2, math.Log1p(-float64(setBits)/float64(g.Bits)))
}

// EstimateItems returns the likely number of distinct items in a filter of this
// geometry if setBits cells are set. The formula is the same for every scheme:
// see the function [EstimateItems]. Only [SchemeCuckoo] differs: each copy sets
// about half of the bits of a slot, and the result is the number of copies.
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

// Format is String for every verb: none shows the seed.
func (g Geometry) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, g.String()) }
