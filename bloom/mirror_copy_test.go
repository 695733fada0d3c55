package bloom

import (
	"testing"
	"time"
)

// In a process that was frozen only the wall clock shows that time has passed.
// A clock that was set back shows an age below 0.
func TestAge(t *testing.T) {
	then := time.Now()
	for name, c := range map[string]struct {
		now  time.Time
		want time.Duration
	}{
		"at once": {then, 0},
		"later":   {then.Add(time.Second), time.Second},
		"frozen":  {then.Round(0).Add(time.Hour), time.Hour},
		"back":    {then.Round(0).Add(-time.Hour), -time.Hour},
	} {
		if got := age(c.now, then); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if got := within(c.now, then, time.Second); got != (c.want >= 0 && c.want <= time.Second) {
			t.Errorf("%s: within a second is %v", name, got)
		}
	}
	if within(then, time.Time{}, time.Hour) {
		t.Error("never was an hour ago")
	}
}

// Answers about an earlier or a later filter, in whatever order they come, do
// not mix with the present one.
func TestMirrorCopyMeetsAnswersInAnyOrder(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	c := mirrorCopy{local: NewLocal(Geometry{Bits: 530, Hashes: 2})}
	saw := func(birth int64, sent int, want bool, birthAfter int64, verified int, bits bool) {
		t.Helper()
		got := c.sawFilter(birth, at(sent), at(100))
		if got != want || c.birth != birthAfter || birthAfter != 0 && !c.verifiedAt.Equal(at(verified)) ||
			(c.local.setBits() > 0) != bits {
			t.Errorf("birth %d sent at %d: %v, then birth %d, verified %v, %d bits", birth, sent, got,
				c.birth, c.verifiedAt.Sub(start), c.local.setBits())
		}
	}
	saw(7, 10, true, 7, 10, false)
	c.local.Add("a")
	saw(7, 5, true, 7, 10, true) // an older proof
	saw(7, 20, true, 7, 20, true)
	saw(8, 15, false, 7, 20, true) // asked before the last proof
	saw(8, 25, true, 8, 25, false)
	c.local.Add("b")
	saw(7, 20, false, 8, 25, true)
	saw(0, 24, false, 8, 25, true)
	saw(0, 30, false, 0, 0, false)
	saw(9, 1, true, 9, 1, false)

	// The clock was set back: the last proof lies in the future, and any answer
	// counts.
	c.verifiedAt = at(1000)
	saw(9, 50, true, 9, 50, false)
	c.verifiedAt = at(1000)
	c.local.Add("c")
	saw(10, 60, true, 10, 60, false)
}
