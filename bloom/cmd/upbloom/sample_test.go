package main

import (
	"math"
	"strconv"
	"testing"
)

// A sample counts distinct items, exactly as long as they are few, and keeps
// some of all of them.
func TestSample(t *testing.T) {
	for _, n := range []int{0, 1, unasked - 1, unasked, 20_000, 300_000} {
		var s sample
		for i := range 3 * n {
			s.add(strconv.Itoa(i % max(n, 1)))
		}
		got, off := float64(s.distinct()), 0.0
		if n >= unasked {
			off = 4 / math.Sqrt(unasked)
		}
		if math.Abs(got-float64(n)) > off*float64(n) || len(s.items) != min(n, unasked) {
			t.Errorf("%d items: about %v distinct ones, and %d kept", n, got, len(s.items))
		}
		below := 0
		for _, item := range s.items {
			if i, err := strconv.Atoi(item); err == nil && i < n/2 {
				below++
			}
		}
		if n > unasked && math.Abs(float64(below)/unasked-0.5) > 4*0.5/math.Sqrt(unasked) {
			t.Errorf("%d items: %d of %d kept are of the first half", n, below, unasked)
		}
	}
}
