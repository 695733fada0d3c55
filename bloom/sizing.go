package bloom

import (
	"math"

	"github.com/upbloom/upbloom/bloom/internal/cells"
)

// OptimalBits returns the number of bits of a classic Bloom filter
// ([SchemeXXH3], [SchemeFNV1a]) for n items with a false positive rate of p:
// ceil(-n ln p / (ln 2)^2). That is 9.6 bits an item at p = 0.01 and 4.8 more
// for each further factor of ten. As the number of hashes is rounded, the rate
// can come out above p: by up to 5%, and up to 12% for p above 0.5. A filter of
// [SchemeBlocked] is sized by [Config.Geometry] alone.
//
// n = 0 counts as 1. A p of 1 or more needs 1 bit, as any filter will do. A p
// of 0 or less is out of any filter's reach: it returns math.MaxUint64, as do
// sizes above that. A NaN returns 0, which no [Config] accepts.
//
// The formula is due to Bloom, "Space/time trade-offs in hash coding with
// allowable errors", CACM 13(7), 1970; see also Tarkoma, Rothenberg and
// Lagerspetz, "Theory and practice of Bloom filters for distributed systems",
// IEEE Surveys 14(1), 2012, section 2.
func OptimalBits(n uint64, p float64) uint64 {
	return cells.ClassicBits(n, p)
}

// OptimalHashes returns the number of positions an item that makes false
// positives rarest in a filter of m bits with n items: max(1, round(m/n ln 2)).
//
// n = 0 counts as 1. The result is at most math.MaxInt32, on every platform; a
// [Config] accepts no more than 63.
//
// Source: Tarkoma et al., "Theory and practice of Bloom filters for distributed
// systems", IEEE Surveys 14(1), 2012, section 2.
func OptimalHashes(m, n uint64) int {
	return cells.ClassicHashes(m, n)
}

// FalsePositiveRate returns the false positive rate, from 0 to 1, of a filter of
// m bits and k positions an item that holds n items: (1 - e^(-kn/m))^k. It holds
// for the classic schemes; [Geometry.FalsePositiveRate] knows every scheme.
// [LiveFalsePositiveRate] is the rate of a filter whose set bits were counted.
//
// For an empty filter, n = 0, it returns 0. If m = 0 or k < 1, it returns 1: such
// a filter finds every item.
//
// The approximation is a little low for very small filters: see Bose et al.,
// "On the false-positive rate of Bloom filters", Information Processing Letters
// 108(4), 2008.
func FalsePositiveRate(m uint64, k int, n uint64) float64 {
	if m == 0 || k < 1 {
		return 1
	}
	// 1 - e^-x loses all its digits if x is small; -expm1(-x) keeps them.
	fill := -math.Expm1(-float64(k) * float64(n) / float64(m))
	return math.Pow(fill, float64(k))
}

// LiveFalsePositiveRate returns the false positive rate, from 0 to 1, of a
// filter of m bits and k positions an item, if setBits bits are set:
// (setBits/m)^k. It assumes nothing about the number of items: an item that was
// never added is found if all of its k bits happen to be set.
//
// If m = 0, k < 1 or setBits >= m, it returns 1: such a filter finds every item.
//
// The value is exact for positions drawn at random: Bloom, "Space/time
// trade-offs in hash coding with allowable errors", CACM 13(7), 1970.
func LiveFalsePositiveRate(m uint64, k int, setBits uint64) float64 {
	if k < 1 || setBits >= m {
		return 1
	}
	return math.Pow(float64(setBits)/float64(m), float64(k))
}

// EstimateItems returns the likely number of distinct items in a filter of m
// bits and k positions an item, if setBits bits are set: -(m/k) ln(1 -
// setBits/m). The error is within a few percent up to the filter's capacity and
// grows with the fill.
//
// If no bit is set, it returns 0. For a saturated filter, setBits >= m, it
// returns +Inf: the number cannot be known any more. For k < 1 it also returns
// +Inf, because no number of items sets a bit then.
//
// Source: Swamidass and Baldi, "Mathematical correction for fingerprint
// similarity measures to improve chemical retrieval", J. Chem. Inf. Model.
// 47(3), 2007.
func EstimateItems(m uint64, k int, setBits uint64) float64 {
	switch {
	case setBits == 0:
		return 0
	case setBits >= m || k < 1:
		return math.Inf(1)
	}
	return -float64(m) / float64(k) * math.Log1p(-float64(setBits)/float64(m))
}
