package bloom_test

import (
	"context"
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

// If a token may not run scripts, calls return the server's error and nothing
// runs.
func TestTokenWithoutScripts(t *testing.T) {
	s := upstashtest.NewServer(t)
	s.DenyFunc(func(command []string) bool { return command[0] == "EVAL" })
	move := map[string]bloomtest.Call{
		"Load":    func(ctx context.Context, f *bloom.Filter) error { return errorOf(f.Load(ctx, mails(0, 9))) },
		"Merge":   func(ctx context.Context, f *bloom.Filter) error { return errorOf(f.Merge(ctx, localOf(f, 0, 9))) },
		"Replace": func(ctx context.Context, f *bloom.Filter) error { return f.Replace(ctx, localOf(f, 0, 9)) },
	}
	for name, call := range calls(adds, orders, move) {
		err := call(t.Context(), handle(t, s.Client(), must(small())))
		if !errors.Is(err, upstash.ErrNoPermission) || !upstash.SafeToRetry(err) ||
			strings.Contains(err.Error(), "may have run") {
			t.Errorf("%s: %v, safe to retry %t, want ErrNoPermission and true", name, err, upstash.SafeToRetry(err))
		}
	}
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
					once := strings.HasPrefix(name, "Cuckoo") || name == "Filter.Rename" // these are not repeated
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

// mustWrites returns writes by new handles for a filter that must exist.
func mustWrites(t *testing.T, s *upstashtest.Server) map[string]func() error {
	ctx, c, many := t.Context(), impatient(s), numbered("many", 900)
	f := handle(t, c, must(small()))
	w := window(t, c, bloom.WindowConfig{Capacity: 100, FPRate: 0.01, Span: time.Hour, MustExist: true})
	g := scalable(t, c, bloom.ScalableConfig{Capacity: 100, FPRate: 0.01, MustExist: true})
	create(t, g, true) // so that it knows the layers
	do(t, s, "DEL", key)
	k := cuckoo(t, c, bloom.CuckooConfig{Capacity: 100, FPRate: 0.01, MustExist: true})
	d := sharded(t, bloom.ShardedConfig{Capacity: 100, FPRate: 0.01, Shards: 2}, c)
	return map[string]func() error{
		"Filter.Add":     func() error { return errorOf(f.Add(ctx, "a")) },
		"Filter.AddAll":  func() error { return errorOf(f.AddAll(ctx, many)) },
		"AddIn":          func() error { return errorOf(bloom.AddIn(ctx, "a", f)) },
		"Filter.Load":    func() error { return errorOf(f.Load(ctx, slices.Values(many))) },
		"Filter.Rename":  func() error { return f.Rename(ctx, "elsewhere") },
		"Window.Add":     func() error { return errorOf(w.Add(ctx, "a")) },
		"Window.AddAll":  func() error { return errorOf(w.AddAll(ctx, many)) },
		"Scalable.Add":   func() error { return errorOf(g.Add(ctx, "a")) },
		"Cuckoo.Add":     func() error { return errorOf(k.Add(ctx, "a")) },
		"Cuckoo.Remove":  func() error { return errorOf(k.Remove(ctx, "a")) },
		"Sharded.Add":    func() error { return errorOf(d.Add(ctx, "a")) },
		"Sharded.AddAll": func() error { return errorOf(d.AddAll(ctx, many)) },
	}
}

// createOthers makes a filter of another geometry at the keys of mustWrites.
func createOthers(t *testing.T, s *upstashtest.Server) {
	t.Helper()
	for _, key := range []string{key, key + ":0", key + ":1"} {
		create(t, handleAt(t, s.Client(), key, bloom.Config{Capacity: 3000, FPRate: 0.2}), true)
	}
}

// loseScript loses the answer to the first script. A Load sends its part before
// it, and a Window asks for the time.
func loseScript(s *upstashtest.Server) {
	bloomtest.StrikeFirst(s, "EVAL", 1, upstashtest.Drop(upstashtest.AfterExec))
}

// An order that a script refused has changed nothing. If an attempt before may
// have run, nobody knows.
func TestRefusedOrdersAreSafeToRetry(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), impatient(s)
		refused := func(what string, order func() error) {
			t.Helper()
			wantSafe(t, what, order(), true)
			loseScript(s)
			wantSafe(t, what+", repeated", order(), false)
			s.InjectFunc(nil)
		}
		createOthers(t, s)
		f := handle(t, c, small())
		for _, name := range []string{"Create", "Expire", "Persist"} {
			refused(name+" at another filter", func() error { return orders[name](ctx, f) })
		}
		for _, name := range []string{"Delete", "Rename"} { // these are not repeated
			wantSafe(t, name+" at another filter", orders[name](ctx, f), true)
		}
		refused("Create of a window at a filter", func() error { return errorOf(window(t, c, day()).Create(ctx)) })

		do(t, s, "SETBIT", "zeros", "900", "1")
		zeros := func() *bloom.Filter { return handleAt(t, c, "zeros", small()) }
		refused("Create over zeros", func() error { return errorOf(zeros().Create(ctx)) })
		refused("Load over zeros", func() error { return errorOf(zeros().Load(ctx, mails(0, 9))) })
		refused("Replace of zeros", func() error { return zeros().Replace(ctx, localOf(zeros(), 0, 9)) })

		stays, expires := windowAt(t, c, "window", day()), day()
		create(t, stays, true)
		expires.ExpireIdle = true
		refused("Create of another window", func() error { return errorOf(windowAt(t, c, "window", expires).Create(ctx)) })
	})
}

// A Rename that the other key does not allow has changed nothing.
func TestRefusedByAnotherKeyIsSafeToRetry(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), impatient(s)
		there := handleAt(t, c, "there", small())
		create(t, there, true)
		do(t, s, "RPUSH", "list", "x")
		for _, to := range []string{"list", "there", ""} {
			wantSafe(t, "Rename to "+to, there.Rename(ctx, to), true)
		}
	})
}

// An Add that found no filter may all the same add its item to the next one: its
// first attempt comes late. So it is not safe to retry.
func TestMissingAndALateAttempt(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		late := &lateEval{Transport: overHTTP(t), most: 1}
		f := handle(t, impatient(s, upstash.WithTransport(late)), must(small()))
		_, err := f.Add(t.Context(), "a")
		if !errors.Is(err, bloom.ErrNotFound) || upstash.SafeToRetry(err) {
			t.Errorf("Add = %v, safe to retry %t, want ErrNotFound and false", err, upstash.SafeToRetry(err))
		}
		create(t, f, true)
		exists(t, f, "a", false)
		noError(t, late.RoundTrip(t.Context(), &late.kept[0], new(upstash.Response)))
		add(t, f, "a", false)
	})
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
