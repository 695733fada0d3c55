package bloom_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A repeated Replace must not undo the writes of others after its first
// attempt, whose reply was lost.
func TestReplaceThatIsRepeatedUndoesNothing(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		other := handle(t, s.Client(), cfg)
		loseReplies(s, "EVAL", 1)
		f := handle(t, afterCommand(s, "EVAL", 1, func() {
			if err := other.Replace(t.Context(), localOf(other, 100, 200), parts); err != nil {
				t.Error(err)
			}
			add(t, other, "between", true)
		}), cfg)
		err := f.Replace(t.Context(), localOf(f, 0, 100), parts)
		if !errors.Is(err, bloom.ErrUncertain) || upstash.SafeToRetry(err) {
			t.Errorf("Replace: %v, want ErrUncertain", err)
		}
		exists(t, other, "between", true)
		exists(t, other, mail(0), false)
		wantMails(t, other, 100, 200)
		wantNoScratch(t, s, 1)
	})
}

func TestRepeatAfterADeleteBringsNothingBack(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		add(t, handleAt(t, s.Client(), "source", cfg), "there", true)
		for name, call := range map[string]func(*upstash.Client, *bloom.Filter) error{
			"Load": func(_ *upstash.Client, f *bloom.Filter) error {
				_, err := f.Load(t.Context(), mails(0, 9), parts)
				return err
			},
			"Replace": func(_ *upstash.Client, f *bloom.Filter) error {
				return f.Replace(t.Context(), localOf(f, 0, 9), parts)
			},
			"Union": func(c *upstash.Client, f *bloom.Filter) error {
				return bloom.Union(t.Context(), f, handleAt(t, c, "source", cfg))
			},
		} {
			loseReplies(s, "EVAL", 1)
			c := afterCommand(s, "EVAL", 1, func() { do(t, s, "DEL", key) })
			if err := call(c, handle(t, c, cfg)); err == nil || upstash.SafeToRetry(err) {
				t.Errorf("%s: %v, want one that is not safe to retry", name, err)
			}
			if n := do(t, s, "EXISTS", key); n != int64(0) {
				t.Errorf("%s brought back what was deleted", name)
			}
		}
	})
}

// If the server runs a late attempt at a part, the part is back after the
// script took it. A late attempt at the script must then not take it again.
func TestPartThatComesBackLate(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for name, call := range map[string]func(*bloom.Filter) error{
			"Load":    func(f *bloom.Filter) error { return errorOf(f.Load(t.Context(), mails(0, 9))) },
			"Replace": func(f *bloom.Filter) error { return f.Replace(t.Context(), localOf(f, 0, 9)) },
		} {
			other := handle(t, s.Client(), small())
			var late []string
			c := impatient(s, upstash.WithObserver(func(_ context.Context, e upstash.Event) {
				switch {
				case e.Command == "SETEX":
					keys := do(t, s, "KEYS", "*:load:*").([]any)
					late = []string{"SETEX", keys[0].(string), "3600", storedAt(t, s, keys[0].(string))}
				case strings.HasPrefix(e.Command, "EVAL") && late != nil:
					if deleted, err := other.Delete(t.Context()); !deleted {
						t.Errorf("the first attempt made no filter: %v", err)
					}
					do(t, s, late...)
					late = nil
				}
			}))
			lose := map[string]bool{"SETEX": true, "EVAL": true}
			s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
				if !lose[r.Commands[0]] {
					return upstashtest.Fault{}
				}
				delete(lose, r.Commands[0])
				return upstashtest.Drop(upstashtest.AfterExec)
			})
			f := handle(t, c, small())
			if err := call(f); err == nil || upstash.SafeToRetry(err) {
				t.Errorf("%s: %v, want one that is not safe to retry", name, err)
			}
			if n := do(t, s, "EXISTS", key); n != int64(0) {
				t.Errorf("%s brought back what was deleted", name)
			}
			wantNoScratch(t, s, 1) // the mark
			wantScratchExpires(t, s)
			do(t, s, "FLUSHALL")
		}
	})
}

// If the reply to a Union is lost, the Union recognizes its own target by the
// birth number.
func TestUnionWhoseReplyIsLost(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c := impatient(s)
		dst, src := handle(t, c, small()), handleAt(t, c, "source", small())
		add(t, src, "a", true)
		loseReplies(s, "EVAL", 1)
		if err := bloom.Union(t.Context(), dst, src); err != nil {
			t.Error(err)
		}
		exists(t, dst, "a", true)
	})
}

// If a handle refuses a key, it still does so after a failed Replace.
func TestReplaceThatFailsKeepsTheRefusal(t *testing.T) {
	s := upstashtest.NewServer(t)
	do(t, s, "SET", key, "some text of theirs, which is long enough")
	f := handle(t, s.Client(), small())
	if _, err := f.Add(t.Context(), "a"); !isRefusal(err) {
		t.Fatalf("Add: %v, want a refusal", err)
	}
	before := stored(t, s)
	if err := f.Replace(t.Context(), localOf(handle(t, s.Client(), sparse()), 0, 9)); err == nil {
		t.Error("a Local of another geometry is accepted")
	}
	s.ResetStats()
	if _, err := f.Add(t.Context(), "b"); !isRefusal(err) || s.Stats().Requests != 0 {
		t.Errorf("Add: %v after %d requests, want a refusal without one", err, s.Stats().Requests)
	}
	if err := f.Replace(t.Context(), localOf(f, 0, 9)); !errors.Is(err, bloom.ErrNotFilter) {
		t.Errorf("Replace: %v, want ErrNotFilter", err)
	}
	if stored(t, s) != before {
		t.Error("their data has changed")
	}
}

// However small the parts should be, one request can still name them all.
func TestSmallestParts(t *testing.T) {
	s := upstashtest.NewServer(t)
	c, w := watch(t, s)
	long := strings.Repeat("k", 4000)
	cfg := bloom.Config{Capacity: 1_700_000, FPRate: 0.01} // 2.3 MB
	for _, at := range []string{key, long} {
		if at != long && !testenv.Long() {
			continue
		}
		w.Bodies = nil
		f := handleAt(t, c, at, cfg)
		noError(t, errorOf(f.Load(t.Context(), mails(0, 100), bloom.MovePartBytes(1<<10))))
		most, total := 0, 0
		for _, body := range w.Bodies {
			total++
			if strings.HasPrefix(body, "[") {
				most = max(most, len(body))
			}
		}
		if most == 0 || most > 300<<10 || total > 1001 {
			t.Errorf("%d requests, the script's of %d bytes, want at most 1,001 and 300 KiB",
				total, most)
		}
		wantMails(t, f, 0, 100)
	}
}

// AddIn settles all of its filters in one request.
func TestAddInSettlesAtOnce(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c := s.Client()
		bare := expiring(time.Hour)
		bare.Layout, bare.Scheme = bloom.LayoutBare, bloom.SchemeXXH3
		var filters []*bloom.Filter
		var keys []string
		for i, k := range numbered("filter", 50) {
			cfg := expiring(time.Hour)
			if i%10 == 0 {
				cfg = bare
			}
			keys, filters = append(keys, k), append(filters, handleAt(t, c, k, cfg))
		}
		for _, want := range []int64{2, 1} {
			s.ResetStats()
			item := strings.Repeat("x", int(want))
			answers, err := bloom.AddIn(t.Context(), item, filters...)
			if err != nil || slices.ContainsFunc(answers, func(a bloom.Answer) bool { return !a.Yes }) {
				t.Fatalf("AddIn = %v, %v, want only new", answers, err)
			}
			// If the server refuses the flags of scripts, the first AddIn sends
			// one more.
			if n := s.Stats().Requests; n != want && n != 2*want-1 {
				t.Errorf("%d requests, want %d", n, want)
			}
		}
		for _, k := range keys {
			if n := do(t, s, "PTTL", k).(int64); n <= 0 {
				t.Errorf("%s has a TTL of %d ms, want more than 0", k, n)
			}
		}
	})
}

// With MustExist, a write leaves the TTL to Create.
func TestMustExistSettlesNothing(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		add(t, handle(t, s.Client(), small()), "a", true) // made without a TTL
		add(t, handleAt(t, s.Client(), "source", small()), "c", true)
		f := handle(t, s.Client(), must(expiring(time.Hour)))
		add(t, f, "b", true)
		noError(t, errorOf(f.Load(t.Context(), mails(0, 9))))
		if err := bloom.Union(t.Context(), f, handleAt(t, s.Client(), "none", small())); err == nil {
			t.Error("a missing source is accepted")
		}
		wantNoTTL(t, s)
		do(t, s, "DEL", key)
		g := must(small())
		c := s.Client()
		if err := bloom.Union(t.Context(), handle(t, c, g), handleAt(t, c, "source", small())); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("Union into a missing filter: %v, want ErrNotFound", err)
		}
	})
}
