package bloom

import (
	"fmt"
	"io"

	"github.com/upbloom/upbloom/internal/human"
)

// A Geometry is all that decides which bits an item owns. Two programs agree about a filter
// when they use the same four values; [Config.Geometry] works them out and checks them.
//
// The zero value is no filter: it has no bits, and Positions returns none. A Geometry is a
// small value to copy and compare, and safe for concurrent use.
type Geometry struct {
	// Bits is the number of cells, m: from 1 to 2^32-128 behind a header, to 2^32 without one.
	// A cell is one bit.
	Bits uint64
	// Hashes is the number of positions an item, k: 1 to 63.
	Hashes int
	// Scheme turns an item into positions.
	Scheme Scheme
	// Seed of the hash; 0 is the usual one. A secret seed keeps others from choosing items
	// that collide, so that no verb of fmt shows it, and no JSON. SchemeFNV1a has none.
	Seed uint64 `json:"-"`
}

// Bytes returns the length of the Redis string that holds such a filter: the cells, rounded
// up to whole bytes, and 16 bytes of header where the layout has one.
func (g Geometry) Bytes(layout Layout) uint64 {
	cell := g.Scheme.cellBits()
	// Rounding up by parts: Bits*cell may be more than a uint64 holds.
	body := g.Bits/8*cell + (g.Bits%8*cell+7)/8
	return layout.bodyOffset()/8 + body
}

// String describes the geometry to a person, without the seed:
// "95,851 bits (11.7 KiB), k=7, xxh3, seeded".
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

// Format is String for every verb, so that none shows the seed.
func (g Geometry) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, g.String()) }
