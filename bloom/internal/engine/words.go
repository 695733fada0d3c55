package engine

import (
	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// A string begins with three words. The header is at bit 0. The birth number is
// at bit 64, from its top bit down:
//
//	1 | random:42 | rate:10
//
// Every command that can create a filter sets it if it is zero, so a filter that
// was deleted and made again has another. The rate is what the filter was made
// for, 0 if that is not known; nobody compares it. Bits 117 to 126 are 0. Bit 127
// is 1 if the TTL is settled: EXPIRE was run, or Persist or Expire was called. The
// kind's own word is at bit 128. The first bit of each word is 1: a write sets it
// if it is zero.
const (
	BirthOffset    = 64
	SettledOffset  = 127
	KindWordOffset = 128
	BirthMarker    = 1 << 52
	RateMask       = 1<<10 - 1

	// HeaderBytes is the length of the three words. The cells follow.
	HeaderBytes = 24
)

// U53 is the BITFIELD type of these words and of a word of cells: the widest
// integer that JSON readers, JavaScript and Lua all carry exactly.
const U53 = "u53"

// WrongCount is the error of an array with another length than wanted.
func WrongCount(got, want int) error {
	return fault.Errorf("bloom: %w: %d answers to %d operations", upstash.ErrBadResponse, got, want)
}

// CountOnes counts the bits that are 1. It refuses what no bit can be: a wrong
// answer must not become a "no".
func CountOnes(bits []upstash.NullInt64) (ones int, err error) {
	for _, b := range bits {
		if !b.Valid || b.Int64>>1 != 0 {
			return 0, fault.Errorf("bloom: %w: a bit that is neither 0 nor 1", upstash.ErrBadResponse)
		}
		ones += int(b.Int64)
	}
	return ones, nil
}

// FieldWord refuses what no u53 can be. Above all it refuses null: as a 0 it
// would mean a missing filter, or a word without a bit.
func FieldWord(a upstash.NullInt64) (int64, error) {
	if !a.Valid || a.Int64>>cells.WordBits != 0 {
		return 0, fault.Errorf("bloom: %w: a word that is not a number of 53 bits", upstash.ErrBadResponse)
	}
	return a.Int64, nil
}
