package cells

import "math"

// Two programs with the same Config must compute the same number of bits. So
// whatever decides a size is computed by + - * / alone, in one order on every
// platform: the functions of package math are assembly on some. A product is
// converted explicitly before it is added, which keeps compilers from fusing
// the two operations.

// expNeg returns e^-x for x from 0 up: the Taylor series of e^(x/16) and four
// squarings of its inverse.
func expNeg(x float64) float64 {
	y := x / 16
	t := 1.0
	for i := 40; i >= 1; i-- {
		t = 1 + float64(float64(y*t)/float64(i))
	}
	r := 1 / t
	for range 4 {
		r = float64(r * r)
	}
	return r
}

// ln returns ln x for x above 0, with an error of one or two units in the
// last place: x is f * 2^e, and ln f = 2 atanh((f-1)/(f+1)).
func ln(x float64) float64 {
	f, e := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f, e = 2*f, e-1
	}
	s := (f - 1) / (f + 1) // 0.172 at most
	square := float64(s * s)
	sum := 0.0
	for i := 27; i >= 1; i -= 2 {
		sum = 1/float64(i) + float64(square*sum)
	}
	return float64(float64(e)*math.Ln2) + float64(2*s*sum)
}

// ln2Squared turns -ln p into bits of filter: one ln 2 changes the base from e to
// 2, and the other is the price of a filter over an optimal structure, 44%.
const ln2Squared = math.Ln2 * math.Ln2

// ClassicBits returns ceil(-n ln p / (ln 2)^2), for n and p as bloom.OptimalBits
// takes them.
func ClassicBits(n uint64, p float64) uint64 {
	switch {
	case math.IsNaN(p):
		return 0
	case p <= 0:
		return math.MaxUint64
	case p >= 1:
		return 1
	}
	bits := math.Ceil(-float64(max(n, 1)) * ln(p) / ln2Squared)
	return max(1, saturate(bits))
}

// ClassicHashes returns max(1, round(m/n ln 2)), at most math.MaxInt32.
func ClassicHashes(m, n uint64) int {
	k := math.Round(float64(m) / float64(max(n, 1)) * math.Ln2)
	return int(min(max(k, 1), math.MaxInt32))
}

// saturate converts a float, which is neither negative nor NaN, to MaxUint64 at
// most. Go's own conversion of a larger value differs between amd64, arm64 and
// wasm.
func saturate(f float64) uint64 {
	if f >= 1<<64 {
		return math.MaxUint64
	}
	return uint64(f)
}

const (
	MinBlockedRate  = 1e-9
	MaxBlockedItems = 1<<36 - 1
	// minBlockedWords keeps small filters of low rates to their formula.
	minBlockedWords = 32

	// The unit of sizes is 2^-20 words an item.
	wordUnits    = 1 << 20
	maxWordUnits = 1 << 26

	// pairShare is 5459/2756. An item leaves both of two given bits of its word
	// at 0 with a chance of (51*50)/(53*52) = 1 - 206/2756, and one given bit with
	// a chance of 1 - 2/53. The share is (206/2756) / (2/53), a little below 2.
	pairNumerator   = 5459
	pairDenominator = 2756
	pairShare       = float64(pairNumerator) / pairDenominator
)

// BlockedSize returns the geometry's m and k for n items at rate p: one word an
// item for each factor of ten, and the fewest words with rate p. n is from 1 to
// MaxBlockedItems and p from MinBlockedRate to below 1.
func BlockedSize(n uint64, p float64) (m uint64, k int) {
	z := blockedWordsAnItem(p)
	words := max(minBlockedWords, (n*BlockedUnits(z, p)+wordUnits-1)/wordUnits)
	return WordBits * words, 2 * z
}

func blockedWordsAnItem(p float64) (z int) {
	const tolerance = 1 - 1e-9 // 0.001 needs no fourth word
	z = 1
	for t := 0.1; p < float64(t*tolerance); t /= 10 {
		z++
	}
	return z
}

// BlockedUnits returns the smallest number of units of words an item whose rate
// is p or less. Bisection finds it in 26 steps of 0.3 microseconds. If a guess
// is right, two steps prove it.
func BlockedUnits(z int, p float64) uint64 {
	guess := guessUnits(z, p)
	if blockedUnitsRate(z, guess) <= p && blockedUnitsRate(z, guess-1) > p {
		return guess
	}
	low, high := uint64(1), uint64(maxWordUnits)
	for low < high {
		middle := (low + high) / 2
		if blockedUnitsRate(z, middle) <= p {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// guessUnits returns about what BlockedUnits does, from 2 to maxWordUnits. It
// solves BlockedRate for the share of 0 bits by Newton's method. It may come
// out differently on another platform: only the time depends on it.
func guessUnits(z int, p float64) uint64 {
	word := math.Pow(p, 1/float64(z))
	// The two bits of an item are nearly independent: word is about fill^2.
	u := -math.Log1p(-math.Sqrt(word))
	for range 3 {
		one, both := math.Exp(-u), math.Exp(-pairShare*u)
		u -= (1 - float64(2*one) + both - word) / (float64(2*one) - float64(pairShare*both))
	}
	units := math.Ceil(float64(2*z*wordUnits) / (WordBits * u))
	if !(units >= 2) { // NaN too, of a rate next to 1
		return 2
	}
	return uint64(min(units, maxWordUnits))
}

// blockedUnitsRate is BlockedRate at c units of words an item, in an arithmetic
// that is the same everywhere.
func blockedUnitsRate(z int, c uint64) float64 {
	u := float64(2*z*wordUnits) / float64(WordBits*c)
	w := (1 - float64(2*expNeg(u))) + expNeg(float64(pairNumerator*u)/pairDenominator)
	rate := w
	for range z - 1 {
		rate = float64(rate * w)
	}
	return rate
}

// BlockedRate returns the false positive rate of z words an item. empty, L
// below, is the natural logarithm of the share of 0 bits. Both of the item's
// bits in a word are set with a chance of 1 - 2P(one is 0) + P(both are 0). For
// words with a Poisson number of items this is 1 - 2e^L + e^(pairShare L).
func BlockedRate(z int, empty float64) float64 {
	// The sum cancels if L is small; expm1 keeps its digits.
	word := math.Expm1(pairShare*empty) - float64(2*math.Expm1(empty))
	return math.Pow(min(max(word, 0), 1), float64(z))
}

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
