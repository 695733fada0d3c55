package engine

import "github.com/upbloom/upbloom/internal/lots"

// The second word is a u53 at bit 64, the filter's birth number: 1 and then 52
// random bits. Every command that can create a filter sets it if it is zero. So
// a filter that was deleted and made again has another. Bits 117 to 126 are 0.
// Bit 127 is 1 if the TTL is settled: EXPIRE was run, or Persist or Expire was
// called.
const (
	BirthOffset   = 64
	SettledOffset = 127
	BirthMarker   = 1 << 52
)

// u53 is the BITFIELD type of the header, of the birth number and of a word: the
// widest integer that JSON readers, JavaScript and Lua all carry exactly.
const U53 = "u53"

// newBirth draws the birth number of a call, the same in all of its attempts.
func NewBirth() int64 { return int64(BirthMarker | lots.Uint64()>>12) }
