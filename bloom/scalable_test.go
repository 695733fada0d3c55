package bloom_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
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
	return scalableAt(t, c, key, cfg)
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

// setTaken has the newest layer count n items, as if so many had been added.
func setTaken(t *testing.T, s *upstashtest.Server, n int) {
	t.Helper()
	do(t, s, "BITFIELD", key, "SET", "u32", "149", strconv.Itoa(n))
}

// Items are new once, and found from then on, while the filter grows from one
// layer to three, whichever handle adds them.
func TestScalableGrows(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client(patient)
		handles := []*bloom.Scalable{
			scalable(t, c, growing()), scalable(t, c, growing()), scalable(t, c, growing()),
		}
		items, falselySeen := numbered("item", 1500), 0
		for i := 0; i < len(items); {
			switch i {
			case 500:
				setTaken(t, s, 1000) // the first layer is full
			case 1000:
				setTaken(t, s, 4000)
			}
			f, step := handles[i%3], 1
			if i%250 == 200 {
				f, step = scalable(t, c, growing()), 50 // it knows nothing
			} else if i%100 >= 40 {
				step = 20
			}
			added, err := f.AddAll(ctx, items[i:i+step])
			noError(t, err)
			falselySeen += step - count(added)
			i += step
		}
		if falselySeen > 15 {
			t.Errorf("%d of %d new items were reported as seen, want 15 at most",
				falselySeen, len(items))
		}
		if n := layersAt(t, s); n != 3 {
			t.Errorf("%d layers, want 3", n)
		}
		for i := range 300 {
			item := items[rand.IntN(len(items))]
			add(t, handles[i%3], item, false)
		}
		wantFound(t, scalable(t, c, growing()), items)
		st, err := handles[0].Stats(ctx)
		if err != nil || len(st.Parts) != 3 || st.MaxParts != 5 || st.Items < 1425 || st.Items > 1650 ||
			st.LiveFPRate > 0.01 || st.Capacity != 341_000 {
			t.Errorf("Stats = %+v, %v, want 3 of 5 layers with about 1,500 items", st, err)
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
		type step struct {
			items         int
			layers, taken int64
		}
		steps := []step{{10, 1, 10}, {500, 1, 510}, {490, 1, 1000}, {1, 2, 1}, {3999, 2, 4000}, {5000, 3, 5000}, {1, 3, 5001}}
		if !testenv.Long() {
			steps = []step{{10, 1, 10}, {1490, 2, 500}, {1, 2, 501}}
		}
		for _, step := range steps {
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
			if processes != 4 && !testenv.Long() {
				continue
			}
			s.FlushAll()
			var all sync.WaitGroup
			items := numbered("item", 1000*processes)
			for own := range slices.Chunk(items, 1000) {
				f := scalable(t, s.Client(patient), growing())
				all.Go(func() { wantError(t, errorOf(f.AddAll(ctx, own)), nil) })
			}
			all.Wait()
			f := scalable(t, s.Client(patient), growing())
			wantFound(t, f, items)
			st, err := f.Stats(ctx)
			noError(t, err)
			for i, l := range st.Parts[:len(st.Parts)-1] {
				if (bloom.Stats{Items: l.Items, Capacity: l.Capacity}).OverCapacity() {
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

// MaxBytes ends the growth. Stats then say that the filter is too full.
func TestScalableMaxBytes(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg := growing()
		cfg.MaxBytes = 10_000
		f := scalable(t, s.Client(patient), cfg)
		for i := range 9 {
			mustAdd(t, f, numbered(fmt.Sprint("item", i), 1000)...)
			st, err := f.Stats(t.Context())
			if err != nil || st.MaxParts != 2 || st.Capacity != 5000 || i != 5 && st.OverCapacity() != (i > 5) {
				t.Errorf("Stats at %d items %+v, %v, want it over a capacity of 5,000: %t", 1000*(i+1), st, err, i > 5)
			}
		}
		if n := layersAt(t, s); n != 2 {
			t.Errorf("%d layers, want 2", n)
		}
		if n := do(t, s, "STRLEN", key).(int64); n > 10_000 {
			t.Errorf("the string has %d bytes, want 10,000 at most", n)
		}
	})
}

// The number of layers depends on the size of the first.
func TestScalableMaxLayers(t *testing.T) {
	s := upstashtest.NewServer(t)
	for _, want := range []struct {
		capacity, maxBytes uint64
		layers             int
	}{
		{1000, 0, 5},
		{150_000, 0, 5},
		{180_000, 0, 4},
		{180_000, 1 << 30, 5},
		{10_000_000, 1 << 30, 3},
		{10_000_000, 0, 2},
		{30_000_000, 0, 1},
	} {
		s.FlushAll()
		f := scalable(t, s.Client(patient), bloom.ScalableConfig{
			Capacity: want.capacity, FPRate: 0.01, MaxBytes: want.maxBytes,
		})
		add(t, f, "a", true)
		if st, err := f.Stats(t.Context()); err != nil || st.MaxParts != want.layers {
			t.Errorf("%+v: %d layers, %v", want, st.MaxParts, err)
		}
	}
}

func TestOpenScalable(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client(patient)
		wantError(t, errorOf(bloom.OpenScalable(ctx, c, key)), bloom.ErrNotFound)
		cfg := growing()
		cfg.Seed = 42
		items := numbered("item", 1500)
		mustAdd(t, scalable(t, c, cfg), items[:1200]...)
		f, err := bloom.OpenScalable(ctx, c, key, bloom.ScalableConfig{
			Seed: 42, MaxBytes: 10_000, TTL: time.Hour,
		})
		if err != nil || f.Geometry() != scalable(t, c, cfg).Geometry() {
			t.Fatalf("OpenScalable = %v, %v, want the geometry that was made", f, err)
		}
		answers, err := f.AddAll(ctx, items)
		if err != nil || count(answers[:1200]) != 0 || count(answers[1200:]) < 290 {
			t.Errorf("AddAll: %d and %d new, want 0 and 290 or more: %v",
				count(answers[:1200]), count(answers[1200:]), err)
		}
		wantTTL(t, s, time.Hour)
		st, err := f.Stats(ctx)
		if err != nil || st.MaxParts != 2 || st.Capacity != 5000 || !st.Seeded || len(st.Parts) != 2 {
			t.Errorf("Stats = %+v, %v, want 2 seeded layers for 5,000", st, err)
		}
		in, err := bloom.Inspect(ctx, c, key)
		if err != nil || in.Kind != bloom.KindScalable || in.Parts != nil || in.Counted() || in.SetBits != st.SetBits || in.Bytes != st.Bytes {
			t.Errorf("Inspect = %+v, %v, want what Stats returns: %+v", in, err, st)
		}
		for name, err := range map[string]error{
			"seed":   errorOf(bloom.OpenScalable(ctx, c, key)),
			"filter": errorOf(bloom.Open(ctx, c, key, bloom.Config{Seed: 42})),
			"window": errorOf(bloom.OpenWindow(ctx, c, key, bloom.WindowConfig{Seed: 42})),
		} {
			if m, is := errors.AsType[*bloom.MismatchError](err); !is || m.GotKind != bloom.KindScalable {
				t.Errorf("another %s: %v, want a MismatchError", name, err)
			}
		}
	})
}

// Without a Config, Capacity and FPRate speak of the layers within the default
// MaxBytes.
func TestInspectedScalableKnowsTheCapacity(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c := t.Context(), s.Client(patient)
	for _, cfg := range []bloom.ScalableConfig{
		{Capacity: 1000, FPRate: 0.01},
		{Capacity: 4097, FPRate: 0.3}, // a rate that the birth number does not say
		{Capacity: 10_000_000, FPRate: 0.001},
	} {
		s.FlushAll()
		create(t, scalable(t, c, cfg), true)
		opened, err := bloom.OpenScalable(ctx, c, key)
		noError(t, err)
		want, err := opened.Stats(ctx)
		noError(t, err)
		one, err := bloom.Inspect(ctx, c, key)
		noError(t, err)
		all, err := bloom.InspectAll(ctx, c, []string{key})
		noError(t, err)
		all[0].Stats.TTL, one.TTL = 0, 0
		for name, got := range map[string]bloom.Stats{
			"Inspect": one, "InspectAll": all[0].Stats, "Backup": takeBackup(t, c, key).Stats(),
		} {
			if got.Counted() || got.Parts != nil || got.Fill != 0 || got.Items != 0 || got.LiveFPRate != 0 ||
				got.Capacity != want.Capacity || got.FPRate != want.FPRate || got.MaxParts != want.MaxParts ||
				want.Capacity < cfg.Capacity*2047/2048 || want.FPRate <= 0 || want.FPRate > cfg.FPRate {
				t.Errorf("%s of %v: %+v, want what the handle says: %+v", name, cfg, got, want)
			}
		}
	}
}

// The string says what its first layer is for. So an opened handle knows the
// capacity, and begins a second layer at the same item as the handle that made
// the filter.
func TestOpenScalableCapacity(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c := t.Context(), s.Client(patient)
	for _, capacity := range []uint64{1, 1000, 1010, 4097} {
		s.FlushAll()
		cfg := rare()
		cfg.Capacity = capacity
		made := scalable(t, c, cfg)
		create(t, made, true)
		f, err := bloom.OpenScalable(ctx, c, key)
		noError(t, err)
		want, err := made.Stats(ctx)
		noError(t, err)
		got, err := f.Stats(ctx)
		if err != nil || got.Capacity != want.Capacity || got.FPRate != want.FPRate {
			t.Errorf("Capacity %d: opened %d at %v, %v, want %d at %v",
				capacity, got.Capacity, got.FPRate, err, want.Capacity, want.FPRate)
		}
		first := int(want.Parts[0].Capacity)
		if low := max(capacity, 1000); uint64(first) > low || uint64(first) < low-low/2048-1 {
			t.Errorf("Capacity %d: the first layer is for %d", capacity, first)
		}
		setTaken(t, s, first-1)
		for i, item := range []string{"the last", "one more"} {
			if _, err := f.Add(ctx, item); err != nil || layersAt(t, s) != int64(i+1) {
				t.Errorf("Capacity %d, %s item: %d layers, %v, want %d", capacity, item, layersAt(t, s), err, i+1)
			}
		}
	}
}

// Handles of one geometry may be for different numbers of items: the word says
// for which.
func TestScalableOfAnotherCapacity(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client(patient)
		add(t, scalable(t, c, growing()), "a", true)
		word := do(t, s, "BITFIELD_RO", key, "GET", "u53", "128").([]any)[0].(int64)
		do(t, s, "BITFIELD", key, "SET", "u53", "128", fmt.Sprint(word+1<<36))
		f, before := scalable(t, c, growing()), do(t, s, "GET", key)
		for name, err := range map[string]error{
			"Add": errorOf(f.Add(ctx, "b")), "AddAll": errorOf(f.AddAll(ctx, numbered("item", 100))),
			"Exists": errorOf(f.Exists(ctx, "a")), "Create": errorOf(f.Create(ctx)),
			"OpenScalable": errorOf(bloom.OpenScalable(ctx, c, key, growing())),
		} {
			if m, is := errors.AsType[*bloom.MismatchError](err); !is || m.Field != "Capacity" || !upstash.SafeToRetry(err) {
				t.Errorf("%s: %v, want a MismatchError of the Capacity, and nothing done", name, err)
			}
		}
		if do(t, s, "GET", key) != before {
			t.Error("the string was changed")
		}
	})
}

// A filter of another kind or size is a mismatch. Other data stays as it is.
func TestScalableMismatch(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client(patient)
		larger, seeded := growing(), growing()
		larger.Capacity, seeded.Seed = 5000, 7
		refused := func(what string, err error, mismatch bool) {
			t.Helper()
			var m *bloom.MismatchError
			if errors.As(err, &m) != mismatch || !mismatch && !errors.Is(err, bloom.ErrNotFilter) {
				t.Errorf("%s: %v, want a MismatchError: %v, or else ErrNotFilter", what, err, mismatch)
			}
		}
		layers := func(n string) func() {
			return func() {
				add(t, scalable(t, c, growing()), "a", true)
				do(t, s, "BITFIELD", key, "SET", "u4", "145", n)
			}
		}
		for name, put := range map[string]func(){
			"filter":       func() { add(t, handle(t, c, small()), "a", true) },
			"larger":       func() { add(t, scalable(t, c, larger), "a", true) },
			"another seed": func() { add(t, scalable(t, c, seeded), "a", true) },
			"text":         func() { do(t, s, "SET", key, "hello, this is some other text of a user") },
			"list":         func() { do(t, s, "RPUSH", key, "a") },
			"9 layers":     layers("9"),
			"no layers":    layers("0"),
		} {
			s.FlushAll()
			put()
			look, mismatch := "GET", name == "filter" || name == "larger" || name == "another seed"
			if name == "list" {
				look = "LLEN"
			}
			before, f := do(t, s, look, key), scalable(t, c, growing())
			refused(name+", Add", errorOf(f.Add(ctx, "a")), mismatch)
			refused(name+", AddAll", errorOf(f.AddAll(ctx, numbered("item", 100))), mismatch)
			refused(name+", Exists", errorOf(f.Exists(ctx, "a")), mismatch)
			refused(name+", Stats", errorOf(f.Stats(ctx)), mismatch)
			refused(name+", Cardinality", errorOf(f.Cardinality(ctx)), mismatch)
			if !strings.HasSuffix(name, "layers") { // the string has the right kind and size
				refused(name+", Create", errorOf(f.Create(ctx)), mismatch)
			}
			if do(t, s, look, key) != before {
				t.Errorf("%s: the string was changed", name)
			}
		}
	})
}

// With MustExist, Add makes nothing. A filter made by Create grows.
func TestScalableMustExist(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx := t.Context()
		cfg := growing()
		cfg.MustExist = true
		f := scalable(t, s.Client(patient), cfg)
		missing := func() {
			t.Helper()
			for name, err := range map[string]error{
				"Add": errorOf(f.Add(ctx, "a")), "AddAll": errorOf(f.AddAll(ctx, numbered("item", 5))),
				"AddAll of many": errorOf(f.AddAll(ctx, numbered("item", 500))),
			} {
				if !errors.Is(err, bloom.ErrNotFound) || do(t, s, "EXISTS", key) != int64(0) {
					t.Errorf("%s: %v, want ErrNotFound", name, err)
				}
			}
		}
		missing()
		create(t, f, true)
		for i := range 3 {
			items := numbered(fmt.Sprint(i), 400)
			if answers, err := f.AddAll(ctx, items); err != nil || count(answers) < 390 {
				t.Fatalf("AddAll: %d new, want 390 or more: %v", count(answers), err)
			}
			add(t, scalable(t, s.Client(patient), cfg), items[7], false)
			add(t, f, items[8], false)
			wantFound(t, f, items)
		}
		if n := layersAt(t, s); n != 2 {
			t.Errorf("%d layers, want 2", n)
		}
		do(t, s, "DEL", key)
		missing()
	})
}

// If every bit of a layer is set, nobody can say how many items it holds.
func TestScalableSaturated(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := scalable(t, s.Client(patient), growing())
	create(t, f, true)
	bytes := int((f.Geometry().Bits + 7) / 8)
	do(t, s, "SETRANGE", key, "24", strings.Repeat("\xff", bytes))
	if n, err := f.Cardinality(t.Context()); n != 0 || !errors.Is(err, bloom.ErrSaturated) {
		t.Errorf("Cardinality = %d, %v, want ErrSaturated", n, err)
	}
	if st, err := f.Stats(t.Context()); err != nil || !st.Saturated || !st.OverCapacity() {
		t.Errorf("Stats = %+v, %v, want a saturated one", st, err)
	}
}

// TestScalableRequestsAndCommands counts at the server what each call costs.
// Each step builds on those before it.
func TestScalableRequestsAndCommands(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client(patient)
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
			wantError(t, errorOf(f.Exists(ctx, "a")), bloom.ErrNotFound)
			return nil
		}
		costs := func(step string, requests, billed int64, do func() error) {
			t.Helper()
			bloomtest.Costs(t, s, step, requests, billed, do)
		}
		costs("Exists, no filter", 1, 1, missing)
		// EVAL, BITFIELD_RO, EXISTS and BITFIELD.
		costs("the very first Add", 1, 4, addOne(f, "a"))
		costs("Add", 1, 3, addOne(f, "b"))
		costs("Add again", 1, 2, addOne(f, "b"))
		costs("Exists", 1, 1, func() error { return errorOf(f.Exists(ctx, "a")) })
		costs("Exists of a new handle", 1, 1, func() error { return errorOf(scalable(t, c, growing()).Exists(ctx, "a")) })
		costs("Add of a new handle, seen", 1, 2, addOne(scalable(t, c, growing()), "a"))
		costs("Add of a new handle, new", 1, 3, addOne(cold, "c"))
		costs("Add of it", 1, 3, addOne(cold, "d"))
		costs("AddAll of 15", 1, 3, addAll(f, numbered("x", 15)))
		// EVAL, two BITFIELD_RO, SETBIT and BITFIELD.
		costs("AddAll of 1,000, which grows", 1, 5, addAll(f, thousand))
		costs("AddAll of 1,000 again", 1, 3, addAll(f, thousand))
		costs("ExistsAll of 1,000", 1, 1, func() error { return errorOf(f.ExistsAll(ctx, thousand)) })
		costs("none", 0, 0, addAll(f, nil))
		costs("Create, existing", 1, 2, func() error { return errorOf(f.Create(ctx)) })
		costs("OpenScalable", 1, 2, func() error { return errorOf(bloom.OpenScalable(ctx, c, key)) })
		costs("Inspect", 1, 4, func() error { return errorOf(bloom.Inspect(ctx, c, key)) })
		costs("Stats", 1, 8, func() error { return errorOf(f.Stats(ctx)) })
		costs("Cardinality", 1, 6, func() error { return errorOf(f.Cardinality(ctx)) })
		costs("Expire", 1, 4, func() error { return errorOf(f.Expire(ctx, time.Hour)) })
		costs("Persist", 1, 4, func() error { return errorOf(f.Persist(ctx)) })
		costs("Delete", 1, 3, func() error { return errorOf(f.Delete(ctx)) })

		costs("Create", 1, 4, func() error { return errorOf(f.Create(ctx)) })
		costs("Add after Create", 1, 3, addOne(f, "a"))
		costs("Delete by another", 1, 3, func() error { return errorOf(cold.Delete(ctx)) })
		costs("AddAll of 1,001, no filter, with a TTL", 2, 8, addAll(old, numbered("item", 1001)))
		costs("Delete by another", 1, 3, func() error { return errorOf(cold.Delete(ctx)) })
		// PEXPIRE as well.
		costs("Add, deleted meanwhile", 1, 5, addOne(old, "a"))
		costs("Rename", 1, 3, func() error { return old.Rename(ctx, "elsewhere") })
		costs("Add after Rename", 1, 5, addOne(old, "a"))
	})
}

// The documentation names the size of a request of 1,000 items.
func TestScalableRequestBytes(t *testing.T) {
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
