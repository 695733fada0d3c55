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
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A loaded filter equals, byte for byte, the one of AddAll.
func TestLoadEqualsAddAll(t *testing.T) {
	for _, scheme := range []bloom.Scheme{bloom.SchemeBlocked, bloom.SchemeXXH3, bloom.SchemeFNV1a} {
		t.Run(scheme.String(), func(t *testing.T) {
			eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
				cfg, parts := inParts(bloom.Config{Capacity: 10_000, FPRate: 0.01, Scheme: scheme})
				c := s.Client()
				f := handle(t, c, cfg)
				r, err := f.Load(t.Context(), mails(0, 5000), parts)
				if err != nil {
					t.Fatal(err)
				}
				other := handleAt(t, c, "other", cfg)
				if _, err := other.Create(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := other.AddAll(t.Context(), slices.Collect(mails(0, 5000))); err != nil {
					t.Fatal(err)
				}
				if withoutOwn(t, stored(t, s)) != withoutOwn(t, storedAt(t, s, "other")) {
					t.Error("the strings differ")
				}
				st, err := f.Stats(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if !r.Created || r.Items != 5000 || r.NewBits != st.SetBits || r.NewBitsUnknown {
					t.Errorf("Load made %+v; want it created, 5000 items and %d new bits",
						r, st.SetBits)
				}
				wantNoScratch(t, s, 2)
			})
		})
	}
}

// A second Load adds to the filter, and keeps the second word and the TTL.
func TestLoadKeepsTheTargetsOwn(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		cfg.TTL = time.Hour
		f := handle(t, s.Client(), cfg)
		add(t, f, mail(0), true)
		if _, err := f.Expire(t.Context(), 30*time.Minute); err != nil {
			t.Fatal(err)
		}
		before := stored(t, s)
		r, err := f.Load(t.Context(), mails(0, 1000), parts)
		if err != nil {
			t.Fatal(err)
		}
		after := stored(t, s)
		if ownWords(t, before) != ownWords(t, after) {
			t.Errorf("bits 64 to 127 were %x and are %x", ownWords(t, before), ownWords(t, after))
		}
		if r.Created || r.NewBitsUnknown {
			t.Errorf("Load = %+v, want a known number of new bits in an old filter", r)
		}
		wantTTL(t, s, 30*time.Minute)
		wantMails(t, f, 0, 1000)

		if _, err := f.Persist(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Load(t.Context(), mails(1000, 2000), parts); err != nil {
			t.Fatal(err)
		}
		wantNoTTL(t, s)
	})
}

// Load settles the TTL of a new filter, and of one whose TTL was not settled.
func TestLoadSettles(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		plain := handle(t, s.Client(), cfg)
		cfg.TTL = time.Hour
		f := handle(t, s.Client(), cfg)
		if _, err := f.Load(t.Context(), mails(0, 10), parts); err != nil {
			t.Fatal(err)
		}
		wantTTL(t, s, time.Hour)
		if !isSettled(t, stored(t, s)) || birthOf(t, stored(t, s)) == strings.Repeat("\x00", 7) {
			t.Errorf("the second word is %x", ownWords(t, stored(t, s)))
		}
		if _, err := f.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		add(t, plain, mail(0), true)
		wantNoTTL(t, s)
		if _, err := f.Load(t.Context(), mails(0, 10), parts); err != nil {
			t.Fatal(err)
		}
		wantTTL(t, s, time.Hour)
		if !isSettled(t, stored(t, s)) {
			t.Error("the TTL is not settled")
		}
	})
}

// If a part is gone or has other bytes, the error is ErrLoadLost, and the
// target is unchanged.
func TestLoadNoticesALostPart(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, damage := range []struct {
			name string
			do   func(key string)
		}{
			{"evicted", func(key string) { do(t, s, "DEL", key) }},
			{"cut", func(key string) { do(t, s, "SETEX", key, "60", strings.Repeat("\x00", 1999)) }},
			{"zeros", func(key string) { do(t, s, "SETEX", key, "60", strings.Repeat("\x00", 2000)) }},
		} {
			t.Run(damage.name, func(t *testing.T) {
				do(t, s, "FLUSHALL")
				cfg, parts := inParts(middling())
				c := afterCommand(s, "SETEX", 7, func() {
					keys, _ := do(t, s, "KEYS", "*:load:*:3").([]any)
					if len(keys) != 1 {
						t.Errorf("%d keys of the fourth part, want 1", len(keys))
						return
					}
					damage.do(keys[0].(string))
				})
				f := handle(t, c, cfg)
				add(t, f, mail(-1), true)
				before := stored(t, s)
				if _, err := f.Load(t.Context(), mails(0, 1000), parts); !errors.Is(err, bloom.ErrLoadLost) ||
					!upstash.SafeToRetry(err) {
					t.Errorf("%v, want ErrLoadLost, safe to retry", err)
				}
				if stored(t, s) != before {
					t.Error("the target has changed")
				}
				wantNoScratch(t, s, 1)
			})
		}
	})
}

// If a part arrives after the merge, it expires within an hour.
func TestLoadLatePartExpires(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg, parts := inParts(middling())
	var late []string
	c := afterCommand(s, "SETEX", 7, func() {
		keys, _ := do(t, s, "KEYS", "*:load:*:0").([]any)
		for _, k := range keys {
			late = []string{"SETEX", k.(string), "3600", storedAt(t, s, k.(string))}
		}
	})
	f := handle(t, c, cfg)
	if _, err := f.Load(t.Context(), mails(0, 1000), parts); err != nil {
		t.Fatal(err)
	}
	do(t, s, late...)
	wantScratchExpires(t, s, key)
	s.FastForward(61 * time.Minute)
	wantNoScratch(t, s, 1)
	wantMails(t, f, 0, 1000)
}

// The script may run twice. The second run finds no parts. If it finds the
// filter of the first run, Load knows the answer. Otherwise nobody knows
// whether there was a first run.
func TestLoadTwiceTheScript(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		cfg.TTL = time.Hour
		f := handle(t, impatient(s), cfg)
		loseReplies(s, "EVAL", 1)
		s.ResetStats()
		r, err := f.Load(t.Context(), mails(0, 1000), parts)
		if n := s.Stats(); err != nil || r.Requests != n.Requests-1 || r.Commands >= n.Billed {
			t.Fatalf("%+v, %v, want no lost attempt counted of %+v", r, err, n)
		}
		st, err := f.Stats(t.Context())
		if err != nil || !r.Created || r.NewBitsUnknown || r.NewBits != st.SetBits {
			t.Errorf("%+v, want created, with all of %d bits: %v", r, st.SetBits, err)
		}
		wantTTL(t, s, time.Hour)
		wantMails(t, f, 0, 1000)
		wantNoScratch(t, s, 1)

		loseReplies(s, "EVAL", 1)
		r, err = f.Load(t.Context(), mails(1000, 2000), parts)
		if !errors.Is(err, bloom.ErrUncertain) || upstash.SafeToRetry(err) || bloom.InFilter(err) ||
			r.Created || !r.NewBitsUnknown || !strings.HasSuffix(err.Error(), ": call again") {
			t.Errorf("%+v, %v, want ErrUncertain, new bits unknown, and what to do", r, err)
		}
		wantMails(t, f, 0, 2000)

		loseReplies(s, "EVAL", 5)
		r, err = f.Load(t.Context(), mails(2000, 3000), parts)
		if upstash.SafeToRetry(err) || !r.NewBitsUnknown {
			t.Errorf("no answer: %+v, %v, want an error that is not safe to retry, and new bits unknown", r, err)
		}
	})
}

// loseReplies drops the next n replies to a command. EVAL includes EVALSHA.
func loseReplies(s *upstashtest.Server, name string, n int) {
	s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		is := func(command string) bool { return command == name || command == name+"SHA" }
		if n > 0 && slices.ContainsFunc(r.Commands, is) {
			n--
			return upstashtest.Drop(upstashtest.AfterExec)
		}
		return upstashtest.Fault{}
	})
}

func TestLoadTwoAtOnce(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		cfg.BatchParallel = 2
		done := make(chan error, 2)
		for i := range 2 {
			f := handle(t, s.Client(), cfg)
			go func() {
				_, err := f.Load(context.Background(), mails(i*3000, (i+1)*3000), parts)
				done <- err
			}()
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		wantMails(t, handle(t, s.Client(), cfg), 0, 6000)
		wantNoScratch(t, s, 1)
	})
}

// The script notices what happened to the target during the upload.
func TestLoadTargetChangesMeanwhile(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		evicted := afterCommand(s, "SETEX", 7, func() { do(t, s, "DEL", key) })
		f := handle(t, evicted, cfg)
		add(t, f, "before", true)
		r, err := f.Load(t.Context(), mails(0, 1000), parts)
		if err != nil || !r.Created {
			t.Errorf("%+v, %v, want a new filter", r, err)
		}
		wantMails(t, f, 0, 1000)

		must := cfg
		must.MustExist = true
		evicted = afterCommand(s, "SETEX", 7, func() { do(t, s, "DEL", key) })
		_, err = handle(t, evicted, must).Load(t.Context(), mails(0, 9), parts)
		if !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("%v, want ErrNotFound", err)
		}

		var other string
		another := small()
		replaced := afterCommand(s, "SETEX", 7, func() {
			do(t, s, "DEL", key)
			add(t, handle(t, s.Client(), another), "other", true)
			other = stored(t, s)
		})
		var mismatch *bloom.MismatchError
		_, err = handle(t, replaced, cfg).Load(t.Context(), mails(0, 9), parts)
		if !errors.As(err, &mismatch) {
			t.Errorf("%v, want a MismatchError", err)
		}
		if stored(t, s) != other {
			t.Error("the other filter has changed")
		}
		wantNoScratch(t, s, 1)
	})
}

// Load leaves other data alone.
func TestLoadLeavesOtherDataAlone(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		for _, data := range []string{"plain text that is long enough", strings.Repeat("\x00", 40), "\x00"} {
			do(t, s, "SET", key, data)
			_, err := handle(t, s.Client(), cfg).Load(t.Context(), mails(0, 9), parts)
			if !errors.Is(err, bloom.ErrNotFilter) {
				t.Errorf("%q: %v, want ErrNotFilter", data, err)
			}
			if stored(t, s) != data {
				t.Errorf("%q has become %q", data, stored(t, s))
			}
			wantNoTTL(t, s)
		}
		do(t, s, "DEL", key)
		do(t, s, "LPUSH", key, "v")
		_, err := handle(t, s.Client(), cfg).Load(t.Context(), mails(0, 9), parts)
		if !errors.Is(err, bloom.ErrNotFilter) {
			t.Errorf("a list: %v, want ErrNotFilter", err)
		}
		wantNoScratch(t, s, 1)
	})
}

// A Bare filter has no header to check, but Load refuses a string if it is too
// long.
func TestLoadBare(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(bloom.Config{
			Bits: 95_851, Hashes: 7, Scheme: bloom.SchemeFNV1a, Layout: bloom.LayoutBare, TTL: time.Hour,
		})
		f := handle(t, s.Client(), cfg)
		if r, err := f.Load(t.Context(), mails(0, 1000), parts); err != nil || !r.Created {
			t.Fatalf("Load = %+v, %v, want a new filter", r, err)
		}
		wantTTL(t, s, time.Hour)
		if _, err := f.Load(t.Context(), mails(1000, 2000), parts); err != nil {
			t.Fatal(err)
		}
		wantMails(t, f, 0, 2000)
		wantTTL(t, s, time.Hour)
		do(t, s, "SET", key, strings.Repeat("x", 95_851/8+2))
		if _, err := f.Load(t.Context(), mails(0, 10), parts); !errors.Is(err, bloom.ErrNotFilter) {
			t.Errorf("%v, want ErrNotFilter", err)
		}
	})
}

// Answers that contradict themselves, or lack a number, are refused.
func TestLoadDoubtsBrokenAnswers(t *testing.T) {
	s := upstashtest.NewServer(t)
	add(t, handle(t, s.Client(), middling()), "x", true)
	words, _ := do(t, s, "BITFIELD", key, "GET", "u53", "0").([]any)
	header := fmt.Sprint(words[0])
	for _, result := range []string{
		"[5,H,1,9,4,0]", "[5,H,1,null,4,0]", "[5,H,1,9]", "[5,H,0]", "[5,H,9,1,2,0]", "[5,H]", "[]",
	} {
		body := fixedReply(`{"result":` + strings.ReplaceAll(result, "H", header) + `}`)
		f := handle(t, s.Client(upstash.WithTransport(body)), middling())
		if r, err := f.Load(t.Context(), mails(0, 9)); !errors.Is(err, upstash.ErrBadResponse) {
			t.Errorf("%s: %+v, %v, want ErrBadResponse", result, r, err)
		}
	}
}
