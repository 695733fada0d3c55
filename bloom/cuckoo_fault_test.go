package bloom_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func (t *table) clone() *table {
	other := *t
	other.words = maps.Clone(t.words)
	return &other
}

// Under faults, if a call answers, it agrees with the model. An uncertain one
// ran once or not at all. After any other error nothing has changed.
func TestCuckooUnderFaults(t *testing.T) {
	s := upstashtest.NewServer(t)
	rng := rand.New(rand.NewPCG(9, 9))
	// Without the faults that take effect later or make the client wait.
	skipped := []string{
		upstashtest.LateExec(1).String(), upstashtest.Stall(upstashtest.BeforeExec).String(),
		upstashtest.Stall(upstashtest.AfterExec).String(), upstashtest.RateLimit(time.Second).String(),
	}
	faults := slices.DeleteFunc(upstashtest.EveryFault(), func(f upstashtest.Fault) bool {
		return slices.Contains(skipped, f.String())
	})
	faults = append(faults, upstashtest.RateLimit(0))
	c := impatient(s, upstash.WithMaxResponse(32<<10))
	f := cuckoo(t, c, bloom.CuckooConfig{Capacity: 60, FPRate: 0.001})
	if _, err := f.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	model, ends := newTable(f.Geometry()), map[string]int{}
	all := numbered("item", 40)
	struck := 0
	for op := range 600 {
		if rng.IntN(3) == 0 {
			s.Inject(faults[rng.IntN(len(faults))])
			struck++
		}
		items := make([]string, 1+rng.IntN(6))
		for i := range items {
			items[i] = all[rng.IntN(len(all))]
		}
		var got, want []bool
		var err error
		after, full := model.clone(), -1
		switch kind := rng.IntN(6); kind {
		case 0, 1, 2:
			got, err = f.AddAll(t.Context(), items)
			want, full = after.add(items)
		case 3, 4:
			got, err = f.RemoveAll(t.Context(), items)
			want = after.remove(items)
		default:
			got, err = f.ExistsAll(t.Context(), items)
			for _, item := range items {
				want = append(want, model.has(item))
			}
		}
		text := stored(t, s)
		ran, same := after.compare(text) < 0, model.compare(text) < 0
		switch {
		case err == nil:
			ends["answered"]++
			if !ran || full >= 0 || !slices.Equal(got, want) {
				t.Fatalf("operation %d: %v, want %v; in place: %v", op, got, want, ran)
			}
		case errors.Is(err, bloom.ErrFull):
			ends["full"]++
			if full < 0 || !same {
				t.Fatalf("operation %d: %v", op, err)
			}
		case errors.Is(err, bloom.ErrUncertain):
			ends["uncertain"]++
			if !ran && !same {
				t.Fatalf("operation %d: the table is neither as before nor as after: %v", op, err)
			}
		default:
			ends["refused"]++
			if !same {
				t.Fatalf("operation %d has run: %v", op, err)
			}
		}
		if ran && full < 0 {
			model = after
		}
	}
	t.Logf("%d faults, %v", struck, ends)
	for _, end := range []string{"answered", "full", "uncertain", "refused"} {
		if ends[end] == 0 {
			t.Errorf("no operation was %s", end)
		}
	}
	fresh := cuckoo(t, s.Client(), bloom.CuckooConfig{Capacity: 60, FPRate: 0.001})
	countOf(t, fresh, uint64(model.items))
	if st, err := fresh.Stats(t.Context()); err != nil || st.Damaged {
		t.Errorf("Stats = %+v, %v, want no damage", st, err)
	}
}
