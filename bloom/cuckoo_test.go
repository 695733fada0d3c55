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
	model, rng := newTable(f.Geometry()), rand.New(rand.NewPCG(seed, cfg.Capacity))
	var in []string
	next, fulls, removes := 0, 0, 0
	for step := 0; step < 60 && (fulls < 3 || removes < 3); step++ {
		if len(in) > 0 && rng.IntN(4) == 0 {
			n := 1 + rng.IntN(min(len(in), 100))
			rng.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
			taken := slices.Clone(in[:n])
			if rng.IntN(4) == 0 { // also items that were never added
				taken = append(taken, "never"+strconv.Itoa(step))
			}
			in = in[n:]
			got, err := f.RemoveAll(t.Context(), taken)
			if want := model.remove(taken); err != nil || !slices.Equal(got, want) {
				t.Fatalf("step %d: RemoveAll = %v, %v, want %v", step, got, err, want)
			}
			removes++
		} else {
			items := make([]string, 1+rng.IntN(min(int(cfg.Capacity), 500)))
			if rng.IntN(3) == 0 {
				items = items[:1]
			}
			for i := range items {
				if items[i] = "item" + strconv.Itoa(next); rng.IntN(20) == 0 && next > 0 {
					items[i] = "item" + strconv.Itoa(rng.IntN(next))
				}
				next++
			}
			got, err := f.AddAll(t.Context(), items)
			want, full := model.add(items)
			if full >= 0 {
				fulls++
				var batch *bloom.BatchError
				if !errors.Is(err, bloom.ErrFull) || !errors.As(err, &batch) ||
					batch.Count(bloom.ItemNotDone) != len(items) {
					t.Fatalf("step %d: AddAll: %v, want ErrFull", step, err)
				}
			} else if in = append(in, items...); err != nil || !slices.Equal(got, want) {
				t.Fatalf("step %d: AddAll = %v, %v, want %v", step, got, err, want)
			}
		}
		text := stored(t, s)
		if b := model.compare(text); b >= 0 {
			t.Fatalf("step %d: bucket %d is %#x, want %#x",
				step, b, wordIn(text, uint64(b)), model.words[uint64(b)])
		}
	}
	if removes == 0 || fulls == 0 {
		t.Errorf("%d removals, and %d times full: the test shows nothing", removes, fulls)
	}
	asked := append(in, numbered("absent", 500)...)
	found, err := f.ExistsAll(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	for i, item := range asked {
		if found[i] != model.has(item) {
			t.Errorf("%s: found %v, want %v", item, found[i], model.has(item))
		}
	}
	if n, err := f.Count(t.Context()); err != nil || n != uint64(model.items) {
		t.Errorf("Count = %d, %v, want %d", n, err, model.items)
	}
	if st, err := f.Stats(t.Context()); err != nil || st.Damaged || st.Items != uint64(model.items) {
		t.Errorf("Stats = %+v, %v, want %d items and no damage", st, err, model.items)
	}
}
