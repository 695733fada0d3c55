package bloom_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// patient is for scripts of a thousand items on a machine under load: no attempt
// is given up, so that each item's answer is certain.
var patient = upstash.WithTimeout(time.Hour)

// growing is the smallest filter that grows.
func growing() bloom.ScalableConfig { return bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01} }

func scalable(t *testing.T, c *upstash.Client, cfg bloom.ScalableConfig) *bloom.Scalable {
	t.Helper()
	s, err := bloom.NewScalable(c, key, cfg)
	noError(t, err)
	return s
}

// layersAt returns the number of layers in the word at key.
func layersAt(t *testing.T, s *upstashtest.Server) int64 {
	t.Helper()
	return do(t, s, "BITFIELD_RO", key, "GET", "u4", "145").([]any)[0].(int64)
}

// takenAt returns how many items the newest layer has taken, by the word at key.
func takenAt(t *testing.T, s *upstashtest.Server) int64 {
	t.Helper()
	return do(t, s, "BITFIELD_RO", key, "GET", "u32", "149").([]any)[0].(int64)
}

// Items are new once, and found from then on, while the filter grows from one
// layer to three, whichever handle adds them.
func TestScalableGrows(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		handles := []*bloom.Scalable{
			scalable(t, c, growing()), scalable(t, c, growing()), scalable(t, c, growing()),
		}
		items, falselySeen := numbered("item", 6000), 0
		for i, item := range items {
			if i%100 == 0 {
				handles[0] = scalable(t, c, growing()) // it knows nothing
			}
			added, err := handles[i%3].Add(ctx, item)
			noError(t, err)
			if !added {
				falselySeen++
			}
		}
		if falselySeen > 60 {
			t.Errorf("%d of %d new items were reported as seen, want 60 at most",
				falselySeen, len(items))
		}
		if n := layersAt(t, s); n != 3 {
			t.Errorf("%d layers, want 3", n)
		}
		for i := range 300 {
			item := items[rand.IntN(len(items))]
			if added, err := handles[i%3].Add(ctx, item); added || err != nil {
				t.Fatalf("Add again = %v, %v, want false", added, err)
			}
		}
		found, err := scalable(t, c, growing()).ExistsAll(ctx, items)
		if err != nil || count(found) != len(items) {
			t.Fatalf("%d of %d found, %v", count(found), len(items), err)
		}
		st, err := handles[0].Stats(ctx)
		if err != nil || len(st.Layers) != 3 || st.MaxLayers != 5 || st.Items < 5700 || st.Items > 6600 ||
			st.LiveFPRate > 0.01 || st.Capacity != 341_000 {
			t.Errorf("Stats = %+v, %v, want 3 of 5 layers with about 6,000 items", st, err)
		}
		n, err := handles[1].Cardinality(ctx)
		if err != nil || n != st.Items {
			t.Errorf("Cardinality = %d, %v, want %d", n, err, st.Items)
		}
	})
}

// A layer takes the items that it is for, and the next one the rest, whether
// they come one by one or in batches larger than a layer.
func TestScalableFillsALayerBeforeTheNext(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client(patient)
		for _, step := range []struct {
			items         int
			layers, taken int64
		}{{10, 1, 10}, {500, 1, 510}, {490, 1, 1000}, {1, 2, 1}, {3999, 2, 4000}, {5000, 3, 5000}, {1, 3, 5001}} {
			f := scalable(t, c, rare())
			got, err := f.AddAll(ctx, numbered(fmt.Sprintf("%d of %d, ", step.items, step.taken), step.items))
			if err != nil || count(got) != step.items {
				t.Fatalf("%d items: %d new, %v", step.items, count(got), err)
			}
			if n, taken := layersAt(t, s), takenAt(t, s); n != step.layers || taken != step.taken {
				t.Errorf("%d items: %d layers, the newest has taken %d, want %d and %d",
					step.items, n, taken, step.layers, step.taken)
			}
		}
	})
}

// Several processes add at once to a filter for as many items as one of them
// has. Nobody's items are lost, each layer but the last holds what it is for,
// and the false positive rate holds.
func TestScalableOfSeveralProcesses(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx := t.Context()
		for _, processes := range []int{2, 4, 8} {
			s.FlushAll()
			var all sync.WaitGroup
			items := make([][]string, processes)
			for i := range processes {
				f := scalable(t, s.Client(patient), growing())
				items[i] = numbered(fmt.Sprintf("process %d, item ", i), 1000)
				all.Go(func() {
					mustAdd(t, f, items[i]...)
				})
			}
			all.Wait()
			f := scalable(t, s.Client(patient), growing())
			for i := range processes {
				if found, err := f.ExistsAll(ctx, items[i]); err != nil || count(found) != 1000 {
					t.Errorf("%d processes: %d of 1000 found, %v", processes, count(found), err)
				}
			}
			st, err := f.Stats(ctx)
			noError(t, err)
			for i, l := range st.Layers[:len(st.Layers)-1] {
				if l.OverCapacity() {
					t.Errorf("%d processes: layer %d has %d items of %d", processes, i, l.Items, l.Capacity)
				}
			}
			guests, err := f.ExistsAll(ctx, numbered("guest ", 20_000))
			if n := count(guests); err != nil || n > 220 {
				t.Errorf("%d processes: %d of 20,000 guests found, %v, want 1 in 100 at most", processes, n, err)
			}
		}
	})
}

// A known item is stored once: it changes nothing in a filter that has grown.
func TestScalableStoresAnItemOnce(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, items := t.Context(), numbered("item", 3000)
		mustAdd(t, scalable(t, s.Client(), growing()), items...)
		before := do(t, s, "GET", key)
		again, err := scalable(t, s.Client(), growing()).AddAll(ctx, items)
		if err != nil || count(again) != 0 {
			t.Errorf("again: %d new, %v, want none", count(again), err)
		}
		if do(t, s, "GET", key) != before {
			t.Error("the string was changed")
		}
	})
}

// MaxBytes ends the growth. WarnFill then says that the filter is too full.
func TestScalableMaxBytes(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, warned := growing(), 0
		cfg.MaxBytes = 10_000
		cfg.WarnFill = func(st bloom.ScalableStats) {
			if warned++; st.Items < 5000 || st.MaxLayers != 2 {
				t.Errorf("warned of %+v, want 5000 items or more in 2 layers", st)
			}
		}
		f := scalable(t, s.Client(), cfg)
		for i := range 9 {
			mustAdd(t, f, numbered(fmt.Sprint("item", i), 1000)...)
			if i < 5 && warned > 0 {
				t.Fatalf("warned at %d items, want at 5000 or more", 1000*(i+1))
			}
		}
		if n := layersAt(t, s); n != 2 || warned == 0 {
			t.Errorf("%d layers, want 2; warned %d times", n, warned)
		}
		if n := do(t, s, "STRLEN", key).(int64); n > 10_000 {
			t.Errorf("the string has %d bytes, want 10,000 at most", n)
		}
	})
}

// While one goroutine is in WarnFill, the writes of others do not call it.
func TestScalableWarnsOneAtATime(t *testing.T) {
	var f *bloom.Scalable
	warnings := 0
	cfg := growing()
	cfg.MaxBytes = 10_000
	cfg.WarnFill = func(bloom.ScalableStats) {
		if warnings++; warnings > 1 {
			return
		}
		// Enough for another look.
		mustAdd(t, f, numbered("within", 900)...)
	}
	f = scalable(t, upstashtest.NewServer(t).Client(), cfg)
	for _, items := range []string{"many", "more"} {
		warnings = 0
		if _, err := f.AddAll(t.Context(), numbered(items, 6000)); err != nil || warnings != 1 {
			t.Errorf("%s items: %d warnings, %v, want 1", items, warnings, err)
		}
	}
}

// After a warning the handle looks again when a layer's capacity was added, also
// by few large batches.
func TestScalableWarnsAgain(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg, warned := growing(), 0
	cfg.MaxBytes = 10_000 // 5000 items in two layers
	cfg.WarnFill = func(bloom.ScalableStats) { warned++ }
	f := scalable(t, s.Client(), cfg)
	newItems := 0
	for i := range 6 {
		areNew, err := f.AddAll(t.Context(), numbered(fmt.Sprint("item", i), 5000))
		noError(t, err)
		if i > 0 {
			newItems += count(areNew)
		}
	}
	if least := 1 + newItems/4000/2; least < 2 || warned < least {
		t.Errorf("%d new items beyond the capacity, warned %d times, want %d at least", newItems, warned, least)
	}
}

// The last layer is too full, but the Stats of a region that lags show a filter
// of one layer: it can grow, and nobody is warned.
func TestScalableWarnsOnlyIfItCannotGrow(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg, warned := growing(), []int{}
	cfg.MaxBytes = 10_000 // 5000 items in two layers
	mustAdd(t, scalable(t, s.Client(), cfg), numbered("item", 900)...)
	cfg.WarnFill = func(st bloom.ScalableStats) { warned = append(warned, len(st.Layers)) }
	f := scalable(t, s.Client(upstash.WithoutSyncToken()), cfg)
	s.SetReplicaLag(math.MaxInt)
	mustAdd(t, f, numbered("more", 5000)...)
	if n := layersAt(t, s); n != 2 || len(warned) != 0 {
		t.Errorf("%d layers, warned of %v, want 2 layers and no warning", n, warned)
	}
	s.CatchUp()
	if _, err := f.AddAll(t.Context(), numbered("again", 400)); err != nil || !slices.Equal(warned, []int{2}) {
		t.Errorf("warned of %v layers, %v, want 2 once", warned, err)
	}
}

// A handle that has met a grown filter adds to one that was deleted: the new one
// begins with one layer. No handle forgets what it was told is in.
func TestScalableDeletedMeanwhile(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		cfg := growing()
		cfg.TTL = time.Hour
		f, other := scalable(t, c, cfg), scalable(t, c, cfg)
		for _, f := range []*bloom.Scalable{f, other} {
			mustAdd(t, f, numbered("item", 5000)...)
		}
		do(t, s, "DEL", key)
		add(t, f, "a", true)
		wantTTL(t, s, time.Hour)
		if n, length := layersAt(t, s), do(t, s, "STRLEN", key).(int64); n != 1 || length > 2000 {
			t.Errorf("%d layers, %d bytes, want 1 layer in 2000 bytes at most", n, length)
		}
		for _, f := range []*bloom.Scalable{f, other} {
			exists(t, f, "a", true)
			add(t, f, "a", false)
		}
		do(t, s, "DEL", key)
		if _, err := f.Exists(ctx, "a"); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("Exists of a deleted filter: %v, want ErrNotFound", err)
		}
	})
}
