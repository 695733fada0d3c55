package bloom_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
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

// movesTo are the calls that make a filter out of an upload.
func movesTo(t *testing.T, opts ...bloom.MoveOption) map[string]func(f *bloom.Filter) error {
	return map[string]func(*bloom.Filter) error{
		"Load":    func(f *bloom.Filter) error { return errorOf(f.Load(t.Context(), mails(0, 9), opts...)) },
		"Replace": func(f *bloom.Filter) error { return f.Replace(t.Context(), localOf(f, 0, 9), opts...) },
	}
}

// wantUnsafeAndGone checks the error of a call whose repetition finds no filter.
func wantUnsafeAndGone(t *testing.T, s *upstashtest.Server, name string, err error) {
	t.Helper()
	if err == nil || upstash.SafeToRetry(err) {
		t.Errorf("%s: %v, want one that is not safe to retry", name, err)
	}
	if n := do(t, s, "EXISTS", key); n != int64(0) {
		t.Errorf("%s brought back what was deleted", name)
	}
}

func TestRepeatAfterADeleteBringsNothingBack(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		add(t, handleAt(t, s.Client(), "source", cfg), "there", true)
		deleted := func() *upstash.Client { // between the two attempts at the script
			loseReplies(s, "EVAL", 1)
			return afterCommand(s, "EVAL", 1, func() { do(t, s, "DEL", key) })
		}
		for name, call := range movesTo(t, parts) {
			wantUnsafeAndGone(t, s, name, call(handle(t, deleted(), cfg)))
		}
		c := deleted()
		err := bloom.Union(t.Context(), handle(t, c, cfg), handleAt(t, c, "source", cfg))
		wantUnsafeAndGone(t, s, "Union", err)
	})
}

// If the server runs a late attempt at a part, the part is back after the
// script took it. A late attempt at the script must then not take it again.
func TestPartThatComesBackLate(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for name, call := range movesTo(t) {
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
			wantUnsafeAndGone(t, s, name, call(handle(t, c, small())))
			wantNoScratch(t, s, 1) // the mark
			wantScratchExpires(t, s)
			do(t, s, "FLUSHALL")
		}
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
	wantError(t, f.Replace(t.Context(), localOf(f, 0, 9)), bloom.ErrNotFilter)
	if stored(t, s) != before {
		t.Error("their data has changed")
	}
}

// After Replace the filter holds exactly what the Local holds. The TTL stays,
// the birth number changes.
func TestReplaceIsTheLocal(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		cfg.TTL = time.Hour
		f := handle(t, s.Client(), cfg)
		add(t, f, "old", true)
		noError(t, errorOf(f.Expire(t.Context(), 20*time.Minute)))
		before := stored(t, s)
		l := localOf(f, 0, 1000)
		noError(t, f.Replace(t.Context(), l, parts))
		after := stored(t, s)
		if withoutOwn(t, after) != withoutOwn(t, string(l.Bytes())) {
			t.Error("the stored string is not the Local's")
		}
		if birthOf(t, after) == birthOf(t, before) || !isSettled(t, after) {
			t.Errorf("the second word was %x and is %x", ownWords(t, before), ownWords(t, after))
		}
		wantTTL(t, s, 20*time.Minute)
		wantNoScratch(t, s, 1)

		noError(t, errorOf(f.Persist(t.Context())))
		noError(t, f.Replace(t.Context(), l, parts))
		wantNoTTL(t, s)

		do(t, s, "DEL", key)
		noError(t, f.Replace(t.Context(), l, parts))
		wantTTL(t, s, time.Hour)
		if !isSettled(t, stored(t, s)) {
			t.Error("a filter that Replace made is not settled")
		}
	})
}

// If replies are lost, even the last one, the birth number shows that Replace
// ran. A second attempt does not remove items added after the first.
func TestReplaceRunsOnce(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		for _, lost := range []int{1, 2} {
			do(t, s, "FLUSHALL")
			writer := handle(t, s.Client(), cfg)
			f := handle(t, impatient(s, upstash.WithRetry(1)), cfg)
			loseReplies(s, "EVAL", lost)
			added := afterCommand(s, "EVAL", 1, func() {
				noError(t, errorOf(writer.Add(t.Context(), "between")))
			})
			if lost == 1 {
				f = handle(t, added, cfg)
			}
			if err := f.Replace(t.Context(), localOf(f, 0, 100), parts); err != nil {
				t.Fatalf("%d replies lost: %v", lost, err)
			}
			if lost == 1 {
				exists(t, writer, "between", true)
			}
			wantMails(t, f, 0, 100)
		}
	})
}

func TestReplaceAnyHeaderOfOurs(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		add(t, handle(t, s.Client(), small()), "old", true)
		f := handle(t, s.Client(), cfg)
		wantMismatch(t, errorOf(f.Add(t.Context(), "x")))
		noError(t, f.Replace(t.Context(), localOf(f, 0, 100), parts))
		wantMails(t, f, 0, 100)
		add(t, f, "y", true)
	})
}

func TestReplaceLeavesOtherDataAlone(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		f := handle(t, s.Client(), cfg)
		shard := "\xa8\x08" + strings.Repeat("\x00", 30) // kind 1
		own := string(bloom.NewLocal(f.Geometry()).Bytes())
		own = own[:7] + "\x01" + own[8:]                                        // its own header, and bit 63
		tail := "\x88\x08\x00\x00\x00\x00\x1f\xff" + strings.Repeat("\x00", 30) // bits 53 to 63 are set
		for _, data := range []string{
			"plain text that is long enough", strings.Repeat("\x00", 40), shard, tail, own,
			"\x88" + strings.Repeat("\x00", 31),                      // k and m are 0
			"\x8b\x00\x00\x00\x07\x00\x00\x00two numbers and a text", // little-endian
			spoilt(117),
		} {
			do(t, s, "SET", key, data)
			err := f.Replace(t.Context(), localOf(f, 0, 9), parts)
			var mismatch *bloom.MismatchError
			if !errors.Is(err, bloom.ErrNotFilter) && !errors.As(err, &mismatch) {
				t.Errorf("%.40q: %v, want ErrNotFilter or a MismatchError", data, err)
			}
			if stored(t, s) != data {
				t.Errorf("%.40q has become %.40q", data, stored(t, s))
			}
		}
		do(t, s, "DEL", key)
		names := cuckoo(t, s.Client(), bloom.CuckooConfig{Capacity: 1000, FPRate: 0.01})
		noError(t, errorOf(names.Add(t.Context(), "ann")))
		var table *bloom.MismatchError
		err := f.Replace(t.Context(), localOf(f, 0, 9), parts)
		if !errors.As(err, &table) || !upstash.SafeToRetry(err) {
			t.Errorf("a Cuckoo: %v, want a MismatchError that is safe to retry", err)
		}
		exists(t, names, "ann", true)
		var config *bloom.ConfigError
		bare := handle(t, s.Client(), bloom.Config{
			Bits: 1000, Hashes: 7, Scheme: bloom.SchemeFNV1a, Layout: bloom.LayoutBare,
		})
		err = bare.Replace(t.Context(), localOf(bare, 0, 9))
		if !errors.As(err, &config) || !upstash.SafeToRetry(err) {
			t.Errorf("%v, want a ConfigError that is safe to retry", err)
		}
		other := localOf(handle(t, s.Client(), small()), 0, 9)
		wantMismatch(t, f.Replace(t.Context(), other))
		if err := f.Replace(t.Context(), nil); err == nil {
			t.Error("a nil Local is accepted")
		}
	})
}

// What a Local, a client or a seed makes impossible is refused without a request.
func TestMovesRefuse(t *testing.T) {
	s := upstashtest.NewServer(t)
	c := s.Client()
	f := handle(t, c, small())
	seeded := small()
	seeded.Seed = 7
	withSeed := handle(t, c, seeded)
	larger := small()
	larger.Capacity *= 2
	l := bloom.NewLocal(f.Geometry())
	s.ResetStats()
	for says, tt := range map[string]struct {
		f *bloom.Filter
		l *bloom.Local
	}{
		"the Local is nil":                {f, nil},
		"both must be of the same Config": {f, bloom.NewLocal(handle(t, c, larger).Geometry())},
		"another seed":                    {f, bloom.NewLocal(withSeed.Geometry())},
		"but no seed: leave the seed out": {withSeed, l},
		"the client is read-only":         {handle(t, s.ReadOnlyClient(), small()), l},
	} {
		_, merging := tt.f.Merge(t.Context(), tt.l)
		for name, err := range map[string]error{"Merge": merging, "Replace": tt.f.Replace(t.Context(), tt.l)} {
			if err == nil || !strings.Contains(err.Error(), says) || !upstash.SafeToRetry(err) {
				t.Errorf("%s: %v, want an error that says %q and is safe to retry", name, err, says)
			}
		}
	}
	wantRequests(t, s, 0)
}

// A part of unknown outcome is at a key of its own. The filter has not changed.
func TestLoadThatLosesAPartIsSafeToRetry(t *testing.T) {
	s := upstashtest.NewServer(t)
	for name, call := range movesTo(t) {
		s.Inject(noReply)
		if err := call(handle(t, once(s), middling())); err == nil || !upstash.SafeToRetry(err) {
			t.Errorf("%s: %v, want an error that is safe to retry", name, err)
		}
	}
}
