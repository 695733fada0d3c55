package bloom_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// While processes move from one filter to another, those at neighbouring steps
// run side by side. Whichever of them adds an item first: it is new once.
func TestMoveStepByStep(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for name, m := range moves(t, s.Client()) {
			for i := range len(m.steps) - 1 {
				for j, order := range [][2]int{{i, i + 1}, {i + 1, i}} {
					item := fmt.Sprint(name, i, j)
					if n := timesNew(t, item, m.steps[order[0]], m.steps[order[1]]); n != 1 {
						t.Errorf("%s: an item was new %d times, added at steps %v", name, n, order)
					}
				}
			}
			// Why there is a step between the two.
			if n := timesNew(t, name+" skipped", m.steps[3], m.steps[1]); n != 2 {
				t.Errorf("%s: new %d times with a step left out, want 2", name, n)
			}
		}
	})
}

// If processes at steps 1 and 3 add an item at the same moment, it is new to one
// of them at least.
func TestMoveAtTheSameMoment(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for name, m := range moves(t, s.Client()) {
			first := [2][2]addFunc{{m.old, m.new}, {m.new, m.old}} // what each adds to, in this order
			for _, order := range [][4]int{
				{0, 0, 1, 1}, {0, 1, 0, 1}, {0, 1, 1, 0}, {1, 0, 0, 1}, {1, 0, 1, 0}, {1, 1, 0, 0},
			} {
				var next, news [2]int
				for _, process := range order {
					isNew, err := first[process][next[process]](fmt.Sprint(name, order))
					if err != nil {
						t.Fatal(err)
					}
					if isNew && next[process] == 0 {
						news[process]++
					}
					next[process]++
				}
				if news[0]+news[1] == 0 {
					t.Errorf("%s: in the order %v the item is new to nobody", name, order)
				}
			}
		}
	})
}

type addFunc func(item string) (bool, error)

// A move is from an old filter, or keys, to a new filter. The steps are 0, before
// it, and 1, 3 and 4 of MIGRATING.md.
type move struct {
	old, new addFunc
	steps    [4]addFunc
}

// moves are those of Example_rebuildInAnotherSize and Example_migrateSetNX.
func moves(t *testing.T, c *upstash.Client) map[string]move {
	old, larger := handleAt(t, c, "old", small()), handleAt(t, c, "larger", sparse())
	addTo := func(f interface {
		Add(context.Context, string) (bool, error)
	},
	) addFunc {
		return func(item string) (bool, error) { return f.Add(t.Context(), item) }
	}
	in := func(filters ...*bloom.Filter) addFunc {
		return func(item string) (bool, error) {
			answers, err := bloom.AddIn(t.Context(), item, filters...)
			if err != nil {
				return false, err
			}
			return answers[0].Yes, nil
		}
	}
	seen, err := bloom.NewWindow(c, "seen", bloom.WindowConfig{Capacity: 100, FPRate: 0.001, Span: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	window := addTo(seen)
	setNX := func(id string) (bool, error) {
		reply, err := c.Do(t.Context(), upstash.Cmd("SET", "seen:"+id, "1", "NX", "EX", "3600"))
		return err == nil && !reply.IsNil(), err
	}
	then := func(decides, learns addFunc) addFunc {
		return func(id string) (bool, error) {
			isNew, err := decides(id)
			if err == nil {
				_, err = learns(id)
			}
			return isNew, err
		}
	}
	return map[string]move{
		"rebuild": {
			addTo(old), addTo(larger),
			[4]addFunc{addTo(old), in(old, larger), in(larger, old), addTo(larger)},
		},
		"SET key NX": {setNX, window, [4]addFunc{setNX, then(setNX, window), then(window, setNX), window}},
	}
}

func timesNew(t *testing.T, item string, adds ...addFunc) (n int) {
	t.Helper()
	for _, add := range adds {
		isNew, err := add(item)
		if err != nil {
			t.Fatal(err)
		}
		if isNew {
			n++
		}
	}
	return n
}
