package bloom_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func must(cfg bloom.Config) bloom.Config {
	cfg.MustExist = true
	return cfg
}

// With MustExist, Add and AddAll do not replace an evicted filter by an empty
// one.
func TestMustExistCreatesNothing(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), must(expiring(time.Hour)))
		check := func() {
			t.Helper()
			for name, call := range adds {
				err := call(t.Context(), f)
				if !errors.Is(err, bloom.ErrNotFound) || !upstash.SafeToRetry(err) || strings.Contains(err.Error(), "MissingIsEmpty") ||
					!strings.Contains(err.Error(), "Create") {
					t.Errorf("%s: %v, want ErrNotFound, safe to retry, and what to do", name, err)
				}
			}
			wantNoKey(t, s, key)
		}
		check()
		create(t, f, true)
		add(t, f, "a", true)
		add(t, f, "a", false)
		exists(t, f, "a", true)
		wantTTL(t, s, time.Hour)
		do(t, s, "DEL", key)
		check()
	})
}

// A batch works as for any other filter, however many operations it takes.
func TestMustExistInBatches(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for limit, requests := range map[int]int{0: 1, 20_000: 12} {
			s.FlushAll()
			c, w := watch(t, s)
			cfg := must(sparse())
			f := batched(handle(t, c, cfg), limit, 0)
			create(t, f, true)
			items := append(numbered("item", 600), numbered("item", 100)...)
			w.Bodies = nil
			got, err := f.AddAll(t.Context(), items)
			if err != nil || count(got[:600]) != 600 || count(got[600:]) != 0 {
				t.Errorf("%d bytes: %d new, %v", limit, count(got), err)
			}
			tooLong := func(body string) bool { return limit > 0 && len(body) > limit }
			if slices.ContainsFunc(w.Bodies, tooLong) || len(w.Bodies) > requests {
				t.Errorf("%d bytes: %d requests, want %d, none longer than that", limit, len(w.Bodies), requests)
			}
			plain := handle(t, s.Client(), sparse())
			exists(t, plain, "item-7", true)
			add(t, plain, "item-7", false)
		}
	})
}

// Each Add runs a script, which calls one read and one write.
func TestMustExistCost(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), must(expiring(time.Hour)))
		create(t, f, true)
		s.ResetStats()
		add(t, f, "a", true)
		if n := s.Stats(); n.Requests != 1 || n.Commands != 1 || n.Called != 2 || n.Billed != 3 {
			t.Errorf("%+v, want one request, billed as three commands", n)
		}
	})
}

// A batch stops halfway because the string may not grow. It must not report
// that nothing was done.
func TestMustExistStopsHalfWay(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithMaxRecord(100_000)) // of 132,524 bytes
	f := handle(t, s.Client(patient), sparse())
	g := f.Geometry()
	low := func(item string) bool {
		for _, p := range positionsOf(g, item) {
			if p > 90_000*8 {
				return false
			}
		}
		return true
	}
	var items []string
	for _, item := range numbered("item", 20_000) {
		if low(item) {
			items = append(items, item)
		}
	}
	if len(items) < 200 {
		t.Fatalf("%d items, want 200 or more", len(items))
	}
	add(t, f, items[0], true)
	items = append(items[1:], numbered("item", 100)...)
	got, err := handle(t, s.Client(patient), must(sparse())).AddAll(t.Context(), items)
	var batch *bloom.BatchError
	if !errors.Is(err, upstash.ErrRecordTooLarge) || !errors.As(err, &batch) || upstash.SafeToRetry(err) ||
		count(got) != 0 || batch.Count(bloom.ItemUnknown) != len(items) {
		t.Errorf("AddAll: %v, want ErrRecordTooLarge and all items unknown", err)
	}
	exists(t, f, items[0], true)
}

// wantSafe checks that a write failed without adding anything, and whether it is
// safe to retry.
func wantSafe(t *testing.T, what string, err error, want bool) {
	t.Helper()
	if err == nil || bloom.InFilter(err) || upstash.SafeToRetry(err) != want {
		t.Errorf("%s: %v, safe to retry %t, want an error and %t", what, err, upstash.SafeToRetry(err), want)
	}
}

// If no attempt before may have run, a write that finds no filter, or another
// one, has certainly changed nothing.
func TestMissingIsSafeToRetry(t *testing.T) {
	loss := upstashtest.Drop(upstashtest.AfterExec)
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for name := range mustWrites(t, s) {
			for _, other := range []bool{false, true} {
				for _, fault := range []upstashtest.Fault{{}, upstashtest.RateLimit(0), loss} {
					s.FlushAll()
					write := mustWrites(t, s)[name] // a handle that met another filter writes no more
					if other {
						createOthers(t, s)
					}
					lost := fault == loss
					bloomtest.StrikeFirst(s, "EVAL", 1, fault)
					err := write()
					s.InjectFunc(nil)
					what := fmt.Sprintf("%s, another filter %t, %v", name, other, fault)
					wantSafe(t, what, err, !lost)
					once := strings.HasPrefix(name, "Cuckoo") // these are not repeated
					if missing := errors.Is(err, bloom.ErrNotFound); !(lost && once) && missing == other {
						t.Errorf("%s: %v, want what is at the key", what, err)
					}
					if other && !lost {
						wantSafe(t, what+", again", write(), true)
					}
				}
			}
		}
	})
}

// mustWrites returns writes by new handles for a filter that must exist, by scripts
// of their types.
func mustWrites(t *testing.T, s *upstashtest.Server) map[string]func() error {
	ctx, c := t.Context(), impatient(s)
	g := scalable(t, c, bloom.ScalableConfig{Capacity: 100, FPRate: 0.01, MustExist: true})
	create(t, g, true) // so that it knows the layers
	do(t, s, "DEL", key)
	k := cuckoo(t, c, bloom.CuckooConfig{Capacity: 100, FPRate: 0.01, MustExist: true})
	d := sharded(t, bloom.ShardedConfig{Capacity: 100, FPRate: 0.01, Shards: 2}, c)
	return map[string]func() error{
		"Scalable.Add":   func() error { return errorOf(g.Add(ctx, "a")) },
		"Cuckoo.Add":     func() error { return errorOf(k.Add(ctx, "a")) },
		"Cuckoo.Remove":  func() error { return errorOf(k.Remove(ctx, "a")) },
		"Sharded.Add":    func() error { return errorOf(d.Add(ctx, "a")) },
		"Sharded.AddAll": func() error { return errorOf(d.AddAll(ctx, numbered("many", 900))) },
	}
}

// createOthers makes a filter of another geometry at the keys of mustWrites.
func createOthers(t *testing.T, s *upstashtest.Server) {
	t.Helper()
	for _, key := range []string{key, key + ":0", key + ":1"} {
		create(t, handleAt(t, s.Client(), key, bloom.Config{Capacity: 3000, FPRate: 0.2}), true)
	}
}

// An AddSeq that has added items to a filter that went away is not safe to
// retry: it has changed something. One that found none is.
func TestAddSeqIsSafeToRetry(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg := must(small())
	// a round of one item
	f := batched(handle(t, s.Client(), cfg), 1, 1)
	items := slices.Values([]string{"a", "b", "c"})
	_, err := f.AddSeq(t.Context(), items)
	if !errors.Is(err, bloom.ErrNotFound) || !upstash.SafeToRetry(err) {
		t.Errorf("no filter: %v, safe to retry %t, want true", err, upstash.SafeToRetry(err))
	}
	create(t, f, true)
	result, err := f.AddSeq(t.Context(), items, bloom.WithProgress(func(int64, int64) { do(t, s, "DEL", key) }))
	if !errors.Is(err, bloom.ErrNotFound) || upstash.SafeToRetry(err) || result != (bloom.AddResult{}) {
		t.Errorf("it went away: %+v, %v, safe to retry %t, want nothing and false",
			result, err, upstash.SafeToRetry(err))
	}
}
