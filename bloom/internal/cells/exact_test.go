package cells

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The functions of package math are right to a unit in the last place or so.
func TestExactFunctions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.OneOf(
			rapid.Float64Range(0.5, 2),
			rapid.Float64Range(1e-307, 1),
			rapid.Float64Range(1, math.MaxFloat64),
			rapid.SampledFrom([]float64{1e-9, 0.001, 0.01, 0.1, math.Sqrt2 / 2, 1e-300}),
		).Draw(t, "x")
		if got, want := ln(x), math.Log(x); math.Abs(got-want) > 1e-15*math.Abs(want) {
			t.Fatalf("ln(%v) = %v, want %v", x, got, want)
		}
		// The Taylor series is 16 times as precise as its 16th power.
		y := rapid.Float64Range(0, 40).Draw(t, "y")
		if got, want := expNeg(y), math.Exp(-y); math.Abs(got-want) > 1e-14*want {
			t.Fatalf("expNeg(%v) = %v, want %v", y, got, want)
		}
	})
	// On amd64 math.Log itself is wrong about numbers as small as this.
	if got := ln(math.SmallestNonzeroFloat64); math.Abs(got+744.4400719213812) > 1e-12 {
		t.Errorf("the logarithm of the smallest number is %v", got)
	}
	if ln(1) != 0 || expNeg(0) != 1 {
		t.Errorf("ln 1 = %v, e^0 = %v", ln(1), expNeg(0))
	}
}

// A rate is coded from 2^-31 to 1 in 4, and no other number is a code.
func TestRateCodes(t *testing.T) {
	const first, last = 1 + 2*rateSteps, 1 + 31*rateSteps
	for p, want := range map[float64]uint64{
		maxCodedRate: first, minCodedRate: last, 0.3: 0, minCodedRate / 2: 0, 0: 0, math.NaN(): 0,
		math.Nextafter(maxCodedRate, 1): 0, math.Nextafter(minCodedRate, 0): 0,
	} {
		if got := RateCode(p); got != want {
			t.Errorf("RateCode(%v) = %d, want %d", p, got, want)
		}
	}
	for code, want := range map[uint64]bool{0: false, first - 1: false, first: true, last: true, last + 1: false} {
		if p, ok := RateOf(code); ok != want || ok && RateCode(max(min(p, maxCodedRate), minCodedRate)) != code {
			t.Errorf("RateOf(%d) = %v, %v; want %v", code, p, ok, want)
		}
	}
}
