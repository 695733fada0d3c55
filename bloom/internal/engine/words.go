package engine

import (
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
)

// U53 is the BITFIELD type of a string's words and of a word of cells.
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
	if !a.Valid || a.Int64>>format.WordBits != 0 {
		return 0, fault.Errorf("bloom: %w: a word that is not a number of 53 bits", upstash.ErrBadResponse)
	}
	return a.Int64, nil
}
