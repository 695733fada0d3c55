package systemtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestMismatch(t *testing.T) {
	seeded := bloomtest.Small()
	seeded.Seed = 7
	larger := bloomtest.Small()
	larger.Capacity = 2000
	fnv := bloomtest.Small()
	fnv.Scheme = bloom.SchemeFNV1a
	hashes := bloomtest.Small()
	hashes.Capacity, hashes.FPRate, hashes.Bits, hashes.Hashes = 0, 0, 10_759, 6
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for name, other := range map[string]bloom.Config{
			"capacity": larger, "seed": seeded, "scheme": fnv, "hashes": hashes,
		} {
			theirs, err := other.Geometry()
			if err != nil {
				t.Fatal(err)
			}
			for op := range bloomtest.OperationsOf(t, nil) {
				s.FlushAll()
				c := s.Client()
				there := bloomtest.Handle(t, c, other)
				bloomtest.Add(t, there, "theirs", true)
				ours := bloomtest.Handle(t, c, bloomtest.Small())
				err := bloomtest.OperationsOf(t, ours)[op]()
				var m *bloom.MismatchError
				if !errors.As(err, &m) {
					t.Fatalf("%s, %s: %v, want a MismatchError", name, op, err)
				}
				want := theirs
				want.Seed = 0 // the header does not have it
				if m.Want != ours.Geometry() || m.Got != want || m.OtherSeed != (name == "seed") ||
					m.WantKind != bloom.KindFilter || m.GotKind != bloom.KindFilter {
					t.Errorf("%s, %s: %+v, want a mismatch with %v", name, op, *m, want)
				}
				if strings.Contains(err.Error(), bloomtest.Key) || strings.Contains(err.Error(), "theirs") {
					t.Errorf("%s, %s: %q has a key or an item in it", name, op, err)
				}
				bloomtest.Exists(t, there, "theirs", true)
			}
		}
	})
}

// Hand-written headers of what else may be at the key, in this format or a
// later one.
func TestOtherKinds(t *testing.T) {
	g, err := bloomtest.Small().Geometry()
	if err != nil {
		t.Fatal(err)
	}
	// The second word is not 0, so an Add would not set a birth number there.
	second := func(header string) string { return header[:8] + "\x80 second" }
	counting := g
	counting.Scheme = 2
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, tt := range []struct {
			name, header string
			kind         bloom.Kind // of the MismatchError, if mismatch
			mismatch     bool
		}{
			{"shard", bloomtest.HeaderOf(bloom.KindShard, g), bloom.KindShard, true},
			{"layers", bloomtest.HeaderOf(bloom.KindLayers, g), bloom.KindLayers, true},
			{"window", bloomtest.HeaderOf(bloom.KindWindow, g), bloom.KindWindow, true},
			{"counting", bloomtest.HeaderOf(bloom.KindFilter, counting), bloom.KindFilter, true},
			{"newer version", bloomtest.HeaderOfVersion(2, bloom.KindFilter, g), 0, false},
			{"newer shard", bloomtest.HeaderOfVersion(3, bloom.KindShard, g), 0, false},
		} {
			for name := range bloomtest.OperationsOf(t, nil) {
				header := second(tt.header)
				bloomtest.Do(t, s, "SET", bloomtest.Key, header)
				err := bloomtest.OperationsOf(t, bloomtest.Handle(t, s.Client(), bloomtest.Small()))[name]()
				var m *bloom.MismatchError
				if got := errors.As(err, &m); got != tt.mismatch || got && m.GotKind != tt.kind {
					t.Errorf("%s of a %s: %v, want a mismatch: %v", name, tt.name, err, tt.mismatch)
				}
				if !tt.mismatch && !errors.Is(err, bloom.ErrNotFilter) {
					t.Errorf("%s of a %s: %v, want ErrNotFilter", name, tt.name, err)
				}
				if got := bloomtest.Stored(t, s); got[:16] != header {
					t.Errorf("%s of a %s made its header %x", name, tt.name, got[:16])
				}
			}
		}
	})
}

// A handle that met another filter writes no more until the key is free.
func TestRefusalIsRememberedAndHeals(t *testing.T) {
	put := map[string]func(t *testing.T, s *upstashtest.Server){
		"another filter": func(t *testing.T, s *upstashtest.Server) {
			bloomtest.Add(t, bloomtest.Handle(t, s.Client(), bloomtest.Sparse()), "theirs", true)
		},
		"a string": func(t *testing.T, s *upstashtest.Server) {
			bloomtest.Do(t, s, "SET", bloomtest.Key, "\xff their bytes \xff")
		},
		"a list": func(t *testing.T, s *upstashtest.Server) {
			bloomtest.Do(t, s, "RPUSH", bloomtest.Key, "theirs")
		},
	}
	heal := map[string]func(t *testing.T, s *upstashtest.Server, f *bloom.Filter){
		"Exists": func(t *testing.T, s *upstashtest.Server, f *bloom.Filter) {
			bloomtest.Do(t, s, "DEL", bloomtest.Key)
			if _, err := f.Exists(t.Context(), "a"); !errors.Is(err, bloom.ErrNotFound) {
				t.Errorf("Exists: %v, want ErrNotFound", err)
			}
		},
		"Create": func(t *testing.T, s *upstashtest.Server, f *bloom.Filter) {
			bloomtest.Do(t, s, "DEL", bloomtest.Key)
			if created, err := f.Create(t.Context()); err != nil || !created {
				t.Errorf("Create = %v, %v, want true", created, err)
			}
		},
		"Exists, made by another": func(t *testing.T, s *upstashtest.Server, f *bloom.Filter) {
			bloomtest.Do(t, s, "DEL", bloomtest.Key)
			bloomtest.Add(t, bloomtest.Handle(t, s.Client(), bloomtest.Small()), "b", true)
			bloomtest.Exists(t, f, "b", true)
		},
		"Delete": func(t *testing.T, s *upstashtest.Server, f *bloom.Filter) {
			if deleted, err := f.Delete(t.Context()); !bloomtest.IsRefusal(err) || deleted {
				t.Errorf("Delete = %v, %v, want a refusal", deleted, err)
			}
			bloomtest.Do(t, s, "DEL", bloomtest.Key)
			if deleted, err := f.Delete(t.Context()); err != nil || deleted {
				t.Errorf("Delete = %v, %v, want false", deleted, err)
			}
		},
	}
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for there, put := range put {
			for by, heal := range heal {
				for _, meet := range []string{"Add", "AddAll", "Exists", "ExistsAll", "Create"} {
					s.FlushAll()
					put(t, s)
					f := bloomtest.Handle(t, s.Client(), bloomtest.Small())
					ops := bloomtest.OperationsOf(t, f)
					first := ops[meet]()
					if !bloomtest.IsRefusal(first) {
						t.Fatalf("%s, %s: %v, want a refusal", there, meet, first)
					}
					s.ResetStats()
					for _, op := range []string{"Add", "AddAll"} {
						if err := ops[op](); !bloomtest.IsRefusal(err) {
							t.Errorf("%s, %s after %s: %v, want %v", there, op, meet, err, first)
						}
					}
					if n := s.Stats().Requests; n != 0 {
						t.Errorf("%s: %d requests after a refusal, want 0", there, n)
					}
					heal(t, s, f)
					bloomtest.Add(t, f, "a", true)
					if t.Failed() {
						t.Fatalf("%s, met by %s, healed by %s: still refused", there, meet, by)
					}
				}
			}
		}
	})
}

// Exists, Open, Create and the other reads leave other data unchanged.
func TestLookingTouchesNothing(t *testing.T) {
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, value := range []string{
			bloomtest.StringOf(bloom.Geometry{Bits: 300, Hashes: 3}, bloom.LayoutHeaded, "theirs"),
			"text", "\xff", "\x80\x00", "",
		} {
			bloomtest.Do(t, s, "SET", bloomtest.Key, value)
			f := bloomtest.Handle(t, s.Client(), bloomtest.Expiring(1<<40))
			for name, op := range bloomtest.OperationsOf(t, f) {
				if name == "Add" || name == "AddAll" || value == "" && name == "Create" {
					continue
				}
				if err := op(); err == nil {
					t.Errorf("%s of %q: no error", name, value)
				}
			}
			if _, err := bloom.Open(t.Context(), s.Client(), bloomtest.Key); err == nil && len(value) < 20 {
				t.Errorf("Open of %q: no error", value)
			}
			if got := bloomtest.Stored(t, s); got != value {
				t.Errorf("%q became %q", value, got)
			}
			bloomtest.WantNoTTL(t, s)
		}
	})
}

// A wrong Add only sets its own bits in another filter, which therefore gives
// no wrong "no" later.
func TestWrongAddLeavesTheOtherFilterRight(t *testing.T) {
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		items := bloomtest.Numbered("theirs", 200)
		there := bloomtest.Handle(t, s.Client(), bloomtest.Small())
		if _, err := there.AddAll(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		before := bloomtest.Stored(t, s)
		cfg := bloomtest.Sparse()
		cfg.BatchBytes = 1000
		_, err := bloomtest.Handle(t, s.Client(), cfg).AddAll(t.Context(), bloomtest.Numbered("ours", 500))
		var m *bloom.MismatchError
		if !errors.As(err, &m) {
			t.Fatalf("AddAll: %v, want a MismatchError", err)
		}
		found, err := there.ExistsAll(t.Context(), items)
		if err != nil || bloomtest.Count(found) != len(items) {
			t.Errorf("%d of %d found, %v", bloomtest.Count(found), len(items), err)
		}
		if got := bloomtest.Stored(t, s)[:16]; got != before[:16] {
			t.Errorf("header %x, want %x", got, before[:16])
		}
	})
}

// An Add to a string that begins with zeros writes its header there, and one to
// a text adds it to the first bits. It notices both, even if the sum looks like
// a header.
func TestAddToText(t *testing.T) {
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, text := range []string{
			"text", "\x00\x00\x00\x00\x00\x00\x08 eight", "\x00\x00\x01", "~~~~~~~~", "\x90",
		} {
			bloomtest.Do(t, s, "SET", bloomtest.Key, text)
			f := bloomtest.Handle(t, s.Client(), bloomtest.Small())
			if added, err := f.Add(t.Context(), "a"); !errors.Is(err, bloom.ErrNotFilter) || added {
				t.Errorf("Add to %q = %v, %v, want ErrNotFilter", text, added, err)
			}
		}
	})
}
