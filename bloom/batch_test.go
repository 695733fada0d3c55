package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
	"pgregory.net/rapid"
)

func TestBatchSplitsByBytes(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for limit, n := range map[int]int{1: 30, 300: 100, 1000: 100, 5000: 300, 20_000: 300, 0: 300} {
			s.FlushAll()
			c, w := watch(t, s)
			cfg := expiring(time.Hour)
			f := batched(handle(t, c, cfg), limit, 0)
			items := numbered("item", n)
			mustAdd(t, f, items...)
			checkBodies(t, w, limit, 4, "SET", 4*len(items))
			found, err := f.ExistsAll(t.Context(), items)
			if err != nil || count(found) != len(items) {
				t.Fatalf("%d of %d found, %v", count(found), len(items), err)
			}
			checkBodies(t, w, limit, 2, "GET", wordsOf(f.Geometry(), items))
		}
	})
}

// checkBodies checks that all items went in as few requests as the limit
// allows: no two neighbours fit into one.
func checkBodies(t *testing.T, w *bloomtest.Watched, limit, each int, op string, want int) {
	t.Helper()
	sum, longest := 0, 0
	w.Bodies = slices.DeleteFunc(w.Bodies, func(body string) bool {
		return !strings.Contains(body, `"BITFIELD"`)
	})
	for _, body := range w.Bodies {
		n := operations(body, op)
		if op == "GET" || strings.Contains(body, "INCRBY") && op != "SET" {
			n-- // the header's
		}
		sum += n
		longest = max(longest, n)
		if limit > 0 && len(body) > limit && n > each {
			t.Errorf("limit %d: a body of %d bytes with %d items", limit, len(body), n/each)
		}
	}
	if sum != want {
		t.Errorf("limit %d: %d operations %s in all, want %d", limit, sum, op, want)
	}
	if limit == 0 && len(w.Bodies) != 1 {
		t.Errorf("%d requests, want 1", len(w.Bodies))
	}
	if fewest := (want + longest - 1) / longest; len(w.Bodies) > fewest+fewest/8+1 { // offsets differ in length
		t.Errorf("limit %d: %d requests, but %d would do", limit, len(w.Bodies), fewest)
	}
	w.Bodies = nil
}

// wordsOf returns how many words look-ups of the items read. If an item meets a
// word twice, the word counts once.
func wordsOf(g bloom.Geometry, items []string) int {
	n := 0
	for _, item := range items {
		words := make(map[uint64]bool)
		for _, p := range positionsOf(g, item) {
			words[p/53] = true
		}
		n += len(words)
	}
	return n
}

// TestBatchRequestsAtOnce holds the first requests back until as many as allowed
// are under way: four, unless a test says otherwise.
func TestBatchRequestsAtOnce(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, tt := range []struct{ set, want int }{{0, 4}, {1, 1}, {3, 3}, {20, 20}} {
			s.FlushAll()
			c, w := watch(t, s)
			cfg := small()
			f := batched(handle(t, c, cfg), 500, tt.set)
			items := numbered("item", 600)
			add(t, f, "verified", true) // now no request goes ahead alone
			for _, call := range []func(context.Context, []string) ([]bool, error){f.AddAll, f.ExistsAll} {
				full, once := make(chan struct{}), sync.Once{}
				w.Most, w.Arrive = 0, func(underWay int) {
					if underWay == tt.want {
						once.Do(func() { close(full) })
					}
					select {
					case <-full:
					case <-t.Context().Done():
					}
				}
				noError(t, errorOf(call(t.Context(), items)))
				if w.Most != tt.want {
					t.Errorf("%d at once: %d requests were under way, want %d", tt.set, w.Most, tt.want)
				}
			}
		}
	})
}

// TestBatchIsSequential compares AddAll and ExistsAll with an exact set, which
// takes one item after another, however the batch is cut.
func TestBatchIsSequential(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c := s.Client()
		rapid.Check(t, func(rt *rapid.T) {
			s.FlushAll()
			cfg := sparseOf(rapid.SampledFrom([]bloom.Layout{bloom.LayoutHeaded, bloom.LayoutBare}).Draw(rt, "layout"))
			cfg.TTL = rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(rt, "TTL")
			f := batched(handle(t, c, cfg), rapid.IntRange(1, 6000).Draw(rt, "bytes"), rapid.IntRange(1, 8).Draw(rt, "at once"))
			item := rapid.Custom(func(rt *rapid.T) string {
				return fmt.Sprint("item-", rapid.IntRange(0, 40).Draw(rt, "n"))
			})
			batches := rapid.SliceOfN(rapid.SliceOfN(item, 0, 80), 1, 3).Draw(rt, "batches")
			set := make(map[string]bool)
			for _, items := range batches {
				want := make([]bool, len(items))
				for i, item := range items {
					want[i] = !set[item]
					set[item] = true
				}
				got, err := f.AddAll(t.Context(), items)
				if err != nil || !slices.Equal(got, want) {
					rt.Fatalf("AddAll(%q) = %v, %v, want %v", items, got, err, want)
				}
			}
			if len(set) == 0 {
				return // and so no filter
			}
			asked := append(rapid.SliceOfN(item, 0, 80).Draw(rt, "asked"), "never")
			got, err := f.ExistsAll(t.Context(), asked)
			if err != nil {
				rt.Fatal(err)
			}
			for i, item := range asked {
				if got[i] != set[item] {
					rt.Fatalf("ExistsAll: %q: %v, want %v", item, got[i], set[item])
				}
			}
		})
	})
}

// With one request at a time, a batch has even the false positives of single
// Adds.
func TestBatchIsExactlyAddAfterAdd(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c := s.Client()
		rapid.Check(t, func(rt *rapid.T) {
			s.FlushAll()
			cfg := bloom.Config{
				Bits: 53 * rapid.Uint64Range(1, 4).Draw(rt, "words"), Hashes: 2 * rapid.IntRange(1, 4).Draw(rt, "pairs"),
			}
			limit := rapid.IntRange(1, 3000).Draw(rt, "bytes")
			items := rapid.SliceOfN(rapid.StringN(0, 2, -1), 1, 60).Draw(rt, "items")
			f := batched(handle(t, c, cfg), limit, 1)
			got, err := f.AddAll(t.Context(), items)
			if err != nil {
				rt.Fatal(err)
			}
			cells := make(map[uint64]bool)
			for i, item := range items {
				isNew := false
				for _, p := range positionsOf(f.Geometry(), item) {
					isNew = isNew || !cells[p]
					cells[p] = true
				}
				if got[i] != isNew {
					rt.Fatalf("item %d: %v, want %v", i, got[i], isNew)
				}
			}
		})
	})
}

// A missing filter is an error, in one request or many, unless MissingIsEmpty
// says that it has no items.
func TestExistsAllMissing(t *testing.T) {
	s := upstashtest.NewServer(t)
	for _, limit := range []int{0, 500} {
		cfg := small()
		_, err := batched(handle(t, s.Client(), cfg), limit, 0).ExistsAll(t.Context(), numbered("item", 50))
		batch, is := errors.AsType[*bloom.BatchError](err)
		if !is || !errors.Is(err, bloom.ErrNotFound) || batch.Count(bloom.ItemNotDone) != 50 {
			t.Errorf("%v, want ErrNotFound and nothing done", err)
		}
		cfg.MissingIsEmpty = true
		f := batched(handle(t, s.Client(), cfg), limit, 0)
		got, err := f.ExistsAll(t.Context(), numbered("item", 50))
		if err != nil || len(got) != 50 || count(got) != 0 {
			t.Errorf("MissingIsEmpty: %v, %v, want 50 times false", got, err)
		}
		exists(t, f, "item-1", false)
		if n, err := f.Cardinality(t.Context()); n != 0 || err != nil {
			t.Errorf("MissingIsEmpty: Cardinality = %d, %v, want 0", n, err)
		}
	}
}

func TestBatchErrorText(t *testing.T) {
	err := &bloom.BatchError{
		Items: []bloom.ItemState{
			bloom.ItemDone, bloom.ItemDone, bloom.ItemUncertain, bloom.ItemUnknown, bloom.ItemNotDone,
		},
		Err: bloom.ErrUncertain,
	}
	const want = "bloom: 2 of 5 items done, 1 uncertain, 1 unknown, 1 not done: "
	if !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%q, want %q in front", err, want)
	}
	const many = "the uncertain ones are in the filter, and it is not known which of them were new"
	lost := errors.New("lost")
	for _, first := range []error{bloom.ErrUncertain, fmt.Errorf("%w; %w", bloom.ErrUncertain, lost)} {
		err.Err = first
		if text := err.Error(); !strings.Contains(text, many) || strings.Contains(text, "the item is") ||
			errors.Is(first, lost) != strings.HasSuffix(text, "; lost") {
			t.Errorf("%q, want %q, and nothing about one item", text, many)
		}
	}
}

func TestAddSeqAddsEveryItem(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg := middling()
	f := batched(handle(t, s.Client(), cfg), 4000, 2)
	var steps []int64
	r, err := f.AddSeq(t.Context(), mails(0, 3000), bloom.WithProgress(func(done, total int64) {
		if total != -1 {
			t.Errorf("progress: total %d, want -1", total)
		}
		steps = append(steps, done)
	}))
	if err != nil || r.Items != 3000 || r.New < 2950 || r.New > 3000 {
		t.Errorf("AddSeq = %+v, %v, want 3,000 items, nearly all new", r, err)
	}
	if len(steps) < 3 || !slices.IsSorted(steps) || steps[len(steps)-1] != 3000 {
		t.Errorf("progress %v, want at least 3 rising steps to 3,000", steps)
	}
	wantMails(t, f, 0, 3000)
	if r, err := f.AddSeq(t.Context(), mails(0, 0)); err != nil || r.Items != 0 {
		t.Errorf("AddSeq of nothing = %+v, %v, want zeros", r, err)
	}
}

var fine, refused = upstashtest.Fault{}, upstashtest.ErrorObject("OOM injected")

func TestAddSeqSaysHowFarItCame(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg := middling()
	f := batched(handle(t, once(s), cfg), 4000, 1)
	s.Inject(fine, fine, fine, refused)
	r, err := f.AddSeq(t.Context(), mails(0, 3000))
	var batch *bloom.BatchError
	if !errors.As(err, &batch) || r.Items == 0 || r.Items >= 3000 {
		t.Fatalf("AddSeq = %+v, %v, want a BatchError after some of the items", r, err)
	}
	if bloom.InFilter(err) || upstash.SafeToRetry(err) {
		t.Errorf("in the filter %t, safe to retry %t, want false", bloom.InFilter(err), upstash.SafeToRetry(err))
	}
	wantMails(t, f, 0, int(r.Items))
	round := slices.Collect(mails(int(r.Items), int(r.Items)+len(batch.Items)))
	remaining := batch.Remaining(round)
	if len(remaining) != batch.Count(bloom.ItemNotDone)+batch.Count(bloom.ItemUnknown) || len(remaining) == 0 {
		t.Errorf("%d items remain, want those not done and unknown of %v", len(remaining), batch)
	}
}

// Answers are lost, and what they were about is in.
func TestAddSeqGoesOnAfterALostAnswer(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg := middling()
	f := batched(handle(t, s.Client(), cfg), 4000, 2)
	for range 3 {
		s.InjectWrites(fine, fine, upstashtest.Drop(upstashtest.AfterExec))
	}
	r, err := f.AddSeq(t.Context(), mails(0, 3000))
	if r.Items != 3000 || r.Uncertain == 0 || r.New+r.Uncertain > 3000 || r.New+r.Uncertain < 2990 {
		t.Errorf("AddSeq = %+v, want 3,000 items, nearly all new or uncertain", r)
	}
	if !errors.Is(err, bloom.ErrUncertain) || !bloom.InFilter(err) || upstash.SafeToRetry(err) {
		t.Errorf("%v, in the filter %t, safe to retry %t, want ErrUncertain, true and false",
			err, bloom.InFilter(err), upstash.SafeToRetry(err))
	}
	want := fmt.Sprintf(" of 3000 items done, %d uncertain: the uncertain ones are in", r.Uncertain)
	if err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	wantMails(t, f, 0, 3000)
}

// If the TTL cannot be set, AddSeq goes on. The error says so at the end, unless a
// later request has set it.
func TestAddSeqGoesOnWithoutATTL(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg := middling()
	cfg.TTL = time.Hour
	addSeq := func(want error) {
		t.Helper()
		r, err := batched(handle(t, once(s), cfg), 4000, 1).AddSeq(t.Context(), mails(0, 3000))
		if r.Items != 3000 || r.Uncertain != 0 || r.New < 2950 || !errors.Is(err, want) || !bloom.InFilter(err) {
			t.Errorf("AddSeq = %+v, %v, want 3,000 items, nearly all new, and %v", r, err, want)
		}
	}
	s.Inject(fine, upstashtest.RateLimit(0))
	addSeq(nil)
	wantTTL(t, s, time.Hour)
	s.FlushAll()
	s.DenyFunc(func(command []string) bool { return strings.HasPrefix(command[0], "EVAL") })
	addSeq(bloom.ErrNoTTL)
}
