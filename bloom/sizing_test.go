package bloom

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestOptimalBitsEdges(t *testing.T) {
	for _, c := range []struct {
		n    uint64
		p    float64
		want uint64
	}{
		{0, 0.01, 10}, // as for one item
		{1, 0.01, 10},
		{1, 0.999, 1},
		{1000, 1, 1},
		{1000, 1.5, 1},
		{1000, math.Inf(1), 1},
		{0, 1, 1},
		{1000, 0, math.MaxUint64},
		{0, 0, math.MaxUint64},
		{1000, -0.1, math.MaxUint64},
		{1000, math.Inf(-1), math.MaxUint64},
		{1000, math.NaN(), 0},
		{1, 1e-300, 1438},
		{math.MaxUint64, 0.01, math.MaxUint64},
		{math.MaxUint64 / 2, 0.01, math.MaxUint64},
	} {
		if got := OptimalBits(c.n, c.p); got != c.want {
			t.Errorf("OptimalBits(%d, %v) = %d, want %d", c.n, c.p, got, c.want)
		}
	}
}

func TestOptimalHashesEdges(t *testing.T) {
	for _, c := range []struct {
		m, n uint64
		want int
	}{
		{0, 0, 1},
		{0, 10, 1},
		{1, math.MaxUint64, 1},
		{10, 0, 7}, // as for one item
		{10, 1, 7},
		{465, 1000, 1}, // rounds to 0: every look-up would be found
		{math.MaxUint64, 1, math.MaxInt32},
		{math.MaxUint64, math.MaxUint64, 1},
	} {
		if got := OptimalHashes(c.m, c.n); got != c.want {
			t.Errorf("OptimalHashes(%d, %d) = %d, want %d", c.m, c.n, got, c.want)
		}
	}
}

// Over the whole range of rates the size is usable, and its rate is as asked,
// apart from the rounding of k that OptimalBits documents.
func TestSizingWholeRange(t *testing.T) {
	rates := []float64{
		0.999, 0.99, 0.9, 0.8, 0.7, 0.6, 0.5, 0.3, 0.2, 0.1, 0.05, 0.01,
		1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9,
	}
	for _, n := range []uint64{1, 2, 10, 1000, 1e6, 50e6} {
		for _, p := range rates {
			m := OptimalBits(n, p)
			k := OptimalHashes(m, n)
			if m < 1 || k < 1 || k > maxHashes {
				t.Fatalf("n=%d p=%v: m=%d k=%d", n, p, m, k)
			}
			allowed := 1.05
			if p > 0.5 {
				allowed = 1.12
			}
			if got := FalsePositiveRate(m, k, n); got > p*allowed {
				t.Errorf("n=%d p=%v: m=%d k=%d has a rate of %v", n, p, m, k, got)
			}
			if _, err := (Config{Capacity: n, FPRate: p, Scheme: SchemeXXH3}).Geometry(); err != nil {
				t.Errorf("n=%d p=%v: %v", n, p, err)
			}
		}
	}
}

func TestRatesAndEstimates(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"FPR at capacity", FalsePositiveRate(95851, 7, 10000), 0.01003902},
		{"FPR at twice the capacity", FalsePositiveRate(95851, 7, 20000), 0.1574508},
		{"FPR of an empty filter", FalsePositiveRate(95851, 7, 0), 0},
		{"FPR far below capacity", FalsePositiveRate(1<<32, 1, 1), 1.0 / (1 << 32)},
		{"FPR far above capacity", FalsePositiveRate(8, 2, math.MaxUint64), 1},
		{"FPR without bits", FalsePositiveRate(0, 7, 10), 1},
		{"FPR without hashes", FalsePositiveRate(8, 0, 10), 1},
		{"FPR of negative hashes", FalsePositiveRate(8, -1, 0), 1},

		{"live, half full", LiveFalsePositiveRate(1000, 7, 500), 1.0 / 128},
		{"live, empty", LiveFalsePositiveRate(1000, 7, 0), 0},
		{"live, saturated", LiveFalsePositiveRate(1000, 7, 1000), 1},
		{"live, beyond", LiveFalsePositiveRate(1000, 7, 1001), 1},
		{"live, without bits", LiveFalsePositiveRate(0, 7, 0), 1},
		{"live, without hashes", LiveFalsePositiveRate(10, 0, 1), 1},

		{"items, empty", EstimateItems(1000, 7, 0), 0},
		{"items, one of many", EstimateItems(1<<32, 1, 1), 1},
		{"items, half full", EstimateItems(1000, 7, 500), 1000 * math.Ln2 / 7},
		{"items, one bit short", EstimateItems(1000, 7, 999), 1000 * math.Log(1000) / 7},
		{"items, saturated", EstimateItems(1000, 7, 1000), inf},
		{"items, beyond", EstimateItems(1000, 7, 1001), inf},
		{"items, without bits", EstimateItems(0, 7, 0), 0},
		{"items, without hashes", EstimateItems(1000, 0, 1), inf},
		{"items, largest", EstimateItems(math.MaxUint64, 1, math.MaxUint64), inf},
	} {
		if c.got != c.want && !(math.Abs(c.got-c.want) <= 1e-5*c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

// No input leads to NaN, a negative number or a rate above 1.
func TestSizingTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, n := rapid.Uint64().Draw(t, "m"), rapid.Uint64().Draw(t, "n")
		k := rapid.Int().Draw(t, "k")
		if bits := OptimalBits(n, rapid.Float64().Draw(t, "p")); bits == 0 {
			t.Fatal("OptimalBits is 0")
		}
		if got := OptimalHashes(m, n); got < 1 || got > math.MaxInt32 {
			t.Fatalf("OptimalHashes is %d", got)
		}
		blocked := Geometry{Bits: m, Hashes: k}
		for _, rate := range []float64{
			FalsePositiveRate(m, k, n), LiveFalsePositiveRate(m, k, n),
			blocked.FalsePositiveRate(n), blocked.LiveFalsePositiveRate(n),
		} {
			if !(rate >= 0 && rate <= 1) {
				t.Fatalf("rate %v", rate)
			}
		}
		if items := EstimateItems(m, k, n); !(items >= 0) {
			t.Fatalf("EstimateItems is %v", items)
		}
	})
}

// The formulas are inverses: the expected fill of n items leads back to n, and
// its live rate is the expected rate.
func TestEstimateInvertsFill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1000, 1e6).Draw(t, "n")
		p := rapid.Float64Range(1e-6, 0.5).Draw(t, "p")
		m := OptimalBits(n, p)
		k := OptimalHashes(m, n)
		fill := -math.Expm1(-float64(k) * float64(n) / float64(m))
		set := uint64(math.Round(fill * float64(m)))
		if got := EstimateItems(m, k, set); math.Abs(got-float64(n)) > 0.01*float64(n) {
			t.Fatalf("n=%d m=%d k=%d set=%d: estimated %v", n, m, k, set, got)
		}
		want := FalsePositiveRate(m, k, n)
		if got := LiveFalsePositiveRate(m, k, set); math.Abs(got-want) > 0.05*want {
			t.Fatalf("n=%d m=%d k=%d set=%d: live %v, want %v", n, m, k, set, got, want)
		}
	})
}
