//go:build !race

// The race detector would need minutes for a hundred million positions, and
// nothing here runs concurrently.

package bloom

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// bitset is the body of a filter in memory, without the format.
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

// measurement sums up several filters of one geometry.
type measurement struct {
	falseNegatives, falsePositives, queries int
	liveRate, estimate                      float64 // means over the filters
}

func (m measurement) rate() float64 { return float64(m.falsePositives) / float64(m.queries) }

// measure fills filters with n items each, and asks for items never added. It
// takes several small filters, because the fill of one can be off by a tenth.
// Items and seeds are fixed, and so is the outcome.
func measure(g Geometry, n, queries, filters int) measurement {
	m := measurement{queries: queries / filters * filters}
	dst := make([]uint64, 0, maxHashes)
	first := g // most queries end after the first two positions
	first.Hashes = min(2, g.Hashes)
	for filter := range filters {
		if g.Scheme != SchemeFNV1a {
			g.Seed, first.Seed = uint64(filter), uint64(filter)
		}
		added := fmt.Sprintf("%d/user-", filter)
		other := fmt.Appendf(make([]byte, 0, 32), "%d/guest-", filter)
		body := newBitset(g.Bits)
		for i := range n {
			body.set(g.Positions(dst[:0], added+strconv.Itoa(i)))
		}
		for i := range n {
			if dst = g.Positions(dst[:0], added+strconv.Itoa(i)); !body.has(dst) {
				m.falseNegatives++
			}
		}
		for i := range queries / filters {
			item := string(binary.BigEndian.AppendUint32(other, uint32(i)))
			if body.has(first.Positions(dst, item)) && body.has(g.Positions(dst, item)) {
				m.falsePositives++
			}
		}
		set := body.count()
		m.liveRate += g.LiveFalsePositiveRate(set) / float64(filters)
		m.estimate += g.EstimateItems(set) / float64(filters)
	}
	return m
}

// Measured rates are within 5% of the formula, at capacity and at twice the
// capacity, with at least 2,000 expected false positives in each case. The live
// formula is within 5% too, and estimates are within 2%. At n = 100 the classic
// formula itself is a few percent low, so 20% are allowed.
func TestMeasuredRates(t *testing.T) {
	for _, scheme := range []Scheme{SchemeBlocked, SchemeXXH3} {
		for n, filters := range map[int]int{100: 200, 1_000: 50, 10_000: 5, 100_000: 1} {
			for _, p := range []float64{0.1, 0.01, 0.001, 0.0001} {
				// The short form has not all pairs, and not the smallest rate.
				if p == 0.1 && n != 1000 && !testenv.Long() ||
					p == 0.0001 && (scheme != SchemeBlocked || !testenv.Long()) ||
					p == 0.001 && (scheme != SchemeBlocked || n != 1000) && !testenv.Long() {
					continue
				}
				g, err := Config{Capacity: uint64(n), FPRate: p, Scheme: scheme}.Geometry()
				if err != nil {
					t.Fatal(err)
				}
				spread := 0.05
				if n == 100 && scheme == SchemeXXH3 {
					spread = 0.20
				}
				for _, items := range []int{n, 2 * n} {
					t.Run(fmt.Sprintf("%v/n=%d/p=%v/items=%d", scheme, n, p, items), func(t *testing.T) {
						t.Parallel()
						measuredRate(t, g, items, filters, spread)
					})
				}
			}
		}
	}
}

func measuredRate(t *testing.T, g Geometry, n, filters int, spread float64) {
	want := g.FalsePositiveRate(uint64(n))
	got := measure(g, n, max(400_000, int(2_100/want)), filters)
	t.Logf("%v: measured %.3g, formula %.3g (%.3fx), live %.3g, %.1f items",
		g, got.rate(), want, got.rate()/want, got.liveRate, got.estimate)
	if got.falseNegatives != 0 {
		t.Errorf("%d false negatives", got.falseNegatives)
	}
	if most := want * float64(got.queries); most < 2_000 {
		t.Errorf("%.0f expected false positives are too few to tell", most)
	}
	if off := math.Abs(got.rate()/want - 1); off > spread {
		t.Errorf("measured %v, formula %v: off by %.1f%%", got.rate(), want, 100*off)
	}
	if off := math.Abs(got.rate()/got.liveRate - 1); off > spread {
		t.Errorf("measured %v, live %v: off by %.1f%%", got.rate(), got.liveRate, 100*off)
	}
	if off := math.Abs(got.estimate/float64(n) - 1); off > 0.02 {
		t.Errorf("estimated %.1f items of %d", got.estimate, n)
	}
}
