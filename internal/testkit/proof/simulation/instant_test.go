package simulation

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestOwnInstants: workers who wait at one instant go on at different ones, and
// nothing else then.
func TestOwnInstants(t *testing.T) {
	r := &run{scenario: scenario{draws: draws{seed: 1}}}
	for ns := range int64(3 * unit) {
		now, seen := time.Unix(1e9, ns), make(map[time.Time]bool)
		for number := range mostCallers {
			at := (&worker{r: r, number: number}).next(now)
			if seen[at] || !at.After(now) || at.UnixNano()%unit < callers {
				t.Fatalf("after %v, worker %d has %v; others: %v", now, number, at, seen)
			}
			seen[at] = true
		}
	}
}

// TestTimeoutsAndUnit: a call that gives up, after up to three attempts and
// pauses, does so at an instant of no kind in use.
func TestTimeoutsAndUnit(t *testing.T) {
	const last = callers + mostCallers // of the remainders in use
	for _, tt := range []struct {
		timeout         time.Duration
		attempts, pause int // pauses of a second
	}{{timeout, 3, 2}, {2 * slowTime, 3, 0}, {slowTime, 1, 0}} {
		for n := range tt.attempts + 1 {
			for m := range tt.pause + 1 {
				d := time.Duration(n)*tt.timeout + time.Duration(m)*time.Second
				if left := d % unit; d > 0 && (left < last || left > unit-last) {
					t.Errorf("%v is too near to a multiple of %d ns: %d", d, unit, left)
				}
			}
		}
	}
}

// TestPlan: an instant is taken once, and is of its class.
func TestPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(fates{seed: 1}, nil, 1)
		at := time.Now().Add(time.Second)
		for i := range 3 {
			got := n.plan(byClient, at)
			if late := got.Sub(at); late < 0 || late/unit != time.Duration(i) || got.UnixNano()%unit != byClient {
				t.Errorf("plan %d is at %v, %v late", i, got, late)
			}
		}
	})
}

// TestAlone: a run notes if two do something in one place at one instant. If
// the connection of one broke, it may do it again.
func TestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(fates{seed: 1}, nil, 1)
		a, b := newPipe(n, 0), newPipe(n, 1)
		for _, p := range []*pipe{a, a} {
			n.alone(0, p)
		}
		n.alone(1, b)
		a.broken.Store(true)
		n.alone(0, b)
		time.Sleep(time.Microsecond)
		n.alone(0, a)
		if n.twoWays.Load() {
			t.Errorf("each was alone: %v", n.trace)
		}
		a.broken.Store(false)
		n.alone(0, b)
		if !n.twoWays.Load() {
			t.Error("two wrote to a server at one instant")
		}
	})
}
