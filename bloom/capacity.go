package bloom

import (
	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/engine"
)

// A filter's string says in the low bits of its birth number which rate it was
// made for. Its geometry holds a Capacity at that rate. That is about the one
// asked for: half a step of the rate is 1.1%, and a small filter holds more,
// because it has a least size.

// rateShift is how far the code is from the end of the word at bit 64.
const rateShift = 64 - wordBits

// rateIn returns the code in a birth number, 0 if there is none.
func rateIn(birth int64) uint64 {
	if birth&engine.BirthMarker == 0 {
		return 0
	}
	return knownRate(uint64(birth) & engine.RateMask)
}

// knownRate returns the code, or 0 if it is that of no rate.
func knownRate(code uint64) uint64 {
	if _, ok := cells.RateOf(code); !ok {
		return 0
	}
	return code
}

// holds returns how many items a filter of the geometry holds at the coded rate
// divided by parts. It is 0 if the rate is not known.
func (g Geometry) holds(code uint64, parts int) uint64 {
	p, ok := cells.RateOf(code)
	switch {
	case !ok || !g.Scheme.oneBit():
		return 0
	case g.Scheme == SchemeBlocked:
		return cells.BlockedHolds(g.Bits/wordBits, g.Hashes/2, p/float64(parts))
	}
	return cells.ClassicHolds(g.Bits, g.Hashes, p/float64(parts))
}
