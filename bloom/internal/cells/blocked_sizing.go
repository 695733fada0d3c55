package cells

import "math"

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

// BlockedCapacity returns how many items fit into so many words at a rate of
// one in ten to the power of z, the words of an item.
func BlockedCapacity(words uint64, z int) uint64 {
	return words * wordUnits / BlockedUnits(z, math.Pow(10, -float64(z)))
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
