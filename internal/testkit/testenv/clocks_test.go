package testenv

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestTwoClocks reads both clocks, in a bubble too.
func TestTwoClocks(t *testing.T) {
	read := func(t *testing.T) {
		wall := time.Now().Round(0).Add(-time.Hour)
		a, b := TwoClocks(wall, time.Minute), TwoClocks(wall.Add(time.Second), time.Hour)
		if got, want := b.Sub(a), time.Hour-time.Minute; got != want {
			t.Errorf("the monotonic clock shows %v, want %v", got, want)
		}
		if !a.Round(0).Equal(wall) || b.Round(0).Sub(a.Round(0)) != time.Second {
			t.Errorf("the wall clock shows %v and %v, want %v and a second more", a, b, wall)
		}
	}
	read(t)
	synctest.Test(t, read)
}
