package bloom_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestScalableRequestsAndCommands counts at the server what each call costs.
// Each step builds on those before it.
func TestScalableRequestsAndCommands(t *testing.T) {
	neverByLot(t)
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		expiring := growing()
		expiring.TTL = time.Hour
		f, cold, old := scalable(t, c, growing()), scalable(t, c, growing()), scalable(t, c, expiring)
		thousand := numbered("item", 1000)
		addAll := func(f *bloom.Scalable, items []string) func() error {
			return func() error { return errorOf(f.AddAll(ctx, items)) }
		}
		addOne := func(f *bloom.Scalable, item string) func() error {
			return func() error { return errorOf(f.Add(ctx, item)) }
		}
		missing := func() error {
			if _, err := f.Exists(ctx, "a"); !errors.Is(err, bloom.ErrNotFound) {
				return errors.New("found")
			}
			return nil
		}
		for _, step := range []struct {
			name             string
			requests, billed int64
			do               func() error
		}{
			{"Exists, no filter", 1, 1, missing},
			// EVAL, BITFIELD_RO, EXISTS and BITFIELD.
			{"the very first Add", 1, 4, addOne(f, "a")},
			{"Add", 1, 3, addOne(f, "b")},
			{"Add again", 1, 2, addOne(f, "b")},
			{"Exists", 1, 1, func() error { return errorOf(f.Exists(ctx, "a")) }},
			{"Exists of a new handle", 1, 1, func() error {
				_, err := scalable(t, c, growing()).Exists(ctx, "a")
				return err
			}},
			{"Add of a new handle, seen", 1, 2, addOne(scalable(t, c, growing()), "a")},
			{"Add of a new handle, new", 1, 3, addOne(cold, "c")},
			{"Add of it", 1, 3, addOne(cold, "d")},
			{"AddAll of 15", 1, 3, addAll(f, numbered("x", 15))},
			// EVAL, two BITFIELD_RO, SETBIT and BITFIELD.
			{"AddAll of 1,000, which grows", 1, 5, addAll(f, thousand)},
			{"AddAll of 1,000 again", 1, 3, addAll(f, thousand)},
			{"ExistsAll of 1,000", 1, 1, func() error { return errorOf(f.ExistsAll(ctx, thousand)) }},
			{"none", 0, 0, addAll(f, nil)},
			{"Create, existing", 1, 2, func() error { return errorOf(f.Create(ctx)) }},
			{"OpenScalable", 1, 2, func() error { return errorOf(bloom.OpenScalable(ctx, c, key)) }},
			{"Inspect", 1, 4, func() error { return errorOf(bloom.Inspect(ctx, c, key)) }},
			{"Stats", 1, 8, func() error { return errorOf(f.Stats(ctx)) }},
			{"Cardinality", 1, 6, func() error { return errorOf(f.Cardinality(ctx)) }},
			{"Expire", 1, 4, func() error { return errorOf(f.Expire(ctx, time.Hour)) }},
			{"Persist", 1, 4, func() error { return errorOf(f.Persist(ctx)) }},
			{"Delete", 1, 3, func() error { return errorOf(f.Delete(ctx)) }},

			{"Create", 1, 4, func() error { return errorOf(f.Create(ctx)) }},
			{"Add after Create", 1, 3, addOne(f, "a")},
			{"Delete by another", 1, 3, func() error { return errorOf(cold.Delete(ctx)) }},
			{"AddAll of 1,001, no filter, with a TTL", 2, 8, addAll(old, numbered("item", 1001))},
			{"Delete by another", 1, 3, func() error { return errorOf(cold.Delete(ctx)) }},
			// PEXPIRE as well.
			{"Add, deleted meanwhile", 1, 5, addOne(old, "a")},
			{"Rename", 1, 3, func() error { return old.Rename(ctx, "elsewhere") }},
			{"Add after Rename", 1, 5, addOne(old, "a")},
		} {
			bloomtest.Costs(t, s, step.name, step.requests, step.billed, step.do)
		}
	})
}

// The documentation names the size of a request of 1,000 items.
func TestScalableRequestBytes(t *testing.T) {
	neverByLot(t)
	c, w := watch(t, upstashtest.NewServer(t))
	f := scalable(t, c, bloom.ScalableConfig{Capacity: 1_000_000, FPRate: 0.01})
	items := numbered("item", 1000)
	mustAdd(t, f, items...)
	noError(t, errorOf(f.ExistsAll(t.Context(), items)))
	sizes := []int{}
	for _, body := range w.Bodies {
		sizes = append(sizes, len(body)/10_000*10)
	}
	if !slices.Equal(sizes, []int{150, 270}) {
		t.Errorf("requests of %d KB, want 150 and 270", sizes)
	}
}
