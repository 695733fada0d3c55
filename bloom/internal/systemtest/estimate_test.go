package systemtest

import (
	"math"
	"strconv"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// hyperLogLogError is the standard error of PFCOUNT according to Redis'
// documentation.
const hyperLogLogError = 0.0081

// The standard error of the estimated number of items follows the formula,
// sqrt(e^u - u - 1)/(u sqrt(m)) with u = kn/m. It is below that of a
// HyperLogLog up to 14 times the capacity of a blocked filter, and 7 times that
// of a classic one.
func TestEstimateIsBetterThanHyperLogLog(t *testing.T) {
	testenv.AskedLong(t)
	const capacity, runs = 10_000, 80
	for _, c := range []struct {
		scheme bloom.Scheme
		times  []int
	}{
		{bloom.SchemeBlocked, []int{1, 2, 5, 7, 10, 14}},
		{bloom.SchemeXXH3, []int{1, 2, 5, 7}},
	} {
		squares := make([]float64, len(c.times)) // of the relative errors
		var g bloom.Geometry
		for run := range runs {
			var err error
			cfg := bloom.Config{Capacity: capacity, FPRate: 0.01, Scheme: c.scheme, Seed: uint64(run)}
			if g, err = cfg.Geometry(); err != nil {
				t.Fatal(err)
			}
			l, n := bloom.NewLocal(g), 0
			for i, times := range c.times {
				for ; n < times*capacity; n++ {
					l.Add(strconv.Itoa(n))
				}
				e := g.EstimateItems(l.Stats().SetBits)/float64(n) - 1
				squares[i] += e * e
			}
		}
		for i, times := range c.times {
			got := math.Sqrt(squares[i] / runs)
			u := float64(g.Hashes*times*capacity) / float64(g.Bits)
			want := math.Sqrt(math.Expm1(u)-u) / (u * math.Sqrt(float64(g.Bits)))
			t.Logf("%v, %d times the capacity: %.2f%%, by the formula %.2f%%", c.scheme, times, 100*got, 100*want)
			// The standard error of 80 runs is itself off by 8%. 25% is three
			// times that.
			if got > 1.25*want || got < want/1.25 || want > hyperLogLogError {
				t.Errorf("%v, %d times the capacity: a standard error of %.2f%%, want about %.2f%%",
					c.scheme, times, 100*got, 100*want)
			}
		}
	}
}
