package cells

import "math"

// A filter's string says in ten bits which false positive rate it was made for:
// 1 + round(-32 log2 p), and 0 if that is not known. A step is 2.2% of the rate.
const (
	rateSteps    = 32 // a factor of two
	maxCodedRate = 0.25
	minCodedRate = 1.0 / (1 << 31)
)

// RateCode returns the code of the rate p, 0 above 1 in 4 and below 2^-31. It is
// computed as sizes are: it comes out the same on every platform.
func RateCode(p float64) uint64 {
	if !(p >= minCodedRate && p <= maxCodedRate) {
		return 0
	}
	return 1 + uint64(math.Round(-rateSteps*ln(p)/math.Ln2))
}

// RateOf returns the rate of a code. ok is false of a number that RateCode does
// not return, and of 0.
func RateOf(code uint64) (p float64, ok bool) {
	if code < 1+2*rateSteps || code > 1+31*rateSteps {
		return 0, false
	}
	return expNeg(float64(code-1) / rateSteps * math.Ln2), true
}

// BlockedHolds returns how many items so many words hold at rate p if an item
// has z of them, at least 1.
func BlockedHolds(words uint64, z int, p float64) uint64 {
	return max(1, words*wordUnits/BlockedUnits(z, p))
}

// ClassicHolds returns the n at which m independent bits, k an item, have the
// false positive rate p, at least 1: p = (1 - e^(-kn/m))^k.
func ClassicHolds(m uint64, k int, p float64) uint64 {
	fill := expNeg(-ln(p) / float64(k))
	return max(1, saturate(-float64(m)/float64(k)*ln(1-fill)))
}
