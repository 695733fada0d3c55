package bloom_test

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
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

// Each item of two simultaneous AddAlls is new to exactly one of them.
func TestTwoBatchesAtOnce(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg := sparse()
		cfg.BatchBytes = 2000
		items := numbered("item", 300)
		var got [2][]bool
		var running sync.WaitGroup
		for i := range got {
			f := handle(t, s.Client(), cfg)
			running.Go(func() {
				var err error
				if got[i], err = f.AddAll(t.Context(), items); err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
		for i := range items {
			if got[0][i] == got[1][i] {
				t.Fatalf("item %d: new to both or to none: %v", i, got[0][i])
			}
		}
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

// Add reports whether the item was new. The first Add makes the filter.
func TestAdd(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx := t.Context()
		f, err := bloom.New(s.Client(), "seen:webhooks", bloom.Config{Capacity: 1000, FPRate: 0.001})
		noError(t, err)
		for _, tt := range []struct {
			item  string
			isNew bool
		}{
			{"event-1", true}, {"event-1", false}, {"event-2", true}, {"", true}, {"event-2", false},
		} {
			isNew, err := f.Add(ctx, tt.item)
			noError(t, err)
			if isNew != tt.isNew {
				t.Errorf("Add(%q) = %v, want %v", tt.item, isNew, tt.isNew)
			}
		}
	})
}

// The lost attempt may have set the bits. Then, and only then, Add returns
// ErrUncertain.
func TestAddAfterALostAnswer(t *testing.T) {
	lost := map[string]func(upstashtest.When) upstashtest.Fault{
		"connection dropped": upstashtest.Drop,
		"internal error":     upstashtest.InternalError,
		"bad gateway":        upstashtest.BadGateway,
		"not JSON":           upstashtest.NotJSON,
	}
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for name, fault := range lost {
			before, after := fault(upstashtest.BeforeExec), fault(upstashtest.AfterExec)
			refused := upstashtest.RateLimit(0)
			faults := func(f ...upstashtest.Fault) []upstashtest.Fault { return f }
			for _, layout := range []bloom.Layout{bloom.LayoutHeaded, bloom.LayoutBare} {
				for _, tt := range []struct {
					name   string
					item   string
					faults []upstashtest.Fault
					added  bool
					err    error
				}{
					{"new, not executed", "new-1", faults(before), true, nil},
					{"new, executed", "new-2", faults(after), false, bloom.ErrUncertain},
					{"new, not executed, then executed", "new-3", faults(before, after), false, bloom.ErrUncertain},
					{"new, refused, not executed", "new-4", faults(refused, before), true, nil},
					{"new, only refused", "new-5", faults(refused), true, nil},
					{"old, not executed", "old", faults(before), false, bloom.ErrUncertain},
					{"old, only refused", "old", faults(refused), false, nil},
				} {
					s.FlushAll()
					f := handle(t, impatient(s), sparseOf(layout))
					add(t, f, "old", true)
					s.Inject(tt.faults...)
					added, err := f.Add(t.Context(), tt.item)
					if added != tt.added || !errors.Is(err, tt.err) {
						t.Errorf("%s, %v, %s: Add = %v, %v, want %v, %v",
							name, layout, tt.name, added, err, tt.added, tt.err)
					}
					exists(t, f, tt.item, true)
				}
			}
		}
	})
}

// An Add made the filter only if the answer to its own attempt says so. Without
// that answer the item may be another writer's.
func TestFirstAddAfterALostAnswer(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, cfg := range []bloom.Config{small(), expiring(1e12)} {
			s.FlushAll()
			s.Inject(upstashtest.Drop(upstashtest.BeforeExec))
			add(t, handle(t, impatient(s), cfg), "a", true)
			s.FlushAll()
			s.Inject(upstashtest.Drop(upstashtest.AfterExec))
			if added, err := handle(t, impatient(s), cfg).Add(t.Context(), "a"); added ||
				!errors.Is(err, bloom.ErrUncertain) {
				t.Errorf("Add = %v, %v, want ErrUncertain", added, err)
			}
			exists(t, handle(t, s.Client(), cfg), "a", true)
		}
	})
}

// A filter of another program gets its birth number from our first Add, which
// proves nothing about its items.
func TestAddAllToAFilterWithoutBirthNumber(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		items := numbered("item", 100)
		f := handle(t, impatient(s), small())
		l := bloom.NewLocal(f.Geometry())
		for _, item := range items {
			l.Add(item)
		}
		do(t, s, "SETRANGE", key, strconv.Itoa(len(l.Bytes())-1), "\x00")
		for i, b := range l.Bytes() {
			if b != 0 {
				do(t, s, "BITFIELD", key, "SET", "u8", strconv.Itoa(8*i), strconv.Itoa(int(b)))
			}
		}
		s.Inject(upstashtest.Drop(upstashtest.AfterExec))
		got, err := f.AddAll(t.Context(), items)
		var batch *bloom.BatchError
		if !errors.As(err, &batch) || !errors.Is(err, bloom.ErrUncertain) || count(got) != 0 ||
			batch.Count(bloom.ItemUncertain) != len(items) {
			t.Errorf("AddAll of items that are there: %d new, %v, want all uncertain", count(got), err)
		}
	})
}

// After a lost answer each item is judged by itself: a bit that was 0 proves that
// its item is new, and nothing about the others.
func TestAddAllAfterALostAnswer(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, impatient(s), sparse())
		old := numbered("old", 10)
		mustAdd(t, f, old...)

		s.Inject(upstashtest.Drop(upstashtest.BeforeExec))
		got, err := f.AddAll(t.Context(), append(numbered("old", 10), "new-1", "new-1"))
		var batch *bloom.BatchError
		if !errors.As(err, &batch) || !errors.Is(err, bloom.ErrUncertain) || count(got) != 1 || !got[10] ||
			batch.Count(bloom.ItemUncertain) != 10 || batch.Items[10] != bloom.ItemDone ||
			batch.Items[11] != bloom.ItemDone {
			t.Errorf("not executed: %v, %v, want item 10 new, its duplicate seen, and the old ones uncertain", got, err)
		}

		s.Inject(upstashtest.Drop(upstashtest.AfterExec))
		got, err = f.AddAll(t.Context(), append(numbered("old", 10), "new-2"))
		if !errors.As(err, &batch) || !errors.Is(err, bloom.ErrUncertain) || count(got) != 0 ||
			batch.Count(bloom.ItemUncertain) != 11 || batch.SafeToRetry() {
			t.Errorf("executed: %v, %v, want all uncertain", got, err)
		}
		exists(t, f, "new-2", true)
	})
}

// A Replace comes between the two attempts of an AddAll. The first attempt made
// "a" new in the old filter, and its answer is lost. The new filter holds "a", so
// the second attempt does not know, although "b" is new in it.
func TestAddAllRepeatedAfterAReplace(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		other := handle(t, s.Client(), sparse())
		create(t, other, true)
		l := bloom.NewLocal(other.Geometry())
		l.Add("a")
		c := afterCommand(s, "BITFIELD", 1, func() {
			if err := other.Replace(t.Context(), l); err != nil {
				t.Error(err)
			}
		})
		s.Inject(upstashtest.Drop(upstashtest.AfterExec))

		got, err := handle(t, c, sparse()).AddAll(t.Context(), []string{"a", "b"})

		var batch *bloom.BatchError
		if !errors.As(err, &batch) || !errors.Is(err, bloom.ErrUncertain) {
			t.Fatalf("AddAll = %v, %v, want ErrUncertain", got, err)
		}
		if batch.Items[0] != bloom.ItemUncertain || got[0] || batch.Items[1] != bloom.ItemDone || !got[1] {
			t.Errorf("AddAll = %v, %v, want a uncertain and b new", got, batch.Items)
		}
	})
}

// In a batch of several requests, only the items of a request whose answer was
// lost are uncertain. A duplicate of an uncertain item is certainly seen.
func TestUncertainPart(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg := sparse()
		cfg.BatchBytes, cfg.BatchParallel = 1500, 1 // 6 items or so
		f := handle(t, impatient(s), cfg)
		items := append(numbered("a", 20), "a-6", "a-0")
		s.Inject(upstashtest.Fault{}, upstashtest.Drop(upstashtest.AfterExec))
		got, err := f.AddAll(t.Context(), items)
		var batch *bloom.BatchError
		if !errors.As(err, &batch) || !errors.Is(err, bloom.ErrUncertain) {
			t.Fatalf("AddAll: %v, want a BatchError with ErrUncertain", err)
		}
		uncertain := batch.Count(bloom.ItemUncertain)
		if uncertain == 0 || uncertain > 10 || batch.Count(bloom.ItemDone) != len(items)-uncertain {
			t.Errorf("%d of %d items uncertain, want 1 to 10, and the rest done: %v",
				uncertain, len(items), err)
		}
		for i, item := range items {
			first := i < 20
			if batch.Items[i] == bloom.ItemDone && got[i] != first || batch.Items[i] != bloom.ItemDone && got[i] {
				t.Errorf("%s: new is %v, state %v; want new only if done and the first",
					item, got[i], batch.Items[i])
			}
			exists(t, f, item, true)
		}
		if batch.Items[20] != bloom.ItemDone || batch.Items[6] != bloom.ItemUncertain {
			t.Errorf("item 6 is %v, its duplicate %v, want uncertain and done",
				batch.Items[6], batch.Items[20])
		}
	})
}

// Exists reports whether an item was added. A "no" is always true; a missing
// filter is an error, as nobody knows what was in it.
func TestExists(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx := t.Context()
		f, err := bloom.New(s.Client(), "usernames", bloom.Config{Capacity: 1000, FPRate: 0.001})
		noError(t, err)
		if found, err := f.Exists(ctx, "alice"); !errors.Is(err, bloom.ErrNotFound) || found {
			t.Errorf("without a filter: %v, %v, want ErrNotFound", found, err)
		}
		mustAdd(t, f, "alice", "bob")
		for item, want := range map[string]bool{"alice": true, "bob": true, "carol": false, "": false} {
			found, err := f.Exists(ctx, item)
			noError(t, err)
			if found != want {
				t.Errorf("Exists(%q) = %v, want %v", item, found, want)
			}
		}
	})
}

// largestWord is the largest that a word of 53 bits can be.
const largestWord = 1<<53 - 1

// An impossible word is an error, not a "no" and not a "yes".
func TestImpossibleWords(t *testing.T) {
	cfg := bloom.Config{Capacity: 1000, FPRate: 0.1, MissingIsEmpty: true} // one word an item
	h := headerWordOf(cfg)
	for _, word := range []string{
		"-1", "-9007199254740992", "9007199254740992", "9223372036854775807", "99999999999999999999",
		"9.007199254740991e15", "9007199254740991.0", "9e15", "0e0", "null", "true", `"9007199254740991"`, "[1]",
	} {
		c := canned(t, fmt.Sprintf(`{"result":[%s,%s]}`, h, word))
		found, err := handle(t, c, cfg).Exists(t.Context(), "a")
		if found || !errors.Is(err, upstash.ErrBadResponse) {
			t.Errorf("%s: Exists = %v, %v, want ErrBadResponse", word, found, err)
		}
		all, err := handle(t, c, cfg).ExistsAll(t.Context(), []string{"a"})
		if count(all) != 0 || !errors.Is(err, upstash.ErrBadResponse) {
			t.Errorf("%s: ExistsAll = %v, %v, want ErrBadResponse", word, all, err)
		}
	}
	for word, want := range map[int64]bool{0: false, largestWord: true} {
		c := canned(t, fmt.Sprintf(`{"result":[%s,%d]}`, h, word))
		exists(t, handle(t, c, cfg), "a", want)
	}
}

// A look-up finds an item only if all of its bits are set, in each of its
// words.
func TestEveryBitOfAWordCounts(t *testing.T) {
	cfg := bloom.Config{Capacity: 1000, FPRate: 0.01}
	g, err := cfg.Geometry()
	noError(t, err)
	h, positions := headerWordOf(cfg), g.Positions(nil, "a")
	for missing := range positions {
		words := []int64{largestWord, largestWord}
		words[missing/2] &^= 1 << (52 - positions[missing]%53)
		c := canned(t, fmt.Sprintf(`{"result":[%s,%d,%d]}`, h, words[0], words[1]))
		exists(t, handle(t, c, cfg), "a", false)
	}
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
// takes other data for an empty filter, whatever follows; Create and a Cuckoo
// refuse it and change nothing.
func TestFirstBitsAreZero(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, bit := range []int{53, 60, 64, 130, 9000} {
			for name, write := range writesToNothing(t, s) {
				s.FlushAll()
				noError(t, errorOf(s.Exec("SETBIT", key, strconv.Itoa(bit), "1")))
				before, err := s.Exec("GET", key)
				noError(t, err)
				added, err := write()
				after, _ := s.Exec("GET", key)
				switch {
				case name == "Filter.Add":
					if !added || err != nil {
						t.Errorf("bit %d: %s = %v, %v, want that it takes the string", bit, name, added, err)
					}
				case added || !errors.Is(err, bloom.ErrNotFilter) || after != before:
					t.Errorf("bit %d: %s = %v, %v, changed %v, want ErrNotFilter and no change",
						bit, name, added, err, after != before)
				}
			}
		}
	})
}

// writesToNothing returns writes that make a filter if there is none, each of a
// new handle.
func writesToNothing(t *testing.T, s *upstashtest.Server) map[string]func() (bool, error) {
	c, ctx := s.Client(), t.Context()
	g := scalable(t, c, growing())
	w := window(t, c, bloom.WindowConfig{Capacity: 100, FPRate: 0.01, Span: time.Hour})
	small, table := small(), bloom.CuckooConfig{Capacity: 100, FPRate: 0.01}
	return map[string]func() (bool, error){
		"Filter.Add":      func() (bool, error) { return handle(t, c, small).Add(ctx, "a") },
		"Filter.Create":   func() (bool, error) { return handle(t, c, small).Create(ctx) },
		"Scalable.Create": func() (bool, error) { return g.Create(ctx) },
		"Window.Create":   func() (bool, error) { return w.Create(ctx) },
		"Cuckoo.Create":   func() (bool, error) { return cuckoo(t, c, table).Create(ctx) },
		"Cuckoo.Add":      func() (bool, error) { return cuckoo(t, c, table).Add(ctx, "a") },
	}
}

// Calls that make nothing find no filter in such a string, and leave it alone.
func TestFirstBitsAreNoFilter(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		do(t, s, "SETBIT", key, "60", "1")
		before := do(t, s, "GET", key)
		f := handle(t, s.Client(), small())
		ctx := t.Context()
		for name, call := range map[string]func() (bool, error){
			"Exists": func() (bool, error) { return f.Exists(ctx, "a") },
			"Stats":  func() (bool, error) { _, err := f.Stats(ctx); return false, err },
			"Rename": func() (bool, error) { return false, f.Rename(ctx, "other") },
		} {
			if found, err := call(); found || !errors.Is(err, bloom.ErrNotFound) {
				t.Errorf("%s = %v, %v, want ErrNotFound", name, found, err)
			}
		}
		for name, call := range map[string]func() (bool, error){
			"Delete":  func() (bool, error) { return f.Delete(ctx) },
			"Expire":  func() (bool, error) { return f.Expire(ctx, time.Hour) },
			"Persist": func() (bool, error) { return f.Persist(ctx) },
		} {
			if found, err := call(); found || err != nil {
				t.Errorf("%s = %v, %v, want false", name, found, err)
			}
		}
		wantError(t, errorOf(f.Load(ctx, mails(0, 10))), bloom.ErrNotFilter)
		if after := do(t, s, "GET", key); after != before {
			t.Errorf("%q became %q", before, after)
		}
	})
}
