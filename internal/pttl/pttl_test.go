package pttl

import (
	"math"
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	const years = 9_223_372_036_854 // milliseconds: 292 years
	for millis, want := range map[int64]time.Duration{
		-2: 0, -1: 0, 0: 0, 1: time.Millisecond, 90_000: 90 * time.Second,
		years: years * time.Millisecond, years + 1: years * time.Millisecond,
		math.MaxInt64: years * time.Millisecond,
	} {
		if got := Duration(millis); got != want {
			t.Errorf("Duration(%d) = %v, want %v", millis, got, want)
		}
	}
}
