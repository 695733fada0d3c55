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

// fieldWords reads an answer of n words.
func fieldWords(reply upstash.Reply, n int) ([]int64, error) {
	fields, err := reply.Ints(nil)
	if err != nil {
		return nil, Explain(err)
	}
	if len(fields) != n {
		return nil, WrongCount(len(fields), n)
	}
	words := make([]int64, n)
	for i, f := range fields {
		if words[i], err = FieldWord(f); err != nil {
			return nil, err
		}
	}
	return words, nil
}

// integers reads an answer of integers, and appends them to dst.
func integers(reply upstash.Reply, err error, dst []upstash.NullInt64) ([]upstash.NullInt64, error) {
	if err != nil {
		return dst, err
	}
	answers, err := reply.Ints(dst)
	if err == upstash.ErrNil {
		err = fault.Errorf("bloom: %w: null for an array", upstash.ErrBadResponse)
	}
	return answers, err
}

// noNulls returns answers none of which may be null.
func noNulls(answers []upstash.NullInt64) ([]int64, error) {
	numbers := make([]int64, len(answers))
	for i, a := range answers {
		if !a.Valid {
			return nil, fault.Errorf("bloom: %w: null for a number", upstash.ErrBadResponse)
		}
		numbers[i] = a.Int64
	}
	return numbers, nil
}

// countsOf refuses what no count can be.
func countsOf(numbers []int64) ([]uint64, error) {
	counts := make([]uint64, len(numbers))
	for i, n := range numbers {
		if n < 0 {
			return nil, ErrNegative
		}
		counts[i] = uint64(n)
	}
	return counts, nil
}

// numbersOf reads replies that are integers.
func numbersOf(replies []upstash.Reply) ([]int64, error) {
	out := make([]int64, len(replies))
	for i, r := range replies {
		n, err := r.Int64()
		if err != nil {
			return nil, Explain(err)
		}
		out[i] = n
	}
	return out, nil
}
