package bloom_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestAddSeqAddsEveryItem(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg := middling()
	cfg.BatchBytes, cfg.BatchParallel = 4000, 2
	f := handle(t, s.Client(), cfg)
	var steps []int64
	r, err := f.AddSeq(t.Context(), mails(0, 3000), bloom.MoveProgress(func(done, total int64) {
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

// The size of a round follows from its items, not from the limits.
func TestAddSeqTakesAnyLimits(t *testing.T) {
	s := upstashtest.NewServer(t)
	for _, limits := range [][2]int{{math.MaxInt, 1}, {0, math.MaxInt}, {math.MaxInt, math.MaxInt}} {
		cfg := middling()
		cfg.BatchBytes, cfg.BatchParallel = limits[0], limits[1]
		s.FlushAll()
		r, err := handle(t, s.Client(), cfg).AddSeq(t.Context(), mails(0, 10))
		if err != nil || r.Items != 10 {
			t.Errorf("limits %v: AddSeq = %+v, %v, want 10 items", limits, r, err)
		}
	}
}

var fine, refused = upstashtest.Fault{}, upstashtest.ErrorObject("OOM injected")

func TestAddSeqSaysHowFarItCame(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg := middling()
	cfg.BatchBytes, cfg.BatchParallel = 4000, 1
	f := handle(t, once(s), cfg)
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
	cfg.BatchBytes, cfg.BatchParallel = 4000, 2
	f := handle(t, s.Client(), cfg)
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
	want := fmt.Sprintf(" of 3000 items done, %d uncertain: the item is in", r.Uncertain)
	if err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	wantMails(t, f, 0, 3000)
}

// The TTL cannot be set: the items of the round are in, and no further ones.
func TestAddSeqEndsWithTheFirstRoundWithoutATTL(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg := middling()
	cfg.TTL, cfg.BatchBytes, cfg.BatchParallel = time.Hour, 4000, 1
	f := handle(t, once(s), cfg)
	s.Inject(fine, refused)
	r, err := f.AddSeq(t.Context(), mails(0, 3000))
	if !errors.Is(err, bloom.ErrNoTTL) || bloom.InFilter(err) || r.Items >= 3000 || r.New == 0 {
		t.Errorf("AddSeq = %+v, %v, in the filter %t, want ErrNoTTL after some new items, and false",
			r, err, bloom.InFilter(err))
	}
}

// TestAddSeqNoticesThatTheFilterWentAway deletes the filter between two
// requests, some of them of two rounds. AddSeq must not report what earlier
// rounds added.
func TestAddSeqNoticesThatTheFilterWentAway(t *testing.T) {
	for _, must := range []bool{false, true} {
		for at := int64(2); at <= 4; at++ {
			eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
				cfg := middling()
				cfg.BatchBytes, cfg.BatchParallel, cfg.MustExist = 4000, 1, must
				f := handle(t, once(s), cfg)
				want := bloom.ErrRecreated
				if must {
					want = bloom.ErrNotFound
					if _, err := f.Create(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				s.InjectFunc(func(n int64, _ upstashtest.RequestInfo) upstashtest.Fault {
					if n == at {
						return upstashtest.Evict()
					}
					return upstashtest.Fault{}
				})
				r, err := f.AddSeq(t.Context(), mails(0, 300))
				if !errors.Is(err, want) || r != (bloom.AddResult{}) {
					t.Errorf("MustExist %v, gone at request %d: AddSeq = %+v, %v, want %v", must, at, r, err, want)
				}
			})
		}
	}
}
