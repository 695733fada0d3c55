package bloom

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
		m, k := blockedSize(n, max(p, minBlockedRate))
		g := Geometry{Bits: m, Hashes: k}
		if m%wordBits != 0 || k%2 != 0 || m < wordBits*minBlockedWords {
			t.Fatalf("n=%d p=%v: %v", n, p, g)
		}
		if got := g.FalsePositiveRate(n); got > p*(1+1e-12) {
			t.Fatalf("n=%d p=%v: %v has a rate of %v", n, p, g, got)
		}
		g.Bits -= wordBits * (2 + n>>20)
		if got := g.FalsePositiveRate(n); m > wordBits*minBlockedWords && got <= p {
			t.Fatalf("n=%d p=%v: %v would do, with a rate of %v", n, p, g, got)
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
		{minBlockedRate, 48.4, 9},
	} {
		m, k := blockedSize(n, c.p)
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
		got := blockedUnits(z, p)
		if at := blockedUnitsRate(z, got); at > p {
			t.Fatalf("z=%d p=%v: %d units have a rate of %v", z, p, got, at)
		}
		if below := blockedUnitsRate(z, got-1); got > 1 && below <= p {
			t.Fatalf("z=%d p=%v: %d units have a rate of %v", z, p, got-1, below)
		}
	})
}

// The rate that decides sizes is the rate that docs and Stats speak of.
func TestBlockedRatesAgree(t *testing.T) {
	for z := 1; z <= 9; z++ {
		for c := uint64(10_000); c < maxWordUnits; c += c / 3 {
			u := 2 * float64(z) * wordUnits / (wordBits * float64(c))
			exact, want := blockedUnitsRate(z, c), blockedRate(z, -u)
			// The sum of the first cancels if u is small.
			if math.Abs(exact-want) > 1e-9*want+1e-15 {
				t.Errorf("z=%d c=%d: %v, want %v", z, c, exact, want)
			}
		}
	}
}

func TestBlockedRateEdges(t *testing.T) {
	g := Geometry{Bits: 53 * 1000, Hashes: 4}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"empty", g.FalsePositiveRate(0), 0},
		{"far above capacity", g.FalsePositiveRate(math.MaxUint64), 1},
		{"live, empty", g.LiveFalsePositiveRate(0), 0},
		{"live, full", g.LiveFalsePositiveRate(g.Bits), 1},
		{"live, beyond", g.LiveFalsePositiveRate(g.Bits + 1), 1},
		{"no words", Geometry{Bits: 52, Hashes: 4}.FalsePositiveRate(1), 1},
		{"no words, live", Geometry{Bits: 52, Hashes: 4}.LiveFalsePositiveRate(0), 1},
		{"no hashes", Geometry{Bits: 53, Hashes: 1}.FalsePositiveRate(1), 1},
		{"no hashes, live", Geometry{Bits: 53}.LiveFalsePositiveRate(0), 1},
		// Two bits of a word that is half full: 2^-(5459/2756).
		{"live, half full", Geometry{Bits: 5300, Hashes: 2}.LiveFalsePositiveRate(2650), 0.253355},
		// One item in so many words: about 53/2756 u.
		{"small", Geometry{Bits: 53 << 26, Hashes: 2}.FalsePositiveRate(1), 1.08146e-11},
	} {
		if math.Abs(c.got-c.want) > 1e-4*c.want {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}
