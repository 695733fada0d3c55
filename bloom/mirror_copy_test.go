package bloom

import (
	"testing"
	"time"
)

// If a process was suspended, only the wall clock shows the time. If the clock
// was set back, the age is below 0.
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

// Answers about an earlier or a later filter, in any order, do not mix with the
// present one.
func TestMirrorCopyMeetsAnswersInAnyOrder(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	c := mirrorCopy{local: NewLocal(Geometry{Bits: 530, Hashes: 2})}
	type state struct {
		birth    int64 // 0 for a copy that was dropped
		verified int   // seconds after start
		hasBits  bool
	}
	type answer struct {
		of         int64 // the birth number, 0 for no filter
		sent, came int   // in seconds after start
	}
	const news, noNews = true, false
	saw := func(a answer, wantNews bool, want state) {
		t.Helper()
		isNews := c.sawFilter(a.of, at(a.sent), at(a.came))
		got := state{birth: c.birth, hasBits: c.local.setBits() > 0}
		if c.birth != 0 {
			got.verified = int(c.verifiedAt.Sub(start) / time.Second)
		}
		if isNews != wantNews || got != want {
			t.Errorf("%+v: news %v and then %+v, want %v and %+v", a, isNews, got, wantNews, want)
		}
	}
	saw(answer{7, 10, 11}, news, state{birth: 7, verified: 10})
	c.local.Add("a")
	saw(answer{7, 5, 12}, news, state{birth: 7, verified: 10, hasBits: true}) // an older proof
	saw(answer{7, 20, 22}, news, state{birth: 7, verified: 20, hasBits: true})
	saw(answer{8, 22, 23}, news, state{birth: 8, verified: 22}) // sent after the proof had come
	c.local.Add("b")

	// An answer that overlaps with the last proof: nobody knows which filter is the
	// later one.
	saw(answer{7, 15, 24}, noNews, state{})
	saw(answer{8, 25, 27}, news, state{birth: 8, verified: 25})
	c.local.Add("b")
	saw(answer{9, 26, 28}, noNews, state{})
	saw(answer{8, 30, 32}, news, state{birth: 8, verified: 30})
	c.local.Add("b")
	saw(answer{0, 31, 33}, noNews, state{})
	saw(answer{9, 1, 34}, news, state{birth: 9, verified: 1})
	c.local.Add("c")
	saw(answer{0, 35, 36}, noNews, state{})

	// The clock was set back. The last proof lies in the future.
	saw(answer{9, 1000, 1001}, news, state{birth: 9, verified: 1000})
	saw(answer{9, 50, 51}, news, state{birth: 9, verified: 50})
	saw(answer{9, 1000, 1001}, news, state{birth: 9, verified: 1000})
	c.local.Add("c")
	saw(answer{10, 60, 61}, noNews, state{})
}
