package bloom_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Add reports whether the item was new. The first Add makes the filter.
func TestAdd(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx := t.Context()
		f, err := bloom.New(s.Client(), "seen:webhooks", bloom.Config{Capacity: 1000, FPRate: 0.001})
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			item  string
			isNew bool
		}{
			{"event-1", true}, {"event-1", false}, {"event-2", true}, {"", true}, {"event-2", false},
		} {
			isNew, err := f.Add(ctx, tt.item)
			if err != nil {
				t.Fatal(err)
			}
			if isNew != tt.isNew {
				t.Errorf("Add(%q) = %v, want %v", tt.item, isNew, tt.isNew)
			}
		}
	})
}

// Each Add costs one request and one command, and so does the first, which
// makes the filter.
func TestAddCost(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), small())
		for _, item := range []string{"a", "b", "a"} {
			s.ResetStats()
			if _, err := f.Add(t.Context(), item); err != nil {
				t.Fatal(err)
			}
			if n := s.Stats(); n.Requests != 1 || n.Commands != 1 {
				t.Errorf("%d requests and %d commands, want one of each", n.Requests, n.Commands)
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
		if _, err := f.AddAll(t.Context(), old); err != nil {
			t.Fatal(err)
		}

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
		if _, err := other.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
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
