package bloom_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A script makes room for a batch, and then the batch fails: its items are not
// done, and the string is another. The call is safe to retry only if the script
// certainly changed nothing.
func TestScalableSafeToRetryAfterGrowth(t *testing.T) {
	cfg := bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01}
	for _, full := range []bool{false, true} {
		for request := range int64(4) {
			for name, fault := range map[string]upstashtest.Fault{
				"lost":    upstashtest.Drop(upstashtest.AfterExec),
				"refused": upstashtest.ErrorObject("ERR max daily request limit exceeded"),
			} {
				s := upstashtest.NewServer(t)
				f, err := bloom.NewScalable(s.Client(upstash.WithRetry(0)), key, cfg)
				noError(t, err)
				if full {
					mustAdd(t, f, slices.Collect(mails(0, 990))...)
				}
				before := do(t, s, "GET", key)
				s.Inject(append(make([]upstashtest.Fault, request), fault)...)
				_, err = f.AddAll(t.Context(), slices.Collect(mails(1000, 1040)))
				what := fmt.Sprintf("full %t, request %d %s", full, request, name)
				if err == nil {
					continue // there was no such request
				}
				var batch *bloom.BatchError
				if !errors.As(err, &batch) {
					t.Fatalf("%s: %v, want a BatchError", what, err)
				}
				changed := do(t, s, "GET", key) != before
				if upstash.SafeToRetry(err) && changed {
					t.Errorf("%s: safe to retry, and the string is another: %v", what, err)
				}
				scripts := batch.Count(bloom.ItemNotDone) == 40
				if !changed && scripts && name == "refused" && !upstash.SafeToRetry(err) {
					t.Errorf("%s: nothing was changed, and it is not safe to retry: %v", what, err)
				}
				if name == "refused" && !scripts {
					t.Errorf("%s: %v, want 40 items not done", what, err)
				}
			}
		}
	}
}

// Another filter takes the place of ours during a batch, or between two rounds
// of a sequence: what was added before is gone.
func TestBatchMeetsAnotherFilter(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg := small()
	cfg.BatchBytes, cfg.BatchParallel = 1, 1 // an item a request
	create(t, handle(t, s.Client(), middling()), true)
	do(t, s, "RENAME", key, "other")
	replace := func() { do(t, s, "COPY", "other", key, "REPLACE") }
	for _, elsewhere := range []bool{false, true} { // another call of the handle meets it
		do(t, s, "DEL", key)
		f := handle(t, s.Client(), cfg)
		create(t, f, true)
		asked := 0
		seq := func(yield func(string) bool) {
			for item := range mails(0, 5) {
				if asked++; asked == 3 {
					replace()
					if elsewhere {
						_, _ = f.Exists(t.Context(), "x")
					}
				}
				if !yield(item) {
					return
				}
			}
		}
		r, err := f.AddSeq(t.Context(), seq)
		var met *bloom.MismatchError
		if !errors.As(err, &met) || r != (bloom.AddResult{}) || upstash.SafeToRetry(err) || bloom.InFilter(err) {
			t.Errorf("AddSeq = %+v, %v, safe to retry %t, in the filter %t, want a MismatchError, zeros and false",
				r, err, upstash.SafeToRetry(err), bloom.InFilter(err))
		}
	}
	do(t, s, "DEL", key)
	f := handle(t, s.Client(), cfg)
	create(t, f, true)
	s.InjectFunc(func(n int64, r upstashtest.RequestInfo) upstashtest.Fault {
		if n == 3 {
			replace()
		}
		return upstashtest.Fault{}
	})
	_, err := f.AddAll(t.Context(), slices.Collect(mails(0, 4)))
	var batch *bloom.BatchError
	want := []bloom.ItemState{bloom.ItemUnknown, bloom.ItemUnknown, bloom.ItemNotDone, bloom.ItemNotDone}
	if !errors.As(err, &batch) || !slices.Equal(batch.Items, want) {
		t.Errorf("AddAll = %v, want the states %v", err, want)
	}
}
