package bloom_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// operationsOf are the calls that read the filter or write to it.
func operationsOf(t *testing.T, f *bloom.Filter) map[string]func() error {
	ctx, items := t.Context(), []string{"a", "b"}
	return map[string]func() error{
		"Add":         func() error { _, err := f.Add(ctx, "a"); return err },
		"AddAll":      func() error { _, err := f.AddAll(ctx, items); return err },
		"Exists":      func() error { _, err := f.Exists(ctx, "a"); return err },
		"ExistsAll":   func() error { _, err := f.ExistsAll(ctx, items); return err },
		"Create":      func() error { _, err := f.Create(ctx); return err },
		"Cardinality": func() error { _, err := f.Cardinality(ctx); return err },
		"Stats":       func() error { _, err := f.Stats(ctx); return err },
	}
}

func TestMismatch(t *testing.T) {
	seeded := small()
	seeded.Seed = 7
	larger := small()
	larger.Capacity = 2000
	fnv := small()
	fnv.Scheme = bloom.SchemeFNV1a
	hashes := small()
	hashes.Capacity, hashes.FPRate, hashes.Bits, hashes.Hashes = 0, 0, 10_759, 6
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for name, other := range map[string]bloom.Config{
			"capacity": larger, "seed": seeded, "scheme": fnv, "hashes": hashes,
		} {
			theirs, err := other.Geometry()
			if err != nil {
				t.Fatal(err)
			}
			for op := range operationsOf(t, nil) {
				s.FlushAll()
				c := s.Client()
				there := handle(t, c, other)
				add(t, there, "theirs", true)
				ours := handle(t, c, small())
				err := operationsOf(t, ours)[op]()
				var m *bloom.MismatchError
				if !errors.As(err, &m) {
					t.Fatalf("%s, %s: %v, want a MismatchError", name, op, err)
				}
				want := theirs
				want.Seed = 0 // the header does not say it
				if m.Want != ours.Geometry() || m.Got != want || m.OtherSeed != (name == "seed") ||
					m.WantKind != bloom.KindFilter || m.GotKind != bloom.KindFilter {
					t.Errorf("%s, %s: %+v", name, op, *m)
				}
				if strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "theirs") {
					t.Errorf("%s, %s: %q has a key or an item in it", name, op, err)
				}
				exists(t, there, "theirs", true)
			}
		}
	})
}

// Headers written by hand: what else of this format, or a later one, may stand
// at the key.
func TestOtherKinds(t *testing.T) {
	g, err := small().Geometry()
	if err != nil {
		t.Fatal(err)
	}
	// The second word is not 0: an Add would set a birth number there.
	second := func(header string) string { return header[:8] + "\x80 second" }
	counting := g
	counting.Scheme = 2
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, tt := range []struct {
			name, header string
			kind         bloom.Kind // of the MismatchError, if it is one
			mismatch     bool
		}{
			{"shard", headerOf(1, 1, g), bloom.Kind(1), true},
			{"layers", headerOf(2, 1, g), bloom.Kind(2), true},
			{"window", headerOf(3, 1, g), bloom.Kind(3), true},
			{"counting", headerOf(0, 1, counting), bloom.KindFilter, true},
			{"newer version", headerOf(0, 2, g), 0, false},
			{"newer shard", headerOf(1, 3, g), 0, false},
		} {
			for name := range operationsOf(t, nil) {
				header := second(tt.header)
				do(t, s, "SET", key, header)
				err := operationsOf(t, handle(t, s.Client(), small()))[name]()
				var m *bloom.MismatchError
				if got := errors.As(err, &m); got != tt.mismatch || got && m.GotKind != tt.kind {
					t.Errorf("%s of a %s: %v", name, tt.name, err)
				}
				if !tt.mismatch && !errors.Is(err, bloom.ErrNotFilter) {
					t.Errorf("%s of a %s: %v, want ErrNotFilter", name, tt.name, err)
				}
				if got := stored(t, s); got[:16] != header {
					t.Errorf("%s of a %s made its header %x", name, tt.name, got[:16])
				}
			}
		}
	})
}

// A handle that met another filter writes nothing more, and works again once
// the key is free.
func TestRefusalIsRememberedAndHeals(t *testing.T) {
	put := map[string]func(t *testing.T, s *upstashtest.Server){
		"another filter": func(t *testing.T, s *upstashtest.Server) {
			add(t, handle(t, s.Client(), sparse()), "theirs", true)
		},
		"a string": func(t *testing.T, s *upstashtest.Server) { do(t, s, "SET", key, "\xff their bytes \xff") },
		"a list":   func(t *testing.T, s *upstashtest.Server) { do(t, s, "RPUSH", key, "theirs") },
	}
	heal := map[string]func(t *testing.T, s *upstashtest.Server, f *bloom.Filter){
		"Exists": func(t *testing.T, s *upstashtest.Server, f *bloom.Filter) {
			do(t, s, "DEL", key)
			if _, err := f.Exists(t.Context(), "a"); !errors.Is(err, bloom.ErrNotFound) {
				t.Errorf("Exists: %v, want ErrNotFound", err)
			}
		},
		"Create": func(t *testing.T, s *upstashtest.Server, f *bloom.Filter) {
			do(t, s, "DEL", key)
			if created, err := f.Create(t.Context()); err != nil || !created {
				t.Errorf("Create = %v, %v, want true", created, err)
			}
		},
		"Exists, made by another": func(t *testing.T, s *upstashtest.Server, f *bloom.Filter) {
			do(t, s, "DEL", key)
			add(t, handle(t, s.Client(), small()), "b", true)
			exists(t, f, "b", true)
		},
		"Delete": func(t *testing.T, s *upstashtest.Server, f *bloom.Filter) {
			if deleted, err := f.Delete(t.Context()); !isRefusal(err) || deleted {
				t.Errorf("Delete = %v, %v, want a refusal", deleted, err)
			}
			do(t, s, "DEL", key)
			if deleted, err := f.Delete(t.Context()); err != nil || deleted {
				t.Errorf("Delete = %v, %v, want false", deleted, err)
			}
		},
	}
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for there, put := range put {
			for by, heal := range heal {
				for _, meet := range []string{"Add", "AddAll", "Exists", "ExistsAll", "Create"} {
					s.FlushAll()
					put(t, s)
					f := handle(t, s.Client(), small())
					ops := operationsOf(t, f)
					first := ops[meet]()
					if !isRefusal(first) {
						t.Fatalf("%s, %s: %v, want a refusal", there, meet, first)
					}
					s.ResetStats()
					for _, op := range []string{"Add", "AddAll"} {
						if err := ops[op](); !isRefusal(err) {
							t.Errorf("%s, %s after %s: %v, want %v", there, op, meet, err, first)
						}
					}
					if n := s.Stats().Requests; n != 0 {
						t.Errorf("%s: %d requests after a refusal, want 0", there, n)
					}
					heal(t, s, f)
					add(t, f, "a", true)
					if t.Failed() {
						t.Fatalf("%s, met by %s, healed by %s", there, meet, by)
					}
				}
			}
		}
	})
}

// Exists, Open, Create and the other reads change no data that is not theirs.
func TestLookingTouchesNothing(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, value := range []string{
			stringOf(bloom.Geometry{Bits: 300, Hashes: 3}, bloom.LayoutHeaded, "theirs"),
			"text", "\xff", "\x80\x00", "",
		} {
			do(t, s, "SET", key, value)
			f := handle(t, s.Client(), expiring(1<<40))
			for name, op := range operationsOf(t, f) {
				if name == "Add" || name == "AddAll" || value == "" && name == "Create" {
					continue
				}
				if err := op(); err == nil {
					t.Errorf("%s of %q: no error", name, value)
				}
			}
			if _, err := bloom.Open(t.Context(), s.Client(), key); err == nil && len(value) < 20 {
				t.Errorf("Open of %q: no error", value)
			}
			if got := stored(t, s); got != value {
				t.Errorf("%q became %q", value, got)
			}
			wantNoTTL(t, s)
		}
	})
}

// A wrong Add adds no more than its own bits to another filter: it has no wrong
// "no" later.
func TestWrongAddLeavesTheOtherFilterRight(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		items := numbered("theirs", 200)
		there := handle(t, s.Client(), small())
		if _, err := there.AddAll(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		before := stored(t, s)
		cfg := sparse()
		cfg.BatchBytes = 1000
		_, err := handle(t, s.Client(), cfg).AddAll(t.Context(), numbered("ours", 500))
		var m *bloom.MismatchError
		if !errors.As(err, &m) {
			t.Fatalf("AddAll: %v, want a MismatchError", err)
		}
		found, err := there.ExistsAll(t.Context(), items)
		if err != nil || count(found) != len(items) {
			t.Errorf("%d of %d found, %v", count(found), len(items), err)
		}
		if got := stored(t, s)[:16]; got != before[:16] {
			t.Errorf("header %x, want %x", got, before[:16])
		}
	})
}

// An Add may write its header into a string that begins with zeros, or add it to
// the first bits of other text. Either is found out, even if the sum looks like a
// header.
func TestAddToText(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, text := range []string{
			"text", "\x00\x00\x00\x00\x00\x00\x08 eight", "\x00\x00\x01", "~~~~~~~~", "\x90",
		} {
			do(t, s, "SET", key, text)
			f := handle(t, s.Client(), small())
			if added, err := f.Add(t.Context(), "a"); !errors.Is(err, bloom.ErrNotFilter) || added {
				t.Errorf("Add to %q = %v, %v, want ErrNotFilter", text, added, err)
			}
		}
	})
}

func isRefusal(err error) bool {
	var m *bloom.MismatchError
	return errors.As(err, &m) || errors.Is(err, bloom.ErrNotFilter)
}
