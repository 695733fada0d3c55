package cells

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// A size reaches its rate, and a smaller one by more than the step of sizes,
// 2^-20 words an item, does not.
func TestBlockedSizeReachesRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 1e8).Draw(t, "n")
		p := math.Pow(10, -rapid.Float64Range(0.001, 9).Draw(t, "digits"))
		m, k := BlockedSize(n, max(p, MinBlockedRate))
		if m%WordBits != 0 || k%2 != 0 || m < WordBits*minBlockedWords {
			t.Fatalf("n=%d p=%v: m=%d k=%d", n, p, m, k)
		}
		rate := func(m uint64) float64 { return BlockedRate(k/2, -float64(k)*float64(n)/float64(m)) }
		if got := rate(m); got > p*(1+1e-12) {
			t.Fatalf("n=%d p=%v: m=%d k=%d has a rate of %v", n, p, m, k, got)
		}
		less := m - WordBits*(2+n>>20)
		if got := rate(less); m > WordBits*minBlockedWords && got <= p {
			t.Fatalf("n=%d p=%v: m=%d k=%d would do, with a rate of %v", n, p, less, k, got)
		}
	})
}

func TestBlockedSizeTable(t *testing.T) {
	const n = 1_000_000
	for _, c := range []struct {
		p, bitsAnItem float64
		words         int
	}{
		{0.1, 5.37, 1},
		{0.01, 10.75, 2},
		{0.001, 16.12, 3},
		{1e-6, 32.24, 6},
		// A rate between two powers of ten takes the words of the lower.
		{0.0999, 4.88, 2},
		{0.9, 0.674, 1},
		{MinBlockedRate, 48.4, 9},
	} {
		m, k := BlockedSize(n, c.p)
		if got := float64(m) / n; math.Abs(got-c.bitsAnItem) > 0.01*c.bitsAnItem || k != 2*c.words {
			t.Errorf("p=%v: %.2f bits and %d words an item, want %v and %d", c.p, got, k/2, c.bitsAnItem, c.words)
		}
	}
}

// A rate less than 1e-9 of its value below a power of ten takes the words of that
// power.
func TestBlockedWordsAnItem(t *testing.T) {
	power := 1.0
	for z := 1; z <= 9; z++ {
		power /= 10
		for p, want := range map[float64]int{
			power: z, math.Nextafter(power, 0): z, power * (1 - 1e-10): z, power * (1 - 1e-8): z + 1, power * 1.1: z,
		} {
			if got := blockedWordsAnItem(p); got != want {
				t.Errorf("p=%v: %d words, want %d", p, got, want)
			}
		}
	}
}

// The guess saves time and decides nothing.
func TestBlockedUnitsIsSmallest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		z := rapid.IntRange(1, 9).Draw(t, "z")
		p := rapid.OneOf(
			rapid.Float64Range(math.Pow(10, -float64(z)), 1-1e-9),
			rapid.SampledFrom([]float64{math.Nextafter(1, 0), 1 - 1e-15, 1 - 1e-12}),
		).Draw(t, "p")
		got := BlockedUnits(z, p)
		if at := blockedUnitsRate(z, got); at > p {
			t.Fatalf("z=%d p=%v: %d units have a rate of %v", z, p, got, at)
		}
		if below := blockedUnitsRate(z, got-1); got > 1 && below <= p {
			t.Fatalf("z=%d p=%v: %d units have a rate of %v", z, p, got-1, below)
		}
	})
}

// Sizes are decided by the same rate as in docs and Stats.
func TestBlockedRatesAgree(t *testing.T) {
	for z := 1; z <= 9; z++ {
		for c := uint64(10_000); c < maxWordUnits; c += c / 3 {
			u := 2 * float64(z) * wordUnits / (WordBits * float64(c))
			exact, want := blockedUnitsRate(z, c), BlockedRate(z, -u)
			// The sum of the first cancels if u is small.
			if math.Abs(exact-want) > 1e-9*want+1e-15 {
				t.Errorf("z=%d c=%d: %v, want %v", z, c, exact, want)
			}
		}
	}
}
