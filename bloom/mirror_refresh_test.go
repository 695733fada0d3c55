package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// With MaxStale the copy also answers "no", until it is too old.
func TestMirrorMaxStale(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		const stale = 10 * time.Second
		f := handle(t, s.Client(), roomy()) // 128 KiB: one part
		mustAdd(t, f, "a")
		m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: stale, MaxTrust: time.Hour})
		wantLookUp(t, s, m, "x", absent, inTwoRequests) // the count, and one part
		wantLookUp(t, s, m, "x", absent, fromCopy)
		wantLookUp(t, s, m, "a", present, fromCopy)
		mustAdd(t, f, "b")
		c.pass(stale)
		wantLookUp(t, s, m, "b", absent, fromCopy) // added no more than MaxStale ago
		c.pass(1)
		wantLookUp(t, s, m, "b", present, inTwoRequests)
		c.pass(stale + 1)
		wantLookUp(t, s, m, "x", absent, inOneRequest) // nothing changed, so only the count
		c.pass(-1)                                     // the clock is set back: too old
		wantLookUp(t, s, m, "x", absent, inOneRequest)
		c.freeze(50 * time.Minute)
		wantLookUp(t, s, m, "x", absent, inOneRequest)
		c.freeze(5 * time.Hour)
		wantLookUp(t, s, m, "a", present, inTwoRequests) // past MaxCopy: a download
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
// MaxStale on, and from the seventh if somebody adds in each: its doc says so.
func TestMirrorPaysFromTheFourthLookUp(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		const stale = 10 * time.Second
		f := handle(t, s.Client(), roomy())
		mustAdd(t, f, "a")
		m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: stale, MaxTrust: time.Hour})
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
		m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: stale, MaxTrust: time.Hour})
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
		wantLookUp(t, s, m, "x", absent, inTwoRequests)
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
	wantLookUp(t, s, m, "b", present, inTwoRequests)
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
	wantRequests(t, s, 3)
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
	_, _, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: time.Minute})
	refreshed := false
	m.SetClock(func() time.Time {
		var pc [1]uintptr
		runtime.Callers(2, pc[:])
		frame, _ := runtime.CallersFrames(pc[:]).Next()
		// It reads the clock after it looked, and before it begins a refresh.
		if !refreshed && strings.HasSuffix(frame.Function, ".refreshIfStale") {
			refreshed = true
			if err := m.Refresh(t.Context()); err != nil {
				t.Error(err)
			}
		}
		return c.Now()
	})
	if found, err := m.Exists(t.Context(), "a"); !found || err != nil {
		t.Error(found, err)
	}
	if st := m.Stats(); !refreshed || st.Refreshes != 1 {
		t.Errorf("%+v, want 1 refresh", st)
	}
	// The next refresh can begin.
	if err := m.Refresh(t.Context()); err != nil || m.Stats().Refreshes != 2 {
		t.Errorf("%v: %+v, want 2 refreshes", err, m.Stats())
	}
}

// All calls that find the copy too old wait for one refresh.
func TestMirrorRefreshesOnceForAllCallers(t *testing.T) {
	s, _, m, _ := mirrored(t, bloom.MirrorConfig{MaxStale: time.Minute})
	s.ResetStats()
	var callers sync.WaitGroup
	for i := range 50 {
		callers.Go(func() {
			if found, err := m.Exists(t.Context(), fmt.Sprint("x", i)); found || err != nil {
				t.Error(found, err)
			}
			exists(t, m, "a", true)
		})
	}
	callers.Wait()
	wantRequests(t, s, 2)
	if st := m.Stats(); st.Hits != 100 || st.Saved < 50 || st.Asked != 0 || st.Refreshes != 1 {
		t.Errorf("%+v, want 100 hits, half of them saved, and 1 refresh", st)
	}
}

// A heldReply is a transport that holds back one request, or its reply.
type heldReply struct {
	upstash.Transport
	left    atomic.Int64
	unsent  bool          // hold the request, not its reply
	here    chan struct{} // closed when it is held
	release chan struct{} // close it to let it go on
}

// holdReply holds back the n-th reply.
func holdReply(n int64) *heldReply {
	h := &heldReply{here: make(chan struct{}), release: make(chan struct{})}
	h.left.Store(n)
	return h
}

func (h *heldReply) client(t *testing.T, s *upstashtest.Server) *upstash.Client {
	return s.Client(h.through(t))
}

// through has a client's requests go through h.
func (h *heldReply) through(t *testing.T) upstash.Option {
	h.Transport = overHTTP(t)
	return upstash.WithTransport(h)
}

func (h *heldReply) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	hold := h.left.Add(-1) == 0
	if hold && h.unsent {
		close(h.here)
		<-h.release
	}
	err := h.Transport.RoundTrip(ctx, req, resp)
	if hold && !h.unsent {
		close(h.here)
		<-h.release
	}
	return err
}

// The age of a copy counts from the start of its refresh, however long that
// takes.
func TestMirrorAgeCountsFromTheStart(t *testing.T) {
	s, _, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: time.Hour})
	during(s, 2, func() { c.pass(time.Minute) })
	wantLookUp(t, s, m, "x", absent, inTwoRequests)
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
	do(t, s, "COPY", key, "backup")
	mustAdd(t, f, "b", "c")
	during(s, 2, func() { _, _ = s.Exec("COPY", "backup", key, "REPLACE") })
	if err := m.Refresh(t.Context()); err == nil {
		t.Error("a refresh with too few bits is no error")
	}
	if m.Stats().Copied {
		t.Error("the copy counts as whole")
	}
}

// A caller whose context ends does not wait for the refresh of another. That one
// goes on.
func TestMirrorRefreshIsNotWaitedForForEver(t *testing.T) {
	held := holdReply(2) // the count's, after the Add's
	_, _, m, _ := mirrored(t, bloom.MirrorConfig{MaxStale: time.Hour}, held.through(t))
	var refresh sync.WaitGroup
	refresh.Go(func() { wantError(t, m.Refresh(t.Context()), nil) })
	<-held.here
	gone := errors.New("the caller is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := m.Refresh(ctx); !errors.Is(err, gone) {
		t.Errorf("Refresh: %v, want %v", err, gone)
	}
	close(held.release)
	refresh.Wait()
	if n := m.Stats().Refreshes; n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}
}

// A part of a deleted filter arrives when the copy is already of the next
// filter. Its bits do not enter the copy.
func TestMirrorKeepsTwoFiltersApart(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), roomy())
	mustAdd(t, f, numbered("old", 100)...)
	held := holdReply(2) // the part's, after the count's
	m, _ := mirror(t, handle(t, held.client(t, s), roomy()), bloom.MirrorConfig{MaxStale: time.Hour})
	var refresh sync.WaitGroup
	refresh.Go(func() { wantError(t, m.Refresh(t.Context()), bloom.ErrRecreated) })
	<-held.here
	do(t, s, "DEL", key)
	wantNew(t, m, "new")
	close(held.release)
	refresh.Wait()
	if n := m.Stats().SetBits; n > 8 {
		t.Errorf("%d bits in the copy of a filter with one item, want at most 8", n)
	}
	wantLookUp(t, s, m, "old-1", absent, inOneRequest) // the count says that the copy is complete
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
		held := holdReply(1)
		m, c := mirror(t, handle(t, held.client(t, s), cfg), bloom.MirrorConfig{MaxStale: time.Hour})
		var refresh sync.WaitGroup
		refresh.Go(func() { wantError(t, m.Refresh(t.Context()), nil) }) // it sees the new filter
		<-held.here
		c.pass(later)
		wantNew(t, m, "new")
		close(held.release)
		refresh.Wait()
		if !m.Stats().Copied {
			t.Error("the copy does not count as whole")
		}
		wantLookUp(t, s, m, "new", present, fromCopy)
	}
}

// If a filter is deleted between the count and the parts, it counts as missing.
func TestMirrorFilterThatGoesDuringARefresh(t *testing.T) {
	s := upstashtest.NewServer(t)
	for _, empty := range []bool{false, true} {
		cfg := roomy()
		cfg.MissingIsEmpty = empty
		add(t, handle(t, s.Client(), cfg), "old", true)
		c := afterCommand(s, "EVAL", 1, func() { do(t, s, "DEL", key) })
		m, _ := mirror(t, handle(t, c, cfg), bloom.MirrorConfig{MaxStale: time.Hour})
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
	held := holdReply(1)
	held.unsent = true
	m, c := mirror(t, handle(t, held.client(t, s), cfg), bloom.MirrorConfig{MaxStale: time.Hour})
	var adding sync.WaitGroup
	adding.Go(func() { wantNew(t, m, "new") })
	<-held.here
	c.pass(time.Second)
	wantLookUp(t, s, m, "new", absent, inOneRequest)
	close(held.release)
	adding.Wait()
	wantLookUp(t, s, m, "new", present, fromCopy)
	wantLookUp(t, s, m, "x", absent, inOneRequest)
}

// The copy learns nothing from a region whose filter was deleted since.
func TestMirrorLearnsNothingFromARegionsPast(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithRegions(upstashtest.Region{Name: "far", Lag: math.MaxInt}))
	writer := handle(t, s.Client(), roomy())
	mustAdd(t, writer, "a")
	s.CatchUp()
	noError(t, errorOf(writer.Delete(t.Context())))
	mustAdd(t, writer, "b")
	cfg := roomy()
	cfg.Reads = bloom.ReadsNearestFirst
	c := s.RegionClient("far", upstash.WithoutSyncToken())
	m, _ := mirror(t, handle(t, c, cfg), bloom.MirrorConfig{MaxTrust: time.Hour})
	wantLookUp(t, s, m, "b", present, inOneRequest) // the primary answers, a proof of the new filter
	have := m.Stats().SetBits
	wantLookUp(t, s, m, "a", present, inOneRequest) // the handle takes the region's yes
	if n := m.Stats().SetBits; n != have {
		t.Errorf("%d bits in the copy, %d before a region spoke of the past", n, have)
	}
	s.CatchUp()
	wantLookUp(t, s, m, "a", absent, inTwoRequests) // the region's no, and the primary's
}

// A server without RESP2 sends base64.
func TestMirrorWithoutRESP2(t *testing.T) {
	s, f, m, _ := mirrored(t, bloom.MirrorConfig{MaxStale: time.Hour}, upstash.WithTransport(noRESP2{overHTTP(t)}))
	wantLookUp(t, s, m, "x", absent, inTwoRequests)
	wantLookUp(t, s, m, "a", present, fromCopy)
	if got, want := m.Stats().SetBits, stats(t, f).SetBits; got != want {
		t.Errorf("the copy has %d bits set, the filter %d", got, want)
	}
}
