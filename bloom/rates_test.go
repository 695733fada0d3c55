package bloom

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"testing"
)

// bitset is a filter's body in memory, with no format.
type bitset []uint64

func newBitset(m uint64) bitset { return make(bitset, (m+63)/64) }

func (b bitset) set(positions []uint64) {
	for _, p := range positions {
		b[p/64] |= 1 << (p % 64)
	}
}

func (b bitset) has(positions []uint64) bool {
	for _, p := range positions {
		if b[p/64]>>(p%64)&1 == 0 {
			return false
		}
	}
	return true
}

func (b bitset) count() (n uint64) {
	for _, word := range b {
		n += uint64(bits.OnesCount64(word))
	}
	return n
}

func numbered(prefix string, i int) string { return prefix + strconv.Itoa(i) }

// measurement sums up several filters of one geometry.
type measurement struct {
	falseNegatives, falsePositives, queries int
	liveRate, estimate                      float64 // means over the filters
}

func (m measurement) rate() float64 { return float64(m.falsePositives) / float64(m.queries) }

// measure fills filters with n items each and asks for items that were never added. Of one
// small filter the fill alone can be off by a tenth, so that they get several.
func measure(g Geometry, n, queries, filters int) measurement {
	m := measurement{queries: queries / filters * filters}
	var dst []uint64
	for filter := range filters {
		if g.Scheme == SchemeXXH3 {
			g.Seed = uint64(filter)
		}
		added, other := fmt.Sprintf("%d/user-", filter), fmt.Sprintf("%d/guest-", filter)
		body := newBitset(g.Bits)
		for i := range n {
			body.set(g.Positions(dst[:0], numbered(added, i)))
		}
		for i := range n {
			if dst = g.Positions(dst[:0], numbered(added, i)); !body.has(dst) {
				m.falseNegatives++
			}
		}
		for i := range queries / filters {
			if dst = g.Positions(dst[:0], numbered(other, i)); body.has(dst) {
				m.falsePositives++
			}
		}
		set := body.count()
		m.liveRate += LiveFalsePositiveRate(g.Bits, g.Hashes, set) / float64(filters)
		m.estimate += EstimateItems(g.Bits, g.Hashes, set) / float64(filters)
	}
	return m
}

// Measured rates are within 10% of the formula (20% at n = 100, where the formula itself is
// a few percent low), with 2,000 or more false positives a case: a spread of 2%. Items and
// seeds are fixed, and so is the outcome.
func TestMeasuredRates(t *testing.T) {
	for _, c := range []struct {
		n, filters int
		spread     float64
	}{
		{100, 200, 0.20},
		{1_000, 50, 0.10},
		{10_000, 5, 0.10},
		{100_000, 1, 0.10},
	} {
		for _, p := range []float64{0.1, 0.01, 0.001} {
			t.Run(fmt.Sprintf("n=%d/p=%v", c.n, p), func(t *testing.T) {
				t.Parallel()
				g, err := Config{Capacity: uint64(c.n), FPRate: p}.Geometry()
				if err != nil {
					t.Fatal(err)
				}
				got := measure(g, c.n, max(100_000, int(2000/p)), c.filters)
				want := FalsePositiveRate(g.Bits, g.Hashes, uint64(c.n))
				t.Logf("%v: measured %.6f, formula %.6f (%.3fx), live %.6f, %.1f items",
					g, got.rate(), want, got.rate()/want, got.liveRate, got.estimate)

				if got.falseNegatives != 0 {
					t.Errorf("%d false negatives", got.falseNegatives)
				}
				if got.falsePositives < 400 {
					t.Errorf("%d false positives are too few to tell", got.falsePositives)
				}
				if off := math.Abs(got.rate()/want - 1); off > c.spread {
					t.Errorf("measured %v, formula %v: off by %.1f%%", got.rate(), want, 100*off)
				}
				if off := math.Abs(got.rate()/got.liveRate - 1); off > c.spread {
					t.Errorf("measured %v, live %v: off by %.1f%%", got.rate(), got.liveRate, 100*off)
				}
				if off := math.Abs(got.estimate/float64(c.n) - 1); off > 0.02 {
					t.Errorf("estimated %.1f items of %d", got.estimate, c.n)
				}
			})
		}
	}
}

// The documented price of SchemeFNV1a: 2 to 10 times the rate where m is even, and still no
// false negative.
func TestMeasuredRatesFNV1a(t *testing.T) {
	const n, p = 1_000, 0.001
	g, err := Config{Capacity: n, FPRate: p, Scheme: SchemeFNV1a}.Geometry()
	if err != nil {
		t.Fatal(err)
	}
	g.Bits += g.Bits % 2
	got := measure(g, n, 400_000, 20)
	want := FalsePositiveRate(g.Bits, g.Hashes, n)
	t.Logf("%v: measured %.6f, formula %.6f (%.2fx)", g, got.rate(), want, got.rate()/want)
	if got.falseNegatives != 0 {
		t.Errorf("%d false negatives", got.falseNegatives)
	}
	if times := got.rate() / want; times < 1.5 || times > 12 {
		t.Errorf("rate is %.2f times the formula, the doc says 2 to 10", times)
	}
}
