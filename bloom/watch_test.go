package bloom_test

import (
	"sync/atomic"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A handle that lives notices an overfull filter from its own answers, with single Adds and
// with batches, before it is a fifth beyond its capacity, and rarely looks before.
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

// What is over its capacity is warned of about once in 4,096 writes, not with each.
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
