package bloom_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// If many goroutines add an item at once, through one handle or several,
// exactly one is told "new".
func TestOneOfManyAddsIsNew(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		const goroutines, items = 8, 30
		c := s.Client()
		shared := handle(t, c, expiring(time.Hour))
		for i := range items {
			item := fmt.Sprint("item-", i)
			added, found := make([]bool, goroutines), make([]bool, goroutines)
			var running sync.WaitGroup
			for g := range goroutines {
				f := shared
				if g%2 == 1 {
					f = handle(t, c, expiring(time.Hour))
				}
				running.Go(func() {
					var err error
					if g%3 == 0 {
						var all []bool
						all, err = f.AddAll(t.Context(), []string{item})
						added[g] = count(all) == 1
					} else {
						added[g], err = f.Add(t.Context(), item)
					}
					if err == nil {
						found[g], err = f.Exists(t.Context(), item)
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			running.Wait()
			if count(added) != 1 || count(found) != goroutines {
				t.Fatalf("%s: new to %d, found by %d of %d", item, count(added), count(found), goroutines)
			}
		}
		wantTTL(t, s, time.Hour)
	})
}

// A client reads its own writes, even if the nearest replica does not have them
// yet.
func TestReadsItsWritesPastALaggingReplica(t *testing.T) {
	s := upstashtest.NewServer(t)
	s.SetReplicaLag(math.MaxInt)
	f := handle(t, s.Client(), small())
	add(t, f, "a", true)
	exists(t, f, "a", true)
	if n, err := f.Cardinality(t.Context()); n != 1 || err != nil {
		t.Errorf("Cardinality = %d, %v, want 1", n, err)
	}
	if st, err := f.Stats(t.Context()); err != nil || st.Items != 1 {
		t.Errorf("Stats = %+v, %v, want 1 item", st, err)
	}
	// A replica's answer does not affect a handle's writes.
	stale := handle(t, s.Client(upstash.WithoutSyncToken()), small())
	if _, err := stale.Stats(t.Context()); err == nil {
		t.Error("the replica has the filter already: the test shows nothing")
	}
	add(t, stale, "a", false)
	exists(t, stale, "a", true)
}

// Items are hashed, not sent, so they can be any bytes.
func TestAnyBytesAreAnItem(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), sparse())
		for _, item := range []string{"", "\x00", "\xff\xfe", "\"\\\n", "日本", string(make([]byte, 1<<20))} {
			add(t, f, item, true)
			add(t, f, item, false)
			exists(t, f, item, true)
		}
	})
}

// If an item meets a word twice, it reads the word once, and sets all of its
// bits.
func TestRepeatedWordIsReadOnce(t *testing.T) {
	s := upstashtest.NewServer(t)
	c, w := watch(t, s)
	f := handle(t, c, bloom.Config{Bits: 53, Hashes: 62})
	add(t, f, "a", true)
	add(t, f, "a", false)
	w.Bodies = nil
	exists(t, f, "a", true)
	if n := operations(w.Bodies[0], "GET"); n != 2 {
		t.Errorf("%d reads, want the header and one word: %s", n, w.Bodies[0])
	}
	if !strings.Contains(w.Bodies[0], `"GET","u53","192"`) {
		t.Errorf("the word is not the one at bit 192: %s", w.Bodies[0])
	}
}

// The first 53 bits tell a filter from nothing. If they are 0, the first Add
// takes other data for an empty filter, whatever follows; all other calls refuse
// it or find nothing, and change nothing.
func TestFirstBitsAreZero(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, bit := range []string{"53", "64", "130", "9000"} {
			s.FlushAll()
			do(t, s, "SETBIT", key, bit, "1")
			before := stored(t, s)
			f := handle(t, s.Client(), small())
			table := cuckoo(t, s.Client(), table1000())
			w, g := window(t, s.Client(), day()), scalable(t, s.Client(), growing())
			for _, make := range []bloomtest.Adder{f, table, w, g} {
				wantError(t, errorOf(make.Create(t.Context())), bloom.ErrNotFilter)
			}
			wantError(t, errorOf(table.Add(t.Context(), "a")), bloom.ErrNotFilter)
			wantError(t, errorOf(f.Load(t.Context(), mails(0, 10))), bloom.ErrNotFilter)
			for _, name := range []string{"Exists", "Stats", "Rename"} {
				wantError(t, calls(reads, orders)[name](t.Context(), f), bloom.ErrNotFound)
			}
			for _, name := range []string{"Delete", "Expire", "Persist"} {
				noError(t, orders[name](t.Context(), f))
			}
			if after := stored(t, s); after != before || pttl(t, s) != -1 {
				t.Errorf("bit %s: %q became %q, with a TTL of %v", bit, before, after, pttl(t, s))
			}
			add(t, handle(t, s.Client(), small()), "a", true)
		}
	})
}

// If other data begin with a small number, an Add makes of it what looks like the
// header of a filter with another Config. It says that there was none.
func TestAddTakesNoSumForAHeader(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		w, g := window(t, s.Client(), day()), scalable(t, s.Client(), growing())
		for _, f := range []bloomtest.Adder{handle(t, s.Client(), small()), w, g} {
			s.FlushAll()
			do(t, s, "SETBIT", key, "20", "1") // the sum has another seed
			wantError(t, errorOf(f.Add(t.Context(), "a")), bloom.ErrNotFilter)
		}
	})
}

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
		if err != nil || st.Bytes != 1200 || st.Items < 300 || st.Items > 400 {
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
