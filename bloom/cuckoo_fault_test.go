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
	cfg := bloom.CuckooConfig{Capacity: 60, FPRate: 0.001}
	f := cuckoo(t, impatient(s, upstash.WithMaxResponse(32<<10)), cfg)
	if _, err := f.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	faults, struck := immediateFaults(), 0
	model, ends := newTable(f.Geometry()), map[string]int{}
	for range 600 {
		if rng.IntN(3) == 0 {
			s.Inject(faults[rng.IntN(len(faults))])
			struck++
		}
		c := callCuckoo(t, f, model, rng)
		ends[c.judge(t, stored(t, s))]++
		model = c.model
	}
	t.Logf("%d faults, %v", struck, ends)
	for _, end := range []string{"answered", "full", "uncertain", "refused"} {
		if ends[end] == 0 {
			t.Errorf("no operation was %s", end)
		}
	}
	fresh := cuckoo(t, s.Client(), cfg)
	countOf(t, fresh, uint64(model.items))
	if st, err := fresh.Stats(t.Context()); err != nil || st.Damaged {
		t.Errorf("Stats = %+v, %v, want no damage", st, err)
	}
}

// immediateFaults are those that neither take effect later nor make the client
// wait.
func immediateFaults() []upstashtest.Fault {
	skipped := []string{
		upstashtest.LateExec(1).String(), upstashtest.Stall(upstashtest.BeforeExec).String(),
		upstashtest.Stall(upstashtest.AfterExec).String(), upstashtest.RateLimit(time.Second).String(),
	}
	faults := slices.DeleteFunc(upstashtest.EveryFault(), func(f upstashtest.Fault) bool {
		return slices.Contains(skipped, f.String())
	})
	return append(faults, upstashtest.RateLimit(0))
}

// A cuckooCall is a call of a Cuckoo and of its model.
type cuckooCall struct {
	name         string
	model, after *table // the model before the call, and after it if it ran
	full         int    // the item without room, or -1
	got, want    []bool
	err          error
}

// callCuckoo makes a random call.
func callCuckoo(t *testing.T, f *bloom.Cuckoo, model *table, rng *rand.Rand) *cuckooCall {
	all, items := numbered("item", 40), make([]string, 1+rng.IntN(6))
	for i := range items {
		items[i] = all[rng.IntN(len(all))]
	}
	c := &cuckooCall{model: model, after: model.clone(), full: -1}
	switch rng.IntN(6) {
	case 0, 1, 2:
		c.name = "AddAll"
		c.got, c.err = f.AddAll(t.Context(), items)
		c.want, c.full = c.after.add(items)
	case 3, 4:
		c.name = "RemoveAll"
		c.got, c.err = f.RemoveAll(t.Context(), items)
		c.want = c.after.remove(items)
	default:
		c.name = "ExistsAll"
		c.got, c.err = f.ExistsAll(t.Context(), items)
		for _, item := range items {
			c.want = append(c.want, model.has(item))
		}
	}
	return c
}

// judge compares the call and the table after it with the model, and returns
// how the call ended. The model is then that of the table.
func (c *cuckooCall) judge(t *testing.T, text string) (end string) {
	t.Helper()
	ran, same := c.after.compare(text) < 0, c.model.compare(text) < 0
	switch {
	case c.err == nil:
		end = "answered"
		if !ran || c.full >= 0 || !slices.Equal(c.got, c.want) {
			t.Fatalf("%s: %v, want %v; in place: %v", c.name, c.got, c.want, ran)
		}
	case errors.Is(c.err, bloom.ErrFull):
		end = "full"
		if c.full < 0 || !same {
			t.Fatalf("%s: %v", c.name, c.err)
		}
	case errors.Is(c.err, bloom.ErrUncertain):
		end = "uncertain"
		if !ran && !same {
			t.Fatalf("%s: the table is neither as before nor as after: %v", c.name, c.err)
		}
	default:
		end = "refused"
		if !same {
			t.Fatalf("%s has run: %v", c.name, c.err)
		}
	}
	if ran && c.full < 0 {
		c.model = c.after
	}
	return end
}
