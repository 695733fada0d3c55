package bloom_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func cuckoo(t testing.TB, c *upstash.Client, cfg bloom.CuckooConfig) *bloom.Cuckoo {
	t.Helper()
	f, err := bloom.NewCuckoo(c, key, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// An item is found from its Add until it is removed.
func TestCuckoo(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := cuckoo(t, s.Client(), bloom.CuckooConfig{Capacity: 1000, FPRate: 1e-6})
		wants := func(what string, got bool, err error, want bool) {
			t.Helper()
			if err != nil || got != want {
				t.Fatalf("%s = %v, %v, want %v", what, got, err, want)
			}
		}
		if _, err := f.Exists(t.Context(), "alice"); !errors.Is(err, bloom.ErrNotFound) {
			t.Fatalf("Exists of a missing filter: %v, want ErrNotFound", err)
		}
		if _, err := f.Remove(t.Context(), "alice"); !errors.Is(err, bloom.ErrNotFound) {
			t.Fatalf("Remove of a missing filter: %v, want ErrNotFound", err)
		}
		got, err := f.Add(t.Context(), "alice")
		wants("the first Add", got, err, true)
		got, err = f.Add(t.Context(), "alice")
		wants("the second Add", got, err, false)
		for i := range 3 {
			got, err = f.Exists(t.Context(), "alice")
			wants(fmt.Sprint("Exists after ", i), got, err, i < 2)
			got, err = f.Remove(t.Context(), "alice")
			wants(fmt.Sprint("Remove after ", i), got, err, i < 2)
		}
		got, err = f.Exists(t.Context(), "bob")
		wants("Exists of another", got, err, false)
	})
}

// After any calls, the scripts leave the same words as the model and give the
// same answers, until the table is full and beyond.
func TestCuckooScriptsAgainstModel(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for seed, p := range []float64{0.01, 0.001, 1e-4, 1e-6} {
			for _, capacity := range []uint64{40, 300} {
				if capacity > 40 && p != 0.01 && !testenv.Long() {
					continue
				}
				t.Run(fmt.Sprintf("p=%v,n=%d", p, capacity), func(t *testing.T) {
					s.FlushAll()
					checkAgainstModel(t, s, bloom.CuckooConfig{Capacity: capacity, FPRate: p}, uint64(seed))
				})
			}
		}
	})
}

func checkAgainstModel(t *testing.T, s *upstashtest.Server, cfg bloom.CuckooConfig, seed uint64) {
	f := cuckoo(t, s.Client(), cfg)
	r := &modelRun{f: f, model: newTable(f.Geometry()), rng: rand.New(rand.NewPCG(seed, cfg.Capacity))}
	for step := 0; step < 60 && (r.fulls < 3 || r.removes < 3); step++ {
		if len(r.in) > 0 && r.rng.IntN(4) == 0 {
			r.remove(t)
		} else {
			r.add(t, min(int(cfg.Capacity), 500))
		}
		text := stored(t, s)
		if b := r.model.compare(text); b >= 0 {
			t.Fatalf("step %d: bucket %d is %#x, want %#x",
				step, b, wordIn(text, uint64(b)), r.model.words[uint64(b)])
		}
	}
	if r.removes == 0 || r.fulls == 0 {
		t.Errorf("%d removals, and %d times full: the test shows nothing", r.removes, r.fulls)
	}
	r.wantSameAnswers(t)
}

// A modelRun makes the same calls of a filter and of its model.
type modelRun struct {
	f              *bloom.Cuckoo
	model          *table
	rng            *rand.Rand
	in             []string // added, and not removed since
	next           int      // the number of the next new item
	fulls, removes int
}

// remove removes some of the items, sometimes with one that was never added.
func (r *modelRun) remove(t *testing.T) {
	t.Helper()
	n := 1 + r.rng.IntN(min(len(r.in), 100))
	r.rng.Shuffle(len(r.in), func(i, j int) { r.in[i], r.in[j] = r.in[j], r.in[i] })
	taken := slices.Clone(r.in[:n])
	if r.rng.IntN(4) == 0 {
		taken = append(taken, "never")
	}
	r.in = r.in[n:]
	got, err := r.f.RemoveAll(t.Context(), taken)
	if want := r.model.remove(taken); err != nil || !slices.Equal(got, want) {
		t.Fatalf("RemoveAll = %v, %v, want %v", got, err, want)
	}
	r.removes++
}

// add adds up to most items, some of them for the second time.
func (r *modelRun) add(t *testing.T, most int) {
	t.Helper()
	items := make([]string, 1+r.rng.IntN(most))
	if r.rng.IntN(3) == 0 {
		items = items[:1]
	}
	for i := range items {
		if items[i] = "item" + strconv.Itoa(r.next); r.rng.IntN(20) == 0 && r.next > 0 {
			items[i] = "item" + strconv.Itoa(r.rng.IntN(r.next))
		}
		r.next++
	}
	got, err := r.f.AddAll(t.Context(), items)
	want, full := r.model.add(items)
	if full >= 0 {
		r.fulls++
		var batch *bloom.BatchError
		if !errors.Is(err, bloom.ErrFull) || !errors.As(err, &batch) || batch.Count(bloom.ItemNotDone) != len(items) {
			t.Fatalf("AddAll: %v, want ErrFull", err)
		}
		return
	}
	if r.in = append(r.in, items...); err != nil || !slices.Equal(got, want) {
		t.Fatalf("AddAll = %v, %v, want %v", got, err, want)
	}
}

// wantSameAnswers asks the filter and the model about all items and others.
func (r *modelRun) wantSameAnswers(t *testing.T) {
	t.Helper()
	asked := append(r.in, numbered("absent", 500)...)
	found, err := r.f.ExistsAll(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	for i, item := range asked {
		if found[i] != r.model.has(item) {
			t.Errorf("%s: found %v, want %v", item, found[i], r.model.has(item))
		}
	}
	items := uint64(r.model.items)
	if n, err := r.f.Count(t.Context()); err != nil || n != items {
		t.Errorf("Count = %d, %v, want %d", n, err, items)
	}
	if st, err := r.f.Stats(t.Context()); err != nil || st.Damaged || st.Items != items {
		t.Errorf("Stats = %+v, %v, want %d items and no damage", st, err, items)
	}
}
