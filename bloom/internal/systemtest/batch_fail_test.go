package systemtest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// thirdFails strikes the third request of a batch, and no other.
func thirdFails(s *upstashtest.Server, f upstashtest.Fault) {
	s.Inject(upstashtest.Fault{}, upstashtest.Fault{}, f)
}

// TestAddAllPartFails cuts 100 items into several requests, lets the third fail,
// and checks what the error says of each item.
func TestAddAllPartFails(t *testing.T) {
	for _, tt := range []struct {
		fault  upstashtest.Fault
		state  bloom.ItemState
		stored bool // the items of the failed request
	}{
		{upstashtest.Drop(upstashtest.BeforeExec), bloom.ItemUnknown, false},
		{upstashtest.Drop(upstashtest.AfterExec), bloom.ItemUnknown, true},
		{upstashtest.InternalError(upstashtest.AfterExec), bloom.ItemUnknown, true},
		{upstashtest.ShortResult(), bloom.ItemUnknown, true},
		{upstashtest.NotJSON(upstashtest.BeforeExec), bloom.ItemUnknown, false},
		{upstashtest.RateLimit(0), bloom.ItemNotDone, false},
		{upstashtest.ErrorObject("ERR no"), bloom.ItemNotDone, false},
	} {
		t.Run(tt.fault.String(), func(t *testing.T) {
			bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
				cfg := bloomtest.Sparse()
				cfg.BatchBytes, cfg.BatchParallel = 3000, 1
				f, reader := bloomtest.Handle(t, bloomtest.Once(s), cfg), bloomtest.Handle(t, s.Client(), cfg)
				items := append(bloomtest.Numbered("item", 100), bloomtest.Numbered("item", 100)...)
				thirdFails(s, tt.fault)
				got, err := f.AddAll(t.Context(), items)
				var batch *bloom.BatchError
				if !errors.As(err, &batch) || len(batch.Items) != len(items) || len(got) != len(items) {
					t.Fatalf("AddAll: %v, want a BatchError", err)
				}
				if upstash.SafeToRetry(err) {
					t.Error("the error is safe to retry, but items are in and would come back as seen")
				}
				wantStates(t, reader, items[:100], got, batch.Items, tt.state, tt.stored)
				wantStatesOfDuplicates(t, got, batch.Items)
				wantRestAdded(t, f, reader, items, batch)
			})
		})
	}
}

// wantStates compares the states of items, each for the first time in a batch,
// with what is in the filter. Those of the failed request have the state failed,
// and are in the filter if stored.
func wantStates(t *testing.T, reader *bloom.Filter, items []string, got []bool, states []bloom.ItemState,
	failed bloom.ItemState, stored bool,
) {
	t.Helper()
	seen := make(map[bloom.ItemState]int)
	for i, item := range items {
		state := states[i]
		// The third request's items are the first that are not done.
		ofThird := state == failed && seen[bloom.ItemDone] > 0 && failed == bloom.ItemUnknown
		seen[state]++
		bloomtest.Exists(t, reader, item, state == bloom.ItemDone || ofThird && stored)
		if got[i] != (state == bloom.ItemDone) {
			t.Errorf("item %d: %v, but it is %v", i, got[i], state)
		}
	}
	if seen[bloom.ItemDone] == 0 || seen[failed] == 0 || seen[bloom.ItemNotDone] == 0 {
		t.Errorf("states %v, want some done, some %v and some not done", seen, failed)
	}
}

// wantStatesOfDuplicates checks the second half of a batch, which repeats the
// first. A duplicate has the state of the first such item, or was never reached.
func wantStatesOfDuplicates(t *testing.T, got []bool, states []bloom.ItemState) {
	t.Helper()
	n := len(states) / 2
	for i := range n {
		dup, first := states[n+i], states[i]
		if dup != first && dup != bloom.ItemNotDone || got[n+i] {
			t.Errorf("item %d is %v, its duplicate %v, new: %v", i, first, dup, got[n+i])
		}
	}
}

// wantRestAdded adds the items that are not done, by another call.
func wantRestAdded(t *testing.T, f, reader *bloom.Filter, items []string, batch *bloom.BatchError) {
	t.Helper()
	var rest []string
	for i, state := range batch.Items {
		if state != bloom.ItemDone {
			rest = append(rest, items[i])
		}
	}
	if _, err := f.AddAll(t.Context(), rest); err != nil {
		t.Fatal(err)
	}
	found, err := reader.ExistsAll(t.Context(), items)
	if err != nil || bloomtest.Count(found) != len(items) {
		t.Errorf("after the second call %d of %d found, %v", bloomtest.Count(found), len(items), err)
	}
}

func TestExistsAllPartFails(t *testing.T) {
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg := bloomtest.Sparse()
		cfg.BatchBytes, cfg.BatchParallel = 3000, 1
		f := bloomtest.Handle(t, bloomtest.Once(s), cfg)
		items := bloomtest.Numbered("item", 100)
		if _, err := f.AddAll(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		thirdFails(s, upstashtest.Drop(upstashtest.AfterExec))
		got, err := f.ExistsAll(t.Context(), items)
		var batch *bloom.BatchError
		if !errors.As(err, &batch) {
			t.Fatalf("ExistsAll: %v, want a BatchError", err)
		}
		done := batch.Count(bloom.ItemDone)
		if done == 0 || done != bloomtest.Count(got) || done+batch.Count(bloom.ItemNotDone) != len(items) {
			t.Errorf("%d found, %v", bloomtest.Count(got), err)
		}
		var call *upstash.CallError
		if !errors.As(err, &call) || !strings.Contains(err.Error(), "items done") {
			t.Errorf("%v, want a CallError that says how many items are done", err)
		}
	})
}

func TestBatchCancelled(t *testing.T) {
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := bloomtest.Handle(t, s.Client(), bloomtest.Small())
		bloomtest.Add(t, f, "a", true)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.ResetStats()
		for name, call := range map[string]func() ([]bool, error){
			"AddAll":    func() ([]bool, error) { return f.AddAll(ctx, []string{"b", "c"}) },
			"ExistsAll": func() ([]bool, error) { return f.ExistsAll(ctx, []string{"a"}) },
		} {
			_, err := call()
			var batch *bloom.BatchError
			if !errors.Is(err, context.Canceled) || !errors.As(err, &batch) || !upstash.SafeToRetry(err) {
				t.Errorf("%s: %v, want a cancelled BatchError, safe to retry", name, err)
			}
		}
		if n := s.Stats().Requests; n != 0 {
			t.Errorf("%d requests after the cancellation", n)
		}
	})
}

func TestExistsAllMissing(t *testing.T) {
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, limit := range []int{0, 500} {
			cfg := bloomtest.Small()
			cfg.BatchBytes = limit
			items := bloomtest.Numbered("item", 50)
			_, err := bloomtest.Handle(t, s.Client(), cfg).ExistsAll(t.Context(), items)
			var batch *bloom.BatchError
			if !errors.Is(err, bloom.ErrNotFound) || !errors.As(err, &batch) || batch.Count(bloom.ItemNotDone) != 50 {
				t.Errorf("%v, want ErrNotFound and nothing done", err)
			}
			cfg.MissingIsEmpty = true
			f := bloomtest.Handle(t, s.Client(), cfg)
			got, err := f.ExistsAll(t.Context(), items)
			if err != nil || len(got) != 50 || bloomtest.Count(got) != 0 {
				t.Errorf("MissingIsEmpty: %v, %v, want 50 times false", got, err)
			}
			bloomtest.Exists(t, f, "item-1", false)
			if n, err := f.Cardinality(t.Context()); n != 0 || err != nil {
				t.Errorf("MissingIsEmpty: Cardinality = %d, %v, want 0", n, err)
			}
		}
	})
}

// MissingIsEmpty applies to a missing filter only. Anything else stays an
// error.
func TestMissingIsEmptyHidesNothingElse(t *testing.T) {
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg := bloomtest.Small()
		cfg.MissingIsEmpty = true
		for name, put := range map[string]func(){
			"another filter": func() { bloomtest.Add(t, bloomtest.Handle(t, s.Client(), bloomtest.Sparse()), "a", true) },
			"a list":         func() { bloomtest.Do(t, s, "RPUSH", bloomtest.Key, "a") },
			"a string":       func() { bloomtest.Do(t, s, "SET", bloomtest.Key, "some text") },
		} {
			s.FlushAll()
			put()
			f := bloomtest.Handle(t, s.Client(), cfg)
			for _, op := range []string{"Exists", "ExistsAll", "Cardinality"} {
				if err := bloomtest.OperationsOf(t, f)[op](); !bloomtest.IsRefusal(err) {
					t.Errorf("%s of %s: %v, want a refusal", op, name, err)
				}
			}
		}
	})
}
