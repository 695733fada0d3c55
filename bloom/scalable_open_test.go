package bloom_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

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
		f := scalable(t, s.Client(), bloom.ScalableConfig{
			Capacity: want.capacity, FPRate: 0.01, MaxBytes: want.maxBytes,
		})
		add(t, f, "a", true)
		if st, err := f.Stats(t.Context()); err != nil || st.MaxLayers != want.layers {
			t.Errorf("%+v: %d layers, %v", want, st.MaxLayers, err)
		}
	}
}

func TestOpenScalable(t *testing.T) {
	neverByLot(t)
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		if _, err := bloom.OpenScalable(ctx, c, key); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("OpenScalable of a missing filter: %v, want ErrNotFound", err)
		}
		cfg := growing()
		cfg.Seed = 42
		items := numbered("item", 3000)
		mustAdd(t, scalable(t, c, cfg), items[:2000]...)
		f, err := bloom.OpenScalable(ctx, c, key, bloom.ScalableConfig{
			Seed: 42, MaxBytes: 10_000, TTL: time.Hour, BatchBytes: 20_000, BatchParallel: 2,
		})
		if err != nil || f.Geometry() != scalable(t, c, cfg).Geometry() {
			t.Fatalf("OpenScalable = %v, %v, want the geometry that was made", f, err)
		}
		answers, err := f.AddAll(ctx, items)
		if err != nil || count(answers[:2000]) != 0 || count(answers[2000:]) < 980 {
			t.Errorf("AddAll: %d and %d new, want 0 and 980 or more: %v",
				count(answers[:2000]), count(answers[2000:]), err)
		}
		wantTTL(t, s, time.Hour)
		st, err := f.Stats(ctx)
		if err != nil || st.MaxLayers != 2 || st.Capacity != 5000 || !st.Seeded || st.Parts != 2 {
			t.Errorf("Stats = %+v, %v, want 2 seeded layers for 5,000", st, err)
		}
		in, err := bloom.Inspect(ctx, c, key)
		if err != nil || in.Kind != bloom.KindLayers || in.Parts != 2 || in.SetBits != st.SetBits || in.Bytes != st.Bytes {
			t.Errorf("Inspect = %+v, %v, want what Stats returns: %+v", in, err, st)
		}
		for name, err := range map[string]error{
			"seed":   errorOf(bloom.OpenScalable(ctx, c, key)),
			"filter": errorOf(bloom.Open(ctx, c, key, bloom.Config{Seed: 42})),
			"window": errorOf(bloom.OpenWindow(ctx, c, key, bloom.WindowConfig{Seed: 42})),
		} {
			var m *bloom.MismatchError
			if !errors.As(err, &m) || m.GotKind != bloom.KindLayers {
				t.Errorf("another %s: %v, want a MismatchError", name, err)
			}
		}
	})
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
		first := int(want.Layers[0].Capacity)
		if low := max(capacity, 1000); uint64(first) > low || uint64(first) < low-low/2048-1 {
			t.Errorf("Capacity %d: the first layer is for %d", capacity, first)
		}
		if _, err := f.AddAll(ctx, numbered("item", first)); err != nil || layersAt(t, s) != 1 {
			t.Errorf("Capacity %d: %d layers, %v, want 1", capacity, layersAt(t, s), err)
		}
		if _, err := f.Add(ctx, "one more"); err != nil || layersAt(t, s) != 2 {
			t.Errorf("Capacity %d: %d layers, %v, want 2", capacity, layersAt(t, s), err)
		}
	}
}

// Handles of one geometry may be for different numbers of items: the word says
// for which.
func TestScalableOfAnotherCapacity(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		noError(t, errorOf(scalable(t, c, growing()).Add(ctx, "a")))
		word := do(t, s, "BITFIELD_RO", key, "GET", "u53", "128").([]any)[0].(int64)
		do(t, s, "BITFIELD", key, "SET", "u53", "128", fmt.Sprint(word+1<<36))
		f, before := scalable(t, c, growing()), do(t, s, "GET", key)
		for name, err := range map[string]error{
			"Add": errorOf(f.Add(ctx, "b")), "AddAll": errorOf(f.AddAll(ctx, numbered("item", 100))),
			"Exists": errorOf(f.Exists(ctx, "a")), "Create": errorOf(f.Create(ctx)),
			"OpenScalable": errorOf(bloom.OpenScalable(ctx, c, key, growing())),
		} {
			var m *bloom.MismatchError
			if !errors.As(err, &m) || m.Field != "Capacity" || !upstash.SafeToRetry(err) {
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
		ctx, c := t.Context(), s.Client()
		larger := growing()
		larger.Capacity = 5000
		for name, other := range map[string]func(){
			"filter": func() { add(t, handle(t, c, small()), "a", true) },
			"larger": func() {
				noError(t, errorOf(scalable(t, c, larger).Add(ctx, "a")))
			},
			"text":         func() { do(t, s, "SET", key, "hello, this is some other text of a user") },
			"list":         func() { do(t, s, "RPUSH", key, "a") },
			"wrong layers": func() { do(t, s, "BITFIELD", key, "SET", "u4", "145", "9") },
		} {
			s.FlushAll()
			if name == "wrong layers" {
				noError(t, errorOf(scalable(t, c, growing()).Add(ctx, "a")))
			}
			other()
			look := []string{"GET", key}
			if name == "list" {
				look = []string{"LLEN", key}
			}
			before := do(t, s, look...)
			f := scalable(t, c, growing())
			for call, err := range map[string]error{
				"Add":         errorOf(f.Add(ctx, "a")),
				"AddAll":      errorOf(f.AddAll(ctx, numbered("item", 100))),
				"Exists":      errorOf(f.Exists(ctx, "a")),
				"Create":      errorOf(f.Create(ctx)),
				"Stats":       errorOf(f.Stats(ctx)),
				"Cardinality": errorOf(f.Cardinality(ctx)),
			} {
				var m *bloom.MismatchError
				isMismatch := errors.As(err, &m)
				if call == "Create" && name == "wrong layers" {
					continue // the string has the right kind and size
				}
				if want := name == "filter" || name == "larger"; isMismatch != want ||
					!want && !errors.Is(err, bloom.ErrNotFilter) {
					t.Errorf("%s, %s: %v, want a MismatchError: %v, or else ErrNotFilter",
						name, call, err, want)
				}
			}
			if do(t, s, look...) != before {
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
		f := scalable(t, s.Client(), cfg)
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
			items := numbered(fmt.Sprint(i), 1000)
			if answers, err := f.AddAll(ctx, items); err != nil || count(answers) < 980 {
				t.Fatalf("AddAll: %d new, want 980 or more: %v", count(answers), err)
			}
			add(t, scalable(t, s.Client(), cfg), items[7], false)
			add(t, f, items[8], false)
			if found, err := f.ExistsAll(ctx, items); err != nil || count(found) != 1000 {
				t.Errorf("ExistsAll: %d of 1000 found, %v", count(found), err)
			}
		}
		if n := layersAt(t, s); n != 2 {
			t.Errorf("%d layers, want 2", n)
		}
		do(t, s, "DEL", key)
		missing()
	})
}

// Reads says who is asked, of a filter that has grown too.
func TestScalableReads(t *testing.T) {
	neverByLot(t)
	s := upstashtest.NewServer(t)
	for _, reads := range []bloom.Reads{bloom.ReadsNearest, bloom.ReadsNearestFirst} {
		s.FlushAll()
		cfg := growing()
		cfg.Reads, cfg.MissingIsEmpty = reads, true
		f := scalable(t, s.Client(), cfg)
		if found, err := f.Exists(t.Context(), "a"); found || err != nil {
			t.Errorf("%v: Exists, missing: %v, %v", reads, found, err)
		}
		mustAdd(t, scalable(t, s.Client(), growing()), numbered("item", 3000)...)
		if added, err := f.Add(t.Context(), "a"); !added || err != nil {
			t.Errorf("%v: Add = %v, %v, want true", reads, added, err)
		}
		found, err := f.ExistsAll(t.Context(), append(numbered("item", 3000), "a"))
		if err != nil || count(found) != 3001 {
			t.Errorf("%v: %d of 3001 found, %v", reads, count(found), err)
		}
	}
	reader := s.Client(upstash.WithReadOnly())
	exists(t, scalable(t, reader, growing()), "a", true)
	if _, err := scalable(t, reader, growing()).Add(t.Context(), "a"); !errors.Is(err, upstash.ErrReadOnly) {
		t.Errorf("read-only: Add: %v, want ErrReadOnly", err)
	}
}

// If every bit of a layer is set, nobody can say how many items it holds.
func TestScalableSaturated(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := scalable(t, s.Client(), growing())
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
