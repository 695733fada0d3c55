package bloom_test

import (
	"sync/atomic"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A handle that lives notices an overfull filter from its own answers, with
// single Adds and with batches, before it is a fifth beyond its capacity, and
// rarely looks before.
func TestWarnFillNoticesOverCapacity(t *testing.T) {
	for _, batch := range []int{1, 10, 1000} {
		s := upstashtest.NewServer(t)
		var warned atomic.Uint64
		cfg := bloom.Config{Capacity: 4000, FPRate: 0.001, WarnFill: func(st bloom.Stats) {
			if !st.OverCapacity() {
				t.Errorf("a warning of %d items in a filter for %d", st.Items, st.Capacity)
			}
			warned.CompareAndSwap(0, st.Items)
		}}
		f := handle(t, s.Client(), cfg)
		items := numbered("item", 8000)
		for n := 0; n < len(items); n += batch {
			if n == 4000 {
				if warned.Load() != 0 {
					t.Errorf("batches of %d: a warning within the capacity", batch)
				}
				// A look is four commands; ten are far more than chance brings.
				writes := float64(n/batch) + 1
				if more := float64(s.Stats().Commands) - writes; more > 40 {
					t.Errorf("batches of %d: %v commands more for %v writes", batch, more, writes)
				}
			}
			if _, err := f.AddAll(t.Context(), items[n:n+batch]); err != nil {
				t.Fatal(err)
			}
		}
		if got := warned.Load(); got == 0 || got > 4000*13/10 && batch < 1000 {
			t.Errorf("batches of %d: the first warning came at %d items", batch, got)
		}
	}
}

// At its capacity a filter is healthy, and chance makes its answers look fuller
// now and then: that costs less than a command in a thousand. Counted at the
// server, with as much room as chance may take: 16,000 writes draw two looks by
// lot.
func TestWarnFillCost(t *testing.T) {
	const capacity, writes = 400_000, 16_000
	s := upstashtest.NewServer(t)
	cfg := bloom.Config{Capacity: capacity, FPRate: 0.01, WarnFill: func(st bloom.Stats) {
		t.Errorf("a warning of %d items in a filter for %d", st.Items, st.Capacity)
	}}
	f := handle(t, s.Client(), cfg)
	l := bloom.NewLocal(f.Geometry())
	for _, item := range numbered("old", capacity-writes) {
		l.Add(item)
	}
	if _, err := f.Merge(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	s.ResetStats()
	for _, item := range numbered("new", writes) {
		if _, err := f.Add(t.Context(), item); err != nil {
			t.Fatal(err)
		}
	}
	if more := s.Stats().Commands - writes; more > 4*10 {
		t.Errorf("%d commands more for %d writes", more, writes)
	} else {
		t.Logf("%d commands more for %d writes", more, writes)
	}
}

// What is over its capacity is warned of about once in 8,192 writes, not with
// each.
func TestWarnFillDoesNotRepeatItself(t *testing.T) {
	s := upstashtest.NewServer(t)
	warnings := 0
	cfg := bloom.Config{Capacity: 100, FPRate: 0.001, WarnFill: func(bloom.Stats) { warnings++ }}
	f := handle(t, s.Client(), cfg)
	for _, item := range numbered("item", 3000) {
		if _, err := f.Add(t.Context(), item); err != nil {
			t.Fatal(err)
		}
	}
	if warnings == 0 || warnings > 8 {
		t.Errorf("%d warnings in 3,000 writes", warnings)
	}
}
