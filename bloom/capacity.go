package bloom

import (
	"github.com/upbloom/upbloom/bloom/internal/cells"
)

// A filter's string says in the low bits of its birth number which rate it was
// made for. Its geometry holds a Capacity at that rate. That is about the one
// asked for: half a step of the rate is 1.1%, and a small filter holds more,
// because it has a least size.

// holds returns how many items a filter of the geometry holds at the coded rate
// divided by parts. It is 0 if the rate is not known.
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
