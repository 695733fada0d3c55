package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// With MaxStale the copy also answers "no", until it is too old.
func TestMirrorMaxStale(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		const stale = 10 * time.Second
		f := handle(t, s.Client(), roomy()) // 128 KiB: one part
		mustAdd(t, f, "a")
		m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: stale})
		wantLookUp(t, s, m, "x", absent, inOneRequest) // one part
		wantLookUp(t, s, m, "x", absent, fromCopy)
		wantLookUp(t, s, m, "a", present, fromCopy)
		mustAdd(t, f, "b")
		c.pass(stale)
		wantLookUp(t, s, m, "b", absent, fromCopy) // added no more than MaxStale ago
		c.pass(1)
		wantLookUp(t, s, m, "b", present, inTwoRequests) // the count, and one part
		c.pass(stale + 1)
		wantLookUp(t, s, m, "x", absent, inOneRequest) // nothing changed, so only the count
		c.pass(-1)                                     // the clock is set back: too old
		wantLookUp(t, s, m, "x", absent, inOneRequest)
		c.freeze(50 * time.Minute)
		wantLookUp(t, s, m, "x", absent, inOneRequest)
		c.freeze(5 * time.Hour)
		wantLookUp(t, s, m, "a", present, inTwoRequests) // past an hour: a download
		wantLookUp(t, s, m, "x", absent, fromCopy)

		// Its own Adds are in the copy, which is then complete.
		add(t, m, "own", true)
		c.pass(stale + 1)
		wantLookUp(t, s, m, "x", absent, inOneRequest)

		st := m.Stats()
		if !st.Copied || st.Age != 0 || st.Refreshes != 7 || st.Failures != 0 || st.Bytes < 128<<10 {
			t.Errorf("%+v, want a fresh copy after 7 refreshes", st)
		}
	})
}

// A Mirror costs fewer commands than asking from the fourth look-up in each
// MaxStale on, and from the seventh if somebody adds in each: COSTS.md says so.
func TestMirrorPaysFromTheFourthLookUp(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		const stale = 10 * time.Second
		f := handle(t, s.Client(), roomy())
		mustAdd(t, f, "a")
		m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: stale})
		noError(t, m.Refresh(t.Context()))
		billed := func(look func(ctx context.Context, item string) (bool, error), times int) int64 {
			s.ResetStats()
			for range times {
				noError(t, errorOf(look(t.Context(), "x")))
			}
			return s.Stats().Billed
		}
		for i, pays := range []int{4, 7} {
			if i == 1 {
				mustAdd(t, f, "b")
			}
			c.pass(stale + 1)
			mirrored := billed(m.Exists, pays)
			if less, more := billed(f.Exists, pays-1), billed(f.Exists, pays); mirrored != less || mirrored >= more {
				t.Errorf("%d look-ups: %d commands with a Mirror, %d without, and %d for one less", pays, mirrored,
					more, less)
			}
		}
	})
}

// With MissingIsEmpty, a missing filter answers "no" for MaxStale without a
// request.
func TestMirrorRemembersAMissingFilter(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		const stale = 10 * time.Second
		cfg := roomy()
		cfg.MissingIsEmpty = true
		f, writer := handle(t, s.Client(), cfg), handle(t, s.Client(), roomy())
		m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: stale})
		wantLookUp(t, s, m, "x", absent, inOneRequest)
		wantLookUp(t, s, m, "x", absent, fromCopy)
		if st := m.Stats(); !st.Copied || st.Refreshes != 1 || st.Failures != 0 || st.SetBits != 0 {
			t.Errorf("%+v, want an empty copy after 1 refresh", st)
		}
		mustAdd(t, writer, "a")
		c.pass(stale)
		wantLookUp(t, s, m, "a", absent, fromCopy) // added no more than MaxStale ago
		c.pass(1)
		wantLookUp(t, s, m, "a", present, inTwoRequests)
		wantLookUp(t, s, m, "x", absent, fromCopy)

		// The filter is deleted, and the Mirror's own Add makes it again.
		noError(t, errorOf(writer.Delete(t.Context())))
		c.pass(stale + 1)
		wantLookUp(t, s, m, "b", absent, inOneRequest)
		wantLookUp(t, s, m, "a", absent, fromCopy)
		add(t, m, "b", true)
		wantLookUp(t, s, m, "b", present, fromCopy)
		wantLookUp(t, s, m, "a", absent, inOneRequest)

		// Refresh accepts it too. Without MaxStale each "no" is asked.
		noError(t, errorOf(writer.Delete(t.Context())))
		d, _ := mirror(t, f, bloom.MirrorConfig{})
		if err := d.Refresh(t.Context()); err != nil {
			t.Errorf("Refresh: %v", err)
		}
		wantLookUp(t, s, d, "b", absent, inOneRequest)

		// Another filter or other data is an error at each look-up.
		do(t, s, "SET", key, "some text that is long enough")
		c.pass(stale + 1)
		for range 2 {
			wantError(t, errorOf(m.Exists(t.Context(), "x")), bloom.ErrNotFilter)
			c.pass(2 * time.Second)
		}
	})
}

// If a refresh finds another birth number, it drops the old copy and fetches
// the new filter.
func TestMirrorRefreshOfANewFilter(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), roomy())
		mustAdd(t, f, "a", "b")
		m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Second})
		wantLookUp(t, s, m, "x", absent, inOneRequest)
		noError(t, errorOf(f.Delete(t.Context())))
		mustAdd(t, f, "c", "d") // the same number of bits
		c.pass(2 * time.Second)
		wantLookUp(t, s, m, "x", absent, inTwoRequests)
		wantLookUp(t, s, m, "a", absent, fromCopy)
		wantLookUp(t, s, m, "c", present, fromCopy)

		noError(t, errorOf(f.Delete(t.Context())))
		wantError(t, m.Refresh(t.Context()), bloom.ErrNotFound)
		wantError(t, errorOf(m.Exists(t.Context(), "c")), bloom.ErrNotFound)
		if st := m.Stats(); st.Copied || st.SetBits != 0 {
			t.Errorf("%+v, want no copy", st)
		}
	})
}

// A filter restored from a backup has the same birth number and fewer bits. The
// copy starts over.
func TestMirrorOfAFilterFromABackup(t *testing.T) {
	s, f, m, _ := mirrored(t, bloom.MirrorConfig{MaxStale: time.Second})
	do(t, s, "COPY", key, "backup")
	mustAdd(t, f, "b", "c")
	wantLookUp(t, s, m, "b", present, inOneRequest)
	do(t, s, "COPY", "backup", key, "REPLACE")
	noError(t, m.Refresh(t.Context()))
	wantLookUp(t, s, m, "b", absent, fromCopy)
	wantLookUp(t, s, m, "a", present, fromCopy)
}

// Refresh also serves a Mirror without MaxStale. A "yes" then needs no request,
// and a "no" is the server's.
func TestMirrorRefreshByHand(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), bloom.Config{Capacity: 1_000_000, FPRate: 0.00001}) // two parts
	mustAdd(t, f, numbered("item", 500)...)
	m, _ := mirror(t, f, bloom.MirrorConfig{})
	s.ResetStats()
	noError(t, m.Refresh(t.Context()))
	wantRequests(t, s, 2)
	for _, item := range numbered("item", 500) {
		wantLookUp(t, s, m, item, present, fromCopy)
	}
	wantLookUp(t, s, m, "x", absent, inOneRequest)
	if got, want := m.Stats().SetBits, stats(t, f).SetBits; got != want {
		t.Errorf("the copy has %d bits set, the filter %d", got, want)
	}
}

// A call finds the copy too old. If another call has refreshed it since, it makes
// no refresh of its own.
func TestMirrorLooksAgainBeforeItRefreshes(t *testing.T) {
	_, _, m, _ := mirrored(t, bloom.MirrorConfig{MaxStale: time.Minute})
	m.RefreshFor(t.Context(), func() { noError(t, m.Refresh(t.Context())) })
	if st := m.Stats(); st.Refreshes != 1 {
		t.Errorf("%+v, want 1 refresh", st)
	}
	// The next refresh can begin.
	if err := m.Refresh(t.Context()); err != nil || m.Stats().Refreshes != 2 {
		t.Errorf("%v: %+v, want 2 refreshes", err, m.Stats())
	}
}

// All calls that find the copy too old wait for one refresh.
func TestMirrorRefreshesOnceForAllCallers(t *testing.T) {
	cfg := bloom.MirrorConfig{MaxStale: time.Minute}
	wired(t, cfg, func(t *testing.T, s *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror) {
		crowd(t, s, w.Hold("EVAL", true), nil, 1, func() {
			exists(t, m, "x", absent)
			exists(t, m, "a", present)
		})
		if st := m.Stats(); st.Hits != 60 || st.Saved != 30 || st.Asked != 0 || st.Refreshes != 1 {
			t.Errorf("%+v, want 60 hits, half of them saved, and 1 refresh", st)
		}
	})
}

// holdReply makes a transport that holds back the n-th reply.
func holdReply(t *testing.T, n int) (*bloomtest.Held, upstash.Option) {
	w := bloomtest.NewWire(t)
	return w.HoldReply(n), upstash.WithTransport(w)
}

// The age of a copy counts from the start of its refresh, however long that
// takes.
func TestMirrorAgeCountsFromTheStart(t *testing.T) {
	s, _, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: time.Hour})
	during(s, 1, func() { c.pass(time.Minute) })
	wantLookUp(t, s, m, "x", absent, inOneRequest)
	if st := m.Stats(); st.Age != time.Minute {
		t.Errorf("the copy is %v old, want a minute", st.Age)
	}

	// The same holds for a missing filter.
	do(t, s, "DEL", key)
	cfg := roomy()
	cfg.MissingIsEmpty = true
	m, c = mirror(t, handle(t, s.Client(), cfg), bloom.MirrorConfig{MaxStale: time.Hour})
	during(s, 1, func() { c.pass(time.Minute) })
	wantLookUp(t, s, m, "x", absent, inOneRequest)
	if st := m.Stats(); st.Age != time.Minute {
		t.Errorf("a missing filter was seen %v ago, want a minute", st.Age)
	}
}

// If the parts have fewer bits than were counted at the start, the refresh
// fails. Here the filter was restored from a backup in between, with the same
// birth number.
func TestMirrorRefusesPartsThatLackBits(t *testing.T) {
	s, f, m, _ := mirrored(t, bloom.MirrorConfig{MaxStale: time.Hour})
	noError(t, m.Refresh(t.Context()))
	do(t, s, "COPY", key, "backup")
	mustAdd(t, f, "b", "c")
	during(s, 2, func() { _, _ = s.Exec("COPY", "backup", key, "REPLACE") })
	if err := m.Refresh(t.Context()); err == nil {
		t.Error("a refresh with too few bits is no error")
	}
	if st := m.Stats(); st.Refreshes != 1 || st.Failures != 1 {
		t.Errorf("%+v, want a failure", st)
	}
}

// A part of a deleted filter arrives when the copy is already of the next
// filter. Its bits do not enter the copy.
func TestMirrorKeepsTwoFiltersApart(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), roomy())
	mustAdd(t, f, numbered("old", 100)...)
	held, through := holdReply(t, 3) // the part's, after the count's, and a refresh
	m, _ := mirror(t, handle(t, s.Client(through), roomy()), bloom.MirrorConfig{MaxStale: time.Hour})
	noError(t, m.Refresh(t.Context()))
	mustAdd(t, f, "more")
	refresh := func() { wantError(t, m.Refresh(t.Context()), bloom.ErrRecreated) }
	whileHeld(held, refresh, func() {
		do(t, s, "DEL", key)
		wantNew(t, m, "new")
	})
	if n := m.Stats().SetBits; n > 8 {
		t.Errorf("%d bits in the copy of a filter with one item, want at most 8", n)
	}
	wantLookUp(t, s, m, "old-1", absent, inOneRequest)
}

// The answer that there is no filter arrives after the Mirror's own Add made
// one. The added item stays in the copy.
func TestMirrorMissingFilterThatComesLate(t *testing.T) {
	// If both were sent at the same time, neither answer counts as the later
	// one. In both cases the refresh asks once more, and finds the new filter.
	for _, later := range []time.Duration{time.Nanosecond, 0} {
		s := upstashtest.NewServer(t)
		cfg := roomy()
		cfg.MissingIsEmpty = true
		held, through := holdReply(t, 1)
		m, c := mirror(t, handle(t, s.Client(through), cfg), bloom.MirrorConfig{MaxStale: time.Hour})
		whileHeld(held, refreshes(t, m), func() { // it sees the new filter
			c.pass(later)
			wantNew(t, m, "new")
		})
		if !m.Stats().Copied {
			t.Error("the copy does not count as whole")
		}
		wantLookUp(t, s, m, "new", present, fromCopy)
	}
}

// A first refresh reads at once. What it reads joins what the copy has learned
// meanwhile: an Add of the Mirror's own.
func TestMirrorColdStart(t *testing.T) {
	s := upstashtest.NewServer(t)
	mustAdd(t, handle(t, s.Client(), roomy()), "old")
	held, through := holdReply(t, 1)
	m, _ := mirror(t, handle(t, s.Client(through), roomy()), bloom.MirrorConfig{MaxStale: time.Hour})
	whileHeld(held, refreshes(t, m), func() { wantNew(t, m, "new") })
	wantLookUp(t, s, m, "old", present, fromCopy)
	wantLookUp(t, s, m, "new", present, fromCopy)
	wantLookUp(t, s, m, "x", absent, fromCopy)
	if n := s.Stats().Requests; n != 3 {
		t.Errorf("%d requests, want 3: two Adds and a part", n)
	}
}

// The first part is of a filter that was deleted since, and the Mirror's own Add has
// made the next one. Nothing of the part stays, and the refresh reads again.
func TestMirrorColdStartOfAFilterThatGoes(t *testing.T) {
	s := upstashtest.NewServer(t)
	mustAdd(t, handle(t, s.Client(), roomy()), "old")
	held, through := holdReply(t, 1)
	m, c := mirror(t, handle(t, s.Client(through), roomy()), bloom.MirrorConfig{MaxStale: time.Hour})
	whileHeld(held, refreshes(t, m), func() {
		c.pass(time.Second)
		do(t, s, "DEL", key)
		wantNew(t, m, "new")
		c.pass(time.Second)
	})
	wantLookUp(t, s, m, "new", present, fromCopy)
	wantLookUp(t, s, m, "old", absent, fromCopy)
}

// If a filter is deleted between the count and the parts, it counts as missing.
func TestMirrorFilterThatGoesDuringARefresh(t *testing.T) {
	s := upstashtest.NewServer(t)
	for _, empty := range []bool{false, true} {
		cfg := roomy()
		cfg.MissingIsEmpty = empty
		add(t, handle(t, s.Client(), cfg), "old", true)
		c := afterCommand(s, "EVAL", 2, func() { do(t, s, "DEL", key) })
		m, _ := mirror(t, handle(t, c, cfg), bloom.MirrorConfig{MaxStale: time.Hour})
		noError(t, m.Refresh(t.Context()))
		add(t, handle(t, s.Client(), cfg), "more", true)
		if err := m.Refresh(t.Context()); errors.Is(err, bloom.ErrNotFound) == empty {
			t.Errorf("Refresh: %v, and MissingIsEmpty is %v", err, empty)
		}
		if empty {
			wantLookUp(t, s, m, "old", absent, fromCopy)
		}
	}
}

// An Add is sent before a refresh finds no filter, and makes the filter after
// it. The item enters the copy.
func TestMirrorAddThatMakesAMissingFilter(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg := roomy()
	cfg.MissingIsEmpty = true
	w := bloomtest.NewWire(t)
	held := w.Hold("", false)
	m, c := mirror(t, handle(t, s.Client(upstash.WithTransport(w)), cfg), bloom.MirrorConfig{MaxStale: time.Hour})
	whileHeld(held, func() { wantNew(t, m, "new") }, func() {
		c.pass(time.Second)
		wantLookUp(t, s, m, "new", absent, inOneRequest)
	})
	wantLookUp(t, s, m, "new", present, fromCopy)
	wantLookUp(t, s, m, "x", absent, inOneRequest)
}

// The copy learns nothing from a region whose filter was deleted since.
func TestMirrorLearnsNothingFromARegionsPast(t *testing.T) {
	s, writer, near := nearAStuckRegion(t, true, upstash.WithoutSyncToken())
	noError(t, errorOf(writer.Delete(t.Context())))
	mustAdd(t, writer, "b")
	m, _ := mirror(t, near, bloom.MirrorConfig{})
	wantLookUp(t, s, m, "b", present, inOneRequest) // the primary answers, a proof of the new filter
	have := m.Stats().SetBits
	wantLookUp(t, s, m, "a", present, inOneRequest) // the handle takes the region's yes
	if n := m.Stats().SetBits; n != have {
		t.Errorf("%d bits in the copy, %d before a region spoke of the past", n, have)
	}
	wantLookUp(t, s, m, "b", present, fromCopy)
}

// slowly makes a client whose attempts take d each.
func slowly(s *upstashtest.Server, d time.Duration) *upstash.Client {
	return s.Client(upstash.WithObserver(func(context.Context, upstash.Event) { time.Sleep(d) }))
}

// A refresh serves all earlier calls, even if it takes longer than MaxStale.
func TestMirrorRefreshThatTakesLongerThanMaxStale(t *testing.T) {
	s := upstashtest.NewServer(t)
	mustAdd(t, handle(t, s.Client(), roomy()), "a")
	for name, call := range map[string]func(t *testing.T, m *bloom.Mirror){
		"Exists": func(t *testing.T, m *bloom.Mirror) { exists(t, m, "x", false); exists(t, m, "a", true) },
		"ExistsAll": func(t *testing.T, m *bloom.Mirror) {
			if got, err := m.ExistsAll(t.Context(), []string{"x", "a"}); err != nil || got[0] || !got[1] {
				t.Errorf("ExistsAll(x, a) = %v, %v", got, err)
			}
		},
		"Refresh": func(t *testing.T, m *bloom.Mirror) { wantError(t, m.Refresh(t.Context()), nil) },
	} {
		for pause, most := range map[time.Duration]int64{0: 3, 20 * time.Millisecond: 4} {
			synctest.Test(t, func(t *testing.T) {
				const slow = 300 * time.Millisecond
				f := handle(t, slowly(s, slow), roomy())
				m := newMirror(t, f, bloom.MirrorConfig{MaxStale: 50 * time.Millisecond})
				s.ResetStats()
				start := time.Now()
				var callers sync.WaitGroup
				for range 20 {
					callers.Go(func() { call(t, m) })
					time.Sleep(pause)
				}
				callers.Wait()
				if n := s.Stats().Requests; n > most {
					t.Errorf("%s: 20 callers %v apart sent %d requests, want %d at most",
						name, pause, n, most)
				}
				if took := time.Since(start); took > 4*slow+20*pause {
					t.Errorf("%s: the slowest of callers %v apart took %v", name, pause, took)
				}
			})
		}
	}
}

// If a refresh that began after the call fails, all waiting callers get its
// error.
func TestMirrorRefreshFailsOnceForAllCallers(t *testing.T) {
	s := upstashtest.NewServer(t)
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(t, handle(t, slowly(s, time.Second), roomy()), bloom.MirrorConfig{})
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				wantError(t, m.Refresh(t.Context()), bloom.ErrNotFound)
			})
		}
		callers.Wait()
		if st := m.Stats(); st.Failures > 2 {
			t.Errorf("%d refreshes, want 2 at most", st.Failures)
		}
	})
}

// If the copy is too old, the primary answers. A stuck region cannot keep the
// promise of MaxStale.
func TestMirrorAsksThePrimaryAfterARefusedRefresh(t *testing.T) {
	for _, reads := range []bool{false, true} {
		s, writer, near := nearAStuckRegion(t, reads, upstash.WithoutSyncToken())
		mustAdd(t, writer, "b")
		s.DenyFunc(func(command []string) bool { return strings.HasPrefix(command[0], "EVAL") })
		m, c := mirror(t, near, bloom.MirrorConfig{MaxStale: 50 * time.Millisecond})
		for range 3 {
			exists(t, m, "a", present)
			for _, pause := range []time.Duration{0, 200 * time.Millisecond} { // soon after a proof, too
				c.pass(pause)
				got, err := m.ExistsAll(t.Context(), []string{"b", "x"})
				if err != nil || !got[0] || got[1] {
					t.Errorf("%v: ExistsAll(b, x) is %v, %v", reads, got, err)
				}
			}
		}
	}
}

// Only an answer sets bits in the copy.
func TestMirrorAddOfUnknownOutcomeLeavesNoTrace(t *testing.T) {
	for _, when := range []upstashtest.When{upstashtest.BeforeExec, upstashtest.AfterExec} {
		s, _, m, _ := mirrored(t, bloom.MirrorConfig{}, upstash.WithRetry(0))
		s.Inject(upstashtest.Drop(when), upstashtest.Drop(when))
		if _, err := m.Add(t.Context(), "b"); err == nil {
			t.Fatal("an Add without an answer is no error")
		}
		if _, err := m.AddAll(t.Context(), []string{"b", "c"}); err == nil {
			t.Fatal("an AddAll without an answer is no error")
		}
		if n := m.Stats().SetBits; n != 0 {
			t.Errorf("%v: %d bits in the copy", when, n)
		}
		wantLookUp(t, s, m, "b", bool(when), inOneRequest)
	}
}

// Whichever fault strikes whichever request of a look-up, an added item is
// found or the call returns an error.
func TestMirrorFailureIsNeverANo(t *testing.T) {
	faults := immediateFaults()
	if testenv.Long() {
		faults = upstashtest.EveryFault() // with those that make a client wait
	}
	for _, fault := range faults {
		for hit := range int64(3) {
			s := upstashtest.NewServer(t)
			c := s.Client(upstash.WithRetry(0), upstash.WithTimeout(50*time.Millisecond))
			mustAdd(t, handle(t, s.Client(), roomy()), "a", "b")
			m, clock := mirror(t, handle(t, c, roomy()), bloom.MirrorConfig{MaxStale: time.Minute})
			look := func(when string) {
				t.Helper()
				strikeAt(s, hit+1, fault)
				for range 2 {
					// The scripts of a refresh have seconds, but a stalled one
					// ends with its caller.
					ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
					if found, err := m.Exists(ctx, "a"); !found && err == nil {
						t.Errorf("%v at request %d, %s: a false no", fault, hit, when)
					}
					got, err := m.ExistsAll(ctx, []string{"b", "a"})
					cancel()
					if err == nil && !(got[0] && got[1]) {
						t.Errorf("%v at request %d, %s: false noes: %v", fault, hit, when, got)
					}
					clock.pass(2 * time.Second) // past the pause after a failure
				}
			}
			look("cold")
			clock.pass(time.Hour)
			look("an hour later")
		}
	}
}

// While every refresh fails, each call asks the server, and a refresh is tried
// once a second, or after MaxStale if that is shorter.
func TestMirrorWithoutRefresh(t *testing.T) {
	s, _, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: time.Millisecond})
	s.DenyFunc(func(command []string) bool { return command[0] == "EVAL" })
	wantLookUp(t, s, m, "x", absent, inTwoRequests)
	c.pass(2 * time.Millisecond)
	wantLookUp(t, s, m, "x", absent, inTwoRequests)

	s, _, m, c = mirrored(t, bloom.MirrorConfig{MaxStale: time.Minute})
	s.DenyFunc(func(command []string) bool { return command[0] == "EVAL" })
	wantLookUp(t, s, m, "x", absent, inTwoRequests)
	wantLookUp(t, s, m, "x", absent, inOneRequest)
	wantLookUp(t, s, m, "a", present, inOneRequest)
	wantLookUp(t, s, m, "a", present, fromCopy)
	c.pass(time.Second + 1)
	wantLookUp(t, s, m, "x", absent, inTwoRequests)
	if err := m.Refresh(t.Context()); err == nil {
		t.Error("Refresh = nil, want its failure")
	}
	if st := m.Stats(); st.Copied || st.Failures != 3 || st.Refreshes != 0 {
		t.Errorf("%+v, want 3 failures and no refresh", st)
	}
	s.DenyFunc(nil)
	c.pass(time.Second + 1)
	wantLookUp(t, s, m, "x", absent, inOneRequest) // it has learned "a", so the copy is complete
	wantLookUp(t, s, m, "x", absent, fromCopy)
}

// The caller that refreshes may give up. Those who wait for it go on.
func TestMirrorRefreshOfACallerWhoGivesUp(t *testing.T) {
	cfg := bloom.MirrorConfig{MaxStale: time.Minute}
	wired(t, cfg, func(t *testing.T, _ *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror) {
		refresh := w.Hold("EVAL", true)
		leader, giveUp := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		calls.Go(func() { wantError(t, errorOf(m.Exists(leader, "x")), context.Canceled) })
		<-refresh.Here
		for range 5 {
			calls.Go(func() { exists(t, m, "x", absent) })
		}
		ended, end := context.WithCancel(t.Context())
		end()
		err := m.Refresh(ended)
		if want := "bloom: the Mirror waited for a refresh: context canceled"; !errors.Is(err, context.Canceled) || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
		giveUp()
		calls.Wait()
		if st := m.Stats(); !st.Copied {
			t.Errorf("%+v, want a complete copy", st)
		}
	})
}

// MaxStale holds while others add, delete the filter and make it again: an item
// of the live filter is found if its Add was acknowledged more than MaxStale
// ago.
func TestMirrorPromiseUnderWriters(t *testing.T) {
	const stale, each = time.Minute, 4 // items of each writer in a round
	s := upstashtest.NewServer(t)
	cfg := roomy()
	cfg.MissingIsEmpty = true
	f := handle(t, s.Client(), cfg)
	m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: stale})
	var acked []string // in the live filter
	checked := 0
	for round := range 100 {
		if round%25 == 24 {
			noError(t, errorOf(f.Delete(t.Context())))
			acked = nil
		}
		var writers sync.WaitGroup
		items := numbered(fmt.Sprint("round ", round), 2*each)
		for i, write := range []func(context.Context, string) (bool, error){f.Add, m.AddThrough} {
			writers.Go(func() {
				for _, item := range items[i*each : (i+1)*each] {
					if _, err := write(t.Context(), item); err != nil {
						t.Error(err)
					}
				}
			})
		}
		// Those of the last four rounds were added no more than MaxStale ago.
		if old := len(acked) - 4*2*each; old > 0 {
			checked++
			exists(t, m, acked[rand.IntN(old)], true)
		}
		exists(t, m, fmt.Sprint("absent ", round), false)
		writers.Wait()
		acked = append(acked, items...)
		c.pass(stale / 4)
	}
	if st := m.Stats(); checked == 0 || st.Hits == 0 || st.Refreshes < 2 {
		t.Errorf("the test showed nothing: %d items, %+v", checked, st)
	}
}

// Without a birth number a filter cannot be told from its successor. The copy
// is never believed.
func TestMirrorOfAFilterWithoutABirthNumber(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), roomy())
	mustAdd(t, f, "a")
	do(t, s, "BITFIELD", key, "SET", "u53", "64", "0")
	m, _ := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Minute})
	wantLookUp(t, s, m, "a", present, inTwoRequests)
	wantLookUp(t, s, m, "a", present, inOneRequest)
	wantLookUp(t, s, m, "x", absent, inOneRequest)
	wantError(t, m.Refresh(t.Context()), bloom.ErrNotFilter)
	// An Add gives the filter a birth number.
	add(t, m, "b", true)
	wantLookUp(t, s, m, "b", present, fromCopy)
	// A whole copy is dropped by such a filter.
	noError(t, m.Refresh(t.Context()))
	do(t, s, "BITFIELD", key, "SET", "u53", "64", "0")
	wantError(t, m.Refresh(t.Context()), bloom.ErrNotFilter)
	wantLookUp(t, s, m, "x", absent, inOneRequest)
}

// limited keeps the longest time that an attempt had.
type limited struct {
	upstash.Transport
	mu      sync.Mutex
	longest time.Duration
}

func (l *limited) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	deadline, _ := ctx.Deadline()
	l.mu.Lock()
	l.longest = max(l.longest, time.Until(deadline))
	l.mu.Unlock()
	return l.Transport.RoundTrip(ctx, req, resp)
}

// The answers that come during a download are in the new copy too.
func TestMirrorKeepsWhatItLearnsDuringADownload(t *testing.T) {
	h, through := holdReply(t, 5) // the part's, after those to two Adds, a refresh and the count
	s, f, m, _ := mirrored(t, bloom.MirrorConfig{MaxStale: time.Minute}, through)
	noError(t, m.Refresh(t.Context()))
	mustAdd(t, f, "b")
	whileHeld(h, refreshes(t, m), func() { wantNew(t, m, "own") })
	wantLookUp(t, s, m, "own", present, fromCopy)
	wantLookUp(t, s, m, "a", present, fromCopy)
}

// An answer that was on its way when a download began is in the new copy, which is
// then as old as that question.
func TestMirrorLearnsALateAnswerDuringADownload(t *testing.T) {
	w := bloomtest.NewWire(t)
	own, part := w.HoldReply(4), w.HoldReply(6) // the replies to two Adds, a refresh and the count come at once
	s, f, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: time.Minute}, upstash.WithTransport(w))
	noError(t, m.Refresh(t.Context()))
	mustAdd(t, f, "b")
	var adding sync.WaitGroup
	adding.Go(func() { wantNew(t, m, "own") })
	<-own.Here
	c.pass(time.Minute)
	whileHeld(part, refreshes(t, m), func() {
		own.Free <- nil
		adding.Wait()
	})
	c.pass(59*time.Minute + 1) // an hour after the question
	wantLookUp(t, s, m, "own", present, inTwoRequests)
}

// Once the proof is older than a minute, one request proves for all callers.
func TestMirrorProvesOnceForAllCallers(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, m *bloom.Mirror) (known bool, err error){
		"Exists": func(ctx context.Context, m *bloom.Mirror) (bool, error) { return m.Exists(ctx, "a") },
		"ExistsAll": func(ctx context.Context, m *bloom.Mirror) (bool, error) {
			found, err := m.ExistsAll(ctx, []string{"a"})
			return count(found) == 1, err
		},
		"Add": func(ctx context.Context, m *bloom.Mirror) (bool, error) {
			added, err := m.Add(ctx, "a")
			return !added, err
		},
		"AddAll": func(ctx context.Context, m *bloom.Mirror) (bool, error) {
			added, err := m.AddAll(ctx, []string{"a"})
			return len(added) == 1 && !added[0], err
		},
	} {
		wired(t, bloom.MirrorConfig{}, func(t *testing.T, s *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror) {
			exists(t, m, "a", present)
			time.Sleep(time.Minute + 1)
			crowd(t, s, w.Hold("BITFIELD", true), nil, 1, func() {
				if known, err := call(t.Context(), m); !known || err != nil {
					t.Errorf("%s: known %t, %v", name, known, err)
				}
			})
		})
	}
}
