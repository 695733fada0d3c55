package bloom_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func bare() bloom.Config {
	return bloom.Config{Bits: 9600, Hashes: 7, Scheme: bloom.SchemeFNV1a, Layout: bloom.LayoutBare}
}

// TestBare shares a string with a program of the article. Each finds the items
// of the other.
func TestBare(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, cfg := t.Context(), bare()
		f := handle(t, s.Client(), cfg)
		g := f.Geometry()
		exists(t, f, "a", false) // without a header, a missing filter is empty
		if n, err := f.Cardinality(ctx); n != 0 || err != nil {
			t.Errorf("missing: Cardinality = %d, %v, want 0", n, err)
		}
		wantError(t, errorOf(f.Stats(ctx)), bloom.ErrNotFound)
		var bad *bloom.ConfigError
		if _, err := f.Create(ctx); !errors.As(err, &bad) || bad.Field != "Layout" {
			t.Errorf("Create: %v, want a ConfigError about the Layout", err)
		}

		theirs, ours := numbered("theirs", 200), numbered("ours", 200)
		do(t, s, "SET", key, stringOf(g, bloom.LayoutBare, theirs...))
		s.ResetStats()
		mustAdd(t, f, ours...)
		found, err := f.ExistsAll(ctx, slices.Concat(theirs, ours))
		if err != nil || count(found) != 400 {
			t.Errorf("%d of 400 found, %v", count(found), err)
		}
		add(t, f, "ours-1", false)
		exists(t, f, "never", false)
		if n := s.Stats(); n.Requests != 4 || n.Commands != 4 {
			t.Errorf("%+v, want 4 requests and commands", n)
		}
		if stored(t, s) != stringOf(g, bloom.LayoutBare, slices.Concat(theirs, ours)...) {
			t.Error("the string is not what the format says")
		}
		st, err := f.Stats(ctx)
		// With an even number of bits this scheme's estimates are low.
		if err != nil || st.Bytes != 1200 || st.Layout != bloom.LayoutBare || st.Items < 300 || st.Items > 400 {
			t.Errorf("Stats = %+v, %v, want 1,200 bytes and 300 to 400 items", st, err)
		}
		do(t, s, "DEL", key)
		do(t, s, "LPUSH", key, "a")
		for name, call := range calls(reads, adds) {
			if err := call(ctx, f); !errors.Is(err, bloom.ErrNotFilter) {
				t.Errorf("%s of a list: %v, want ErrNotFilter", name, err)
			}
		}
	})
}

func TestBareTTL(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg := bare()
		cfg.TTL = time.Hour
		f := handle(t, s.Client(), cfg)
		add(t, f, "a", true)
		wantTTL(t, s, time.Hour)
		do(t, s, "PEXPIRE", key, "600000")
		add(t, f, "b", true)
		add(t, handle(t, s.Client(), cfg), "c", true)
		wantTTL(t, s, 10*time.Minute)
		s.ResetStats()
		add(t, f, "a", false) // a bit was set, so the string is not new
		if n := s.Stats(); n.Requests != 1 || n.Commands != 1 {
			t.Errorf("%+v for a seen item, want 1 request and command", n)
		}
	})
}

// With few cells, positions of one item coincide, and it finds bits set in an
// empty string.
func TestBareTTLOfAnItemThatMeetsItself(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg := bloom.Config{Bits: 4, Hashes: 7, Scheme: bloom.SchemeXXH3, Layout: bloom.LayoutBare, TTL: time.Hour}
		for _, item := range numbered("item", 20) {
			do(t, s, "DEL", key)
			add(t, handle(t, s.Client(), cfg), item, true)
			wantTTL(t, s, time.Hour)
			do(t, s, "DEL", key)
			f := handle(t, s.Client(), cfg)
			mustAdd(t, f, item, "other")
			wantTTL(t, s, time.Hour)
		}
	})
}

// A Bare filter has no header to check: its orders are the plain commands.
func TestBareOrders(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), bare())
		add := func(ctx context.Context) (bool, error) { return f.Add(ctx, "a") }
		expire := func(ctx context.Context) (bool, error) { return f.Expire(ctx, time.Hour) }
		for _, step := range []struct {
			name string
			call func(context.Context) (bool, error)
			want bool
		}{
			{"Expire of none", expire, false},
			{"Persist of none", f.Persist, false},
			{"Delete of none", f.Delete, false},
			{"Add", add, true},
			{"Persist, no TTL", f.Persist, false},
			{"Expire", expire, true},
			{"Persist", f.Persist, true},
			{"Persist again", f.Persist, false},
			{"Delete", f.Delete, true},
		} {
			bloomtest.Costs(t, s, step.name, 1, 1, func() error {
				got, err := step.call(t.Context())
				if got != step.want {
					t.Errorf("%s: %v, want %v", step.name, got, step.want)
				}
				return err
			})
		}
		wantNoKey(t, s, key)
	})
}

// Rename moves a Bare filter with its TTL, and never over another key.
func TestBareRename(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), bare())
		rename := func(name, to string, want error) {
			t.Helper()
			bloomtest.Costs(t, s, name, 1, 2, func() error {
				if err := f.Rename(t.Context(), to); !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", name, err, want)
				}
				return nil
			})
		}
		do(t, s, "SET", "taken", "a text")
		rename("Rename of none", "free", bloom.ErrNotFound)
		add(t, f, "a", true)
		if ok, err := f.Expire(t.Context(), time.Hour); err != nil || !ok {
			t.Fatal(ok, err)
		}
		rename("Rename to a taken key", "taken", bloom.ErrKeyExists)
		rename("Rename", "free", nil)
		if ok, err := f.Delete(t.Context()); err != nil || ok {
			t.Errorf("Delete after Rename: %v, %v, want false", ok, err)
		}
		exists(t, handleAt(t, s.Client(), "free", bare()), "a", true)
		if ms := do(t, s, "PTTL", "free").(int64); ms <= 0 || ms > time.Hour.Milliseconds() {
			t.Errorf("the TTL is %d ms, want an hour", ms)
		}
	})
}
