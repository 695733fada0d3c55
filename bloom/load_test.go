package bloom_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A loaded filter equals, byte for byte, the one of AddAll.
func TestLoadEqualsAddAll(t *testing.T) {
	for _, scheme := range []bloom.Scheme{bloom.SchemeBlocked, bloom.SchemeXXH3, bloom.SchemeFNV1a} {
		t.Run(scheme.String(), func(t *testing.T) {
			eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
				cfg, parts := bloom.Config{Capacity: 10_000, FPRate: 0.01, Scheme: scheme}, inParts()
				c := s.Client()
				f := handle(t, c, cfg)
				r, err := f.Load(t.Context(), mails(0, 5000), parts)
				noError(t, err)
				other := handleAt(t, c, "other", cfg)
				create(t, other, true)
				mustAdd(t, other, slices.Collect(mails(0, 5000))...)
				if withoutOwn(t, stored(t, s)) != withoutOwn(t, storedAt(t, s, "other")) {
					t.Error("the strings differ")
				}
				st, err := f.Stats(t.Context())
				noError(t, err)
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
		cfg, parts := middling(), inParts()
		cfg.TTL = time.Hour
		f := handle(t, s.Client(), cfg)
		add(t, f, mail(0), true)
		noError(t, errorOf(f.Expire(t.Context(), 30*time.Minute)))
		before := stored(t, s)
		r, err := f.Load(t.Context(), mails(0, 1000), parts)
		noError(t, err)
		after := stored(t, s)
		if ownWords(t, before) != ownWords(t, after) {
			t.Errorf("bits 64 to 127 were %x and are %x", ownWords(t, before), ownWords(t, after))
		}
		if r.Created || r.NewBitsUnknown {
			t.Errorf("Load = %+v, want a known number of new bits in an old filter", r)
		}
		wantTTL(t, s, 30*time.Minute)
		wantMails(t, f, 0, 1000)

		noError(t, errorOf(f.Persist(t.Context())))
		noError(t, errorOf(f.Load(t.Context(), mails(1000, 2000), parts)))
		wantNoTTL(t, s)
	})
}

// Load settles the TTL of a new filter, and of one whose TTL was not settled.
func TestLoadSettles(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := middling(), inParts()
		plain := handle(t, s.Client(), cfg)
		cfg.TTL = time.Hour
		f := handle(t, s.Client(), cfg)
		noError(t, errorOf(f.Load(t.Context(), mails(0, 10), parts)))
		wantTTL(t, s, time.Hour)
		if !isSettled(t, stored(t, s)) || birthOf(t, stored(t, s)) == strings.Repeat("\x00", 7) {
			t.Errorf("the second word is %x", ownWords(t, stored(t, s)))
		}
		noError(t, errorOf(f.Delete(t.Context())))
		add(t, plain, mail(0), true)
		wantNoTTL(t, s)
		noError(t, errorOf(f.Load(t.Context(), mails(0, 10), parts)))
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
		cfg, parts := middling(), inParts()
		for what, damage := range map[string]func(part string) string{
			"evicted": func(string) string { return "" },
			"shorter": func(part string) string { return strings.Replace(part, "\x00", "", 1) }, // as many bits are set
			"zeros":   func(part string) string { return strings.Repeat("\x00", len(part)) },
		} {
			s.FlushAll()
			c := afterCommand(s, "SETEX", 7, func() {
				fourth := do(t, s, "KEYS", "*:load:*:3").([]any)[0].(string)
				part := storedAt(t, s, fourth)
				do(t, s, "DEL", fourth)
				if damaged := damage(part); damaged != "" {
					do(t, s, "SETEX", fourth, "60", damaged)
				}
			})
			f := handle(t, c, cfg)
			add(t, f, mail(-1), true)
			before := stored(t, s)
			_, err := f.Load(t.Context(), mails(0, 1000), parts)
			if !errors.Is(err, bloom.ErrLoadLost) || !upstash.SafeToRetry(err) {
				t.Errorf("%s: %v, want ErrLoadLost, safe to retry", what, err)
			}
			if stored(t, s) != before {
				t.Errorf("%s: the target has changed", what)
			}
			wantNoScratch(t, s, 1)
		}
	})
}

// If a part arrives after the merge, it expires within an hour.
func TestLoadLatePartExpires(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg, parts := middling(), inParts()
	var late []string
	c := afterCommand(s, "SETEX", 7, func() {
		keys, _ := do(t, s, "KEYS", "*:load:*:0").([]any)
		for _, k := range keys {
			late = []string{"SETEX", k.(string), "3600", storedAt(t, s, k.(string))}
		}
	})
	f := handle(t, c, cfg)
	noError(t, errorOf(f.Load(t.Context(), mails(0, 1000), parts)))
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
		cfg, parts := middling(), inParts()
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

		loseReplies(s, "EVAL", 1)
		s.ResetStats()
		noError(t, f.Replace(t.Context(), localOf(f, 0, 2000), parts))
		wantRequests(t, s, 7+2) // the second run says that there was a first one

		loseReplies(s, "EVAL", 5)
		r, err = f.Load(t.Context(), mails(2000, 3000), parts)
		if upstash.SafeToRetry(err) || !r.NewBitsUnknown {
			t.Errorf("no answer: %+v, %v, want an error that is not safe to retry, and new bits unknown", r, err)
		}
	})
}

// loseReplies drops the next n replies to a command. EVAL includes EVALSHA.
func loseReplies(s *upstashtest.Server, name string, n int) {
	bloomtest.StrikeFirst(s, name, n, noReply)
}

// Load leaves other data alone.
func TestLoadLeavesOtherDataAlone(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := middling(), inParts()
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
		cfg, parts := bloom.Config{
			Bits: 95_851, Hashes: 7, Scheme: bloom.SchemeFNV1a, Layout: bloom.LayoutBare, TTL: time.Hour,
		}, inParts()
		f := handle(t, s.Client(), cfg)
		if r, err := f.Load(t.Context(), mails(0, 1000), parts); err != nil || !r.Created {
			t.Fatalf("Load = %+v, %v, want a new filter", r, err)
		}
		wantTTL(t, s, time.Hour)
		noError(t, errorOf(f.Load(t.Context(), mails(1000, 2000), parts)))
		wantMails(t, f, 0, 2000)
		wantTTL(t, s, time.Hour)
		do(t, s, "SET", key, strings.Repeat("x", 95_851/8+2))
		wantError(t, errorOf(f.Load(t.Context(), mails(0, 10), parts)), bloom.ErrNotFilter)
	})
}

// A string that not every plan takes is refused at the first request, before
// any of its 134 MB are sent.
func TestTooLargeBeforeTheUpload(t *testing.T) {
	t.Run("in memory", func(t *testing.T) { wantTooLargeAtOnce(t, upstashtest.NewServer(t)) })
	t.Run("Redis", func(t *testing.T) {
		addr := testenv.Redis(t)
		limit(t, addr)
		wantTooLargeAtOnce(t, upstashtest.NewServer(t, upstashtest.WithRedis(addr), upstashtest.WithMaxRecord(1<<40)))
	})
}

func wantTooLargeAtOnce(t *testing.T, s *upstashtest.Server) {
	f := handle(t, s.Client(), bloom.Config{Capacity: 100_000_000, FPRate: 0.01})
	length := human.Count(f.Geometry().Bytes(bloom.LayoutHeaded)) + " bytes"
	refused := func(err error) {
		t.Helper()
		wantTooLarge(t, s, err, 0)
		if !strings.Contains(err.Error(), length) {
			t.Errorf("%v, want one that says %s", err, length)
		}
		if n := s.Stats(); n.Requests != 1 || n.Billed > 2 || n.BytesIn > 1000 {
			t.Errorf("%d requests, %d commands and %d bytes before the refusal, want 1, 2 and few",
				n.Requests, n.Billed, n.BytesIn)
		}
		s.ResetStats()
	}
	l := bloom.NewLocal(f.Geometry())
	s.ResetStats()
	refused(errorOf(f.Load(t.Context(), mails(0, 1))))
	refused(f.Replace(t.Context(), l))
}

// wantTooLarge checks that a string was refused for its length, and that the
// database is as it was before.
func wantTooLarge(t *testing.T, s *upstashtest.Server, err error, keys int) {
	t.Helper()
	wantUntouched(t, err, upstash.ErrRecordTooLarge)
	wantNoScratch(t, s, keys)
}

// A Redis refuses the string within its own script engine.
func TestLoadBeyondTheLimitOfRedis(t *testing.T) {
	addr := testenv.Redis(t)
	limit(t, addr)
	s := upstashtest.NewServer(t, upstashtest.WithRedis(addr))
	f := handle(t, s.Client(), bloom.Config{Capacity: 1_000_000, FPRate: 0.01}) // 1.35 MB
	_, err := f.Load(t.Context(), mails(0, 100), bloom.WithPartBytes(100_000))
	wantTooLarge(t, s, err, 0)
	var large *bloom.RecordTooLargeError
	if !errors.As(err, &large) || large.Bytes != f.Geometry().Bytes(bloom.LayoutHeaded) {
		t.Errorf("%#v, want the length of the filter's string", large)
	}
}

// limit lowers a Redis's limit on the length of strings to 1 MiB, its least.
func limit(t *testing.T, addr string) {
	t.Helper()
	if reply := testenv.Ask(t, addr, "CONFIG SET proto-max-bulk-len 1048576"); reply != "+OK\r\n" {
		t.Fatalf("CONFIG SET: got %q, want +OK", reply)
	}
}

// Progress begins at 0 and ends with the whole string. The result has the
// server's number of requests.
func TestLoadReports(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg, parts := middling(), inParts()
	f := handle(t, s.Client(), cfg)
	var steps []int64
	s.ResetStats()
	r, err := f.Load(t.Context(), mails(0, 100), parts, bloom.WithProgress(func(done, total int64) {
		steps = append(steps, done)
		if total != int64(f.Geometry().Bytes(bloom.LayoutHeaded)) {
			t.Errorf("the reported total is %d, want the length of the string", total)
		}
	}))
	noError(t, err)
	if len(steps) != 8 || steps[0] != 0 || steps[7] != r.Bytes || !slices.IsSorted(steps) {
		t.Errorf("progress %v, want 8 ascending steps from 0 to %d", steps, r.Bytes)
	}
	if got := s.Stats().Requests; r.Requests != got || got != 8 {
		t.Errorf("%d requests are reported, %d were sent, want 8", r.Requests, got)
	}
}

// A panic of the function of WithProgress reaches the caller, who may recover.
// Nothing of the upload stays, and the handle goes on.
func TestPanicInProgress(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg, parts := middling(), inParts()
	f := handle(t, s.Client(), cfg)
	panics := bloom.WithProgress(func(done, _ int64) {
		if done > 0 {
			panic("at the first part")
		}
	})

	wantPanic(t, "Load", func() { _, _ = f.Load(t.Context(), mails(0, 100), parts, panics) })
	wantNoScratch(t, s, 0)
	noError(t, errorOf(f.Load(t.Context(), mails(0, 100), parts)))
	wantPanic(t, "Snapshot", func() { _, _ = f.Snapshot(t.Context(), parts, panics) })
	sharded, err := bloom.NewSharded([]*upstash.Client{s.Client()}, "sharded", bloom.ShardedConfig{
		Capacity: 10_000, FPRate: 0.01, Shards: 2,
	})
	noError(t, err)
	create(t, sharded, true)
	wantPanic(t, "Sharded.Load", func() { _, _ = sharded.Load(t.Context(), mails(0, 100), panics) })
}

func wantPanic(t *testing.T, name string, call func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if v := recover(); v != "at the first part" {
			t.Errorf("%s: recovered %v, want the panic of the function", name, v)
		}
	}()
	call()
}

// A Load is billed what COSTS.md says: three commands for each part, and a few
// more, which depend on what is at the key.
func TestLoadIsBilled(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, parts := range []int64{1, 2, 7} {
			for _, tt := range []struct {
				layout       bloom.Layout
				ttl          time.Duration
				first, again int64 // more than three for each part
			}{
				{bloom.LayoutHeaded, 0, 8, 9},
				{bloom.LayoutHeaded, time.Hour, 8, 10},
				{bloom.LayoutBare, 0, 7, 9},
				{bloom.LayoutBare, time.Hour, 7, 10},
			} {
				s.FlushAll()
				f := handle(t, s.Client(), bloom.Config{
					Bits: uint64(parts)*8192 - 800, Hashes: 4, Scheme: bloom.SchemeXXH3, Layout: tt.layout, TTL: tt.ttl,
				})
				for _, more := range []int64{tt.first, tt.again} {
					s.ResetStats()
					r, err := f.Load(t.Context(), mails(0, 100), bloom.WithPartBytes(1024))
					noError(t, err)
					n, want := s.Stats(), 3*parts+more
					if n.Billed != want || r.Commands != want || n.Requests != parts+1 {
						t.Errorf("%+v, %d parts: %d commands, %d reported, in %d requests; want %d",
							tt, parts, n.Billed, r.Commands, n.Requests, want)
					}
				}
			}
		}
	})
}

// A Replace is billed what COSTS.md says: the same with and without a filter at
// the key and a TTL, and more if that filter has another geometry.
func TestReplaceIsBilled(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, parts := range []int64{1, 2, 7} {
			for _, ttl := range []time.Duration{0, time.Hour} {
				s.FlushAll()
				cfg := bloom.Config{Bits: uint64(parts)*8192 - 800, Hashes: 4, Scheme: bloom.SchemeXXH3, TTL: ttl}
				for _, at := range []struct {
					what               string
					hashes             int
					requests, commands int64
				}{
					{"missing", 4, parts + 1, 3*parts + 8},
					{"there", 4, parts + 1, 3*parts + 8},
					{"of another geometry", 5, parts + 3, 3*parts + 13},
				} {
					cfg.Hashes = at.hashes
					f := handle(t, s.Client(), cfg)
					l := localOf(f, 0, 100)
					s.ResetStats()
					noError(t, f.Replace(t.Context(), l, bloom.WithPartBytes(1024)))
					if n := s.Stats(); n.Requests != at.requests || n.Billed != at.commands {
						t.Errorf("%d parts, TTL %v, %s: %d commands in %d requests, want %d in %d", parts, ttl, at.what,
							n.Billed, n.Requests, at.commands, at.requests)
					}
				}
			}
		}
	})
}

// A Load that finds a filter without the TTL of its first Add sets it, with two
// commands.
func TestLoadIsBilledToSettle(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg := middling()
		add(t, handle(t, s.Client(), cfg), mail(0), true)
		cfg.TTL = time.Hour
		f := handle(t, s.Client(), cfg)
		for _, more := range []int64{9 + 2, 10} {
			s.ResetStats()
			noError(t, errorOf(f.Load(t.Context(), mails(0, 100))))
			if n := s.Stats().Billed; n != 3+more {
				t.Errorf("%d commands, want %d", n, 3+more)
			}
		}
	})
}

// A Sharded's Load is billed two commands a shard more, in a request to each
// database.
func TestShardedLoadIsBilled(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, shards := range []int{1, 3} {
			name := "shards-" + strconv.Itoa(shards)
			f, err := bloom.NewSharded([]*upstash.Client{s.Client()}, name,
				bloom.ShardedConfig{Capacity: 1000, FPRate: 0.01, Shards: shards})
			if err == nil {
				_, err = f.Create(t.Context())
			}
			noError(t, err)
			s.ResetStats()
			r, err := f.Load(t.Context(), mails(0, 100))
			n, want := s.Stats(), int64(shards)*(3+9+2)
			if err != nil || n.Billed != want || r.Commands != want || n.Requests != int64(2*shards+1) {
				t.Errorf("%d shards: %d commands, %d reported, in %d requests, %v; want %d", shards, n.Billed, r.Commands,
					n.Requests, err, want)
			}
		}
	})
}

// Load and Merge report when they overfill a filter, be it new or not. They do
// not count bits behind its last cell.
func TestLoadOverCapacity(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		f := handle(t, c, small())
		const within, over = false, true // its capacity
		load := func(from, to int, want bool) {
			t.Helper()
			r, err := f.Load(ctx, mails(from, to))
			if err != nil || r.OverCapacity != want {
				t.Errorf("Load of %d to %d: over %t, %v; want %t", from, to, r.OverCapacity, err, want)
			}
		}
		load(0, 900, within)
		do(t, s, "SETRANGE", key, "1400", strings.Repeat("x", 400))
		load(900, 950, within)
		load(950, 2000, over)
		noError(t, errorOf(f.Delete(ctx)))
		load(0, 100_000, over)
		r, err := handle(t, c, small()).Merge(ctx, localOf(f, 0, 3000))
		if err != nil || !r.OverCapacity {
			t.Errorf("Merge: over capacity %t, want true: %v", r.OverCapacity, err)
		}
	})
}
