package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

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
// once a second.
func TestMirrorWithoutRefresh(t *testing.T) {
	s, _, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: time.Minute})
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
	s, _, m, _ := mirrored(t, bloom.MirrorConfig{MaxStale: time.Minute})
	s.Inject(upstashtest.Stall(upstashtest.AfterExec))
	leader, giveUp := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	calls.Go(func() {
		wantError(t, errorOf(m.Exists(leader, "x")), context.Canceled)
	})
	for s.Stats().Requests < 2 { // the AddAll's, and the one that stalls
		time.Sleep(time.Millisecond)
	}
	for range 5 {
		calls.Go(func() {
			exists(t, m, "x", false)
		})
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
}

// A lagging region neither makes a copy look complete nor proves that a filter
// is still there.
func TestMirrorNearALaggingRegion(t *testing.T) {
	for _, reads := range []bloom.Reads{bloom.ReadsPrimary, bloom.ReadsNearest, bloom.ReadsNearestFirst} {
		for name, opts := range map[string][]upstash.Option{
			"sync tokens": nil, "none": {upstash.WithoutSyncToken()},
		} {
			t.Run(fmt.Sprintf("reads=%v/tokens=%s", reads, name), func(t *testing.T) {
				far := upstashtest.Region{Name: "far", Lag: math.MaxInt}
				s := upstashtest.NewServer(t, upstashtest.WithRegions(far))
				writer := handle(t, s.Client(), roomy())
				mustAdd(t, writer, "a")
				s.CatchUp()
				mustAdd(t, writer, "b")

				cfg := roomy()
				cfg.Reads = reads
				f := handle(t, s.RegionClient("far", opts...), cfg)
				m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Second, MaxTrust: time.Hour})
				wantLookUp(t, s, m, "b", present, inTwoRequests)
				wantLookUp(t, s, m, "a", present, fromCopy)

				// The region has the old filter while the primary already has
				// another.
				noError(t, errorOf(writer.Delete(t.Context())))
				mustAdd(t, writer, "c")
				c.pass(2 * time.Second)
				wantLookUp(t, s, m, "c", present, inTwoRequests)
				wantLookUp(t, s, m, "a", absent, fromCopy)

				// Without MaxStale, proofs also come from the primary.
				d, c := mirror(t, f, bloom.MirrorConfig{})
				wantLookUp(t, s, d, "c", present, inOneRequest)
				wantLookUp(t, s, d, "c", present, fromCopy)
				c.pass(time.Hour)
				wantLookUp(t, s, d, "c", present, inOneRequest)
				wantLookUp(t, s, d, "c", present, fromCopy)
			})
		}
	}
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
	m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: stale, MaxTrust: stale})
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

// The part of a short string has no time of its own.
func TestMirrorPartsOfAShortString(t *testing.T) {
	limits := &limited{Transport: overHTTP(t)}
	_, _, m, _ := mirrored(t, bloom.MirrorConfig{MaxStale: time.Minute},
		upstash.WithTransport(limits), upstash.WithTimeout(5*time.Second))
	if err := m.Refresh(t.Context()); err != nil || limits.longest == 0 || limits.longest > 5*time.Second {
		t.Errorf("%v; an attempt has %v, want 5s at most", err, limits.longest)
	}
}

// A database that comes back without an acknowledged write has the same birth
// number, and after another Add the same count. The copy believes that for
// MaxCopy, and not without end.
func TestMirrorAfterLostWrites(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), roomy())
		mustAdd(t, f, "a")
		do(t, s, "COPY", key, "backup")
		mustAdd(t, f, "lost")
		m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Minute, MaxCopy: 10 * time.Minute})
		wantLookUp(t, s, m, "lost", present, inTwoRequests)

		do(t, s, "COPY", "backup", key, "REPLACE")
		mustAdd(t, f, "later") // as many bits as "lost" had
		c.pass(2 * time.Minute)
		wantLookUp(t, s, m, "later", absent, inOneRequest) // the counts are equal

		c.pass(8*time.Minute + 1)
		wantLookUp(t, s, m, "later", present, inTwoRequests)
		wantLookUp(t, s, m, "lost", absent, fromCopy)
	})
}

// Without MaxStale the copy never downloads. A "seen" of a lost write ends too.
func TestMirrorForgetsAfterMaxCopy(t *testing.T) {
	s, f, m, c := mirrored(t, bloom.MirrorConfig{MaxTrust: time.Hour, MaxCopy: 10 * time.Minute})
	do(t, s, "COPY", key, "backup")
	mustAdd(t, f, "lost")
	wantLookUp(t, s, m, "lost", present, inOneRequest)
	do(t, s, "COPY", "backup", key, "REPLACE")
	c.pass(10 * time.Minute)
	wantLookUp(t, s, m, "lost", present, fromCopy)
	c.pass(1)
	wantLookUp(t, s, m, "lost", absent, inOneRequest)
	wantLookUp(t, s, m, "lost", absent, inOneRequest)
}

// COPY keeps the birth number: two filters of one number stand at the key, one
// after the other. What a download brings is the filter that is there.
func TestMirrorOfACopiedFilter(t *testing.T) {
	s, f, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: time.Minute})
	do(t, s, "COPY", key, "other")
	mustAdd(t, f, "old")
	wantLookUp(t, s, m, "old", present, inTwoRequests)

	other := handleAt(t, s.Client(), "other", roomy())
	mustAdd(t, other, "new-1", "new-2")
	do(t, s, "RENAME", "other", key)
	c.pass(time.Minute + 1)
	wantLookUp(t, s, m, "new-1", present, inTwoRequests)
	wantLookUp(t, s, m, "old", absent, fromCopy)
}

// The answers that come during a download are in the new copy too.
func TestMirrorKeepsWhatItLearnsDuringADownload(t *testing.T) {
	h := holdReply(3) // the part's, after the Add's and the count's
	s, _, m, _ := mirrored(t, bloom.MirrorConfig{MaxStale: time.Minute}, h.through(t))
	refreshed := make(chan error)
	go func() { refreshed <- m.Refresh(t.Context()) }()
	<-h.here
	wantNew(t, m, "own")
	close(h.release)
	noError(t, <-refreshed)
	wantLookUp(t, s, m, "own", present, fromCopy)
	wantLookUp(t, s, m, "a", present, fromCopy)
}

// Once the proof is older than MaxTrust, one request proves for all callers.
func TestMirrorProvesOnceForAllCallers(t *testing.T) {
	for name, call := range map[string]func(m *bloom.Mirror) (known bool, err error){
		"Exists": func(m *bloom.Mirror) (bool, error) { return m.Exists(t.Context(), "a") },
		"ExistsAll": func(m *bloom.Mirror) (bool, error) {
			found, err := m.ExistsAll(t.Context(), []string{"a"})
			return count(found) == 1, err
		},
		"Add": func(m *bloom.Mirror) (bool, error) {
			added, err := m.Add(t.Context(), "a")
			return !added, err
		},
		"AddAll": func(m *bloom.Mirror) (bool, error) {
			added, err := m.AddAll(t.Context(), []string{"a"})
			return len(added) == 1 && !added[0], err
		},
	} {
		h := holdReply(3) // after the Add's and the look-up's
		s, _, m, c := mirrored(t, bloom.MirrorConfig{}, h.through(t))
		wantLookUp(t, s, m, "a", present, inOneRequest)
		c.pass(time.Minute + 1)
		before := s.Stats().Requests
		var callers sync.WaitGroup
		ask := func() {
			if known, err := call(m); !known || err != nil {
				t.Errorf("%s: known %t, %v", name, known, err)
			}
		}
		callers.Go(ask)
		<-h.here
		for range 29 {
			callers.Go(ask)
		}
		close(h.release)
		callers.Wait()
		if n := s.Stats().Requests - before; n != 1 {
			t.Errorf("%s: %d requests of thirty callers, want 1", name, n)
		}
	}
}

// In an outage the copy answers for StaleIfError beyond its limits, and one call
// a second asks.
func TestMirrorStaleIfError(t *testing.T) {
	var labels []string
	s, f, m, c := mirrored(t, bloom.MirrorConfig{
		MaxStale: 10 * time.Second, MaxTrust: 10 * time.Second, MaxCopy: 10 * time.Second, StaleIfError: time.Minute,
	}, upstash.WithRetry(0), upstash.WithObserver(func(_ context.Context, e upstash.Event) {
		labels = append(labels, e.Label)
	}))
	wantLookUp(t, s, m, "a", present, inTwoRequests)
	bloomtest.StrikeAll(s, notSent)
	c.pass(10*time.Second + 1)
	began := c.Now()
	wantLookUp(t, s, m, "x", absent, inOneRequest) // the refresh that fails
	if since := m.Stats().StaleSince; !since.Equal(began) {
		t.Errorf("stale since %v, want %v", since, began)
	}
	wantLookUp(t, s, m, "a", present, fromCopy)
	found, err := m.ExistsAll(t.Context(), []string{"a", "x"})
	if err != nil || !found[0] || found[1] {
		t.Errorf("ExistsAll in an outage: %v, %v, want [true false]", found, err)
	}
	c.pass(time.Second + 1)
	labels = nil
	wantLookUp(t, s, m, "a", present, inOneRequest)
	if len(labels) == 0 || !strings.Contains(labels[0], "stale since "+began.UTC().Format(time.RFC3339)) {
		t.Errorf("labels %q, want since when the copy is stale", labels)
	}

	c.pass(59 * time.Second) // past the sum of the limits
	for _, item := range []string{"a", "x"} {
		if _, err := m.Exists(t.Context(), item); err == nil {
			t.Errorf("Exists(%s) of a copy that is too old: no error", item)
		}
	}
	s.InjectFunc(nil)
	mustAdd(t, f, "x")
	c.pass(time.Second + 1)
	wantLookUp(t, s, m, "x", present, inTwoRequests)
	if since := m.Stats().StaleSince; !since.IsZero() {
		t.Errorf("stale since %v, want not at all", since)
	}
}

// While one call waits for a server that does not answer, the others do not.
func TestMirrorStaleIfErrorAsksOnce(t *testing.T) {
	s, _, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: time.Second, StaleIfError: time.Hour},
		upstash.WithRetry(0), upstash.WithTimeout(time.Hour))
	wantLookUp(t, s, m, "a", present, inTwoRequests)
	asked, answer := make(chan bool), make(chan bool)
	s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		asked <- true
		<-answer
		return notSent
	})
	answered := make(chan bool)
	lookUp := func() {
		exists(t, m, "x", false)
		answered <- true
	}
	for range 2 { // the first learns of the outage, the second asks if it is over
		c.pass(2 * time.Second)
		go lookUp()
		<-asked
		if m.Stats().StaleSince.IsZero() {
			answer <- false
			<-answered
		}
	}
	c.pass(10 * time.Second)
	wantLookUp(t, s, m, "x", absent, fromCopy)
	answer <- false
	<-answered
	s.InjectFunc(nil)
	c.pass(2 * time.Second)
	wantLookUp(t, s, m, "x", absent, inOneRequest)
}

// The time that a call waits for an answer counts: it may take the copy past the
// sum of the limits.
func TestMirrorStaleIfErrorCountsTheWait(t *testing.T) {
	s, _, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: time.Second, StaleIfError: 10 * time.Second},
		upstash.WithRetry(0))
	wantLookUp(t, s, m, "x", absent, inTwoRequests)
	wait := 5 * time.Second
	s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		c.pass(wait)
		return notSent
	})
	c.pass(2 * time.Second)
	wantLookUp(t, s, m, "x", absent, inOneRequest)
	wait = time.Minute
	c.pass(2 * time.Second)
	if found, err := m.Exists(t.Context(), "x"); err == nil {
		t.Errorf("Exists is %t a minute beyond the limits, want an error", found)
	}
}

// A Redis that still loads its data says nothing of the filter, nor does an answer
// that is cut short.
func TestMirrorStaleIfErrorWhileRedisLoads(t *testing.T) {
	for _, fault := range []upstashtest.Fault{
		upstashtest.CommandError("LOADING Redis is loading the dataset in memory"), upstashtest.ShortResult(),
	} {
		s, _, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: time.Second, StaleIfError: time.Hour}, upstash.WithRetry(0))
		wantLookUp(t, s, m, "x", absent, inTwoRequests)
		bloomtest.StrikeAll(s, fault)
		c.pass(time.Minute)
		wantLookUp(t, s, m, "x", absent, inOneRequest)
		if m.Stats().StaleSince.IsZero() {
			t.Errorf("%v: the Mirror is not stale", fault)
		}
	}
}

// Without MaxStale the copy says no "no", in an outage either.
func TestMirrorStaleIfErrorWithoutMaxStale(t *testing.T) {
	s, _, m, c := mirrored(t, bloom.MirrorConfig{StaleIfError: time.Hour}, upstash.WithRetry(0))
	wantLookUp(t, s, m, "a", present, inOneRequest)
	bloomtest.StrikeAll(s, notSent)
	c.pass(2 * time.Minute)
	wantLookUp(t, s, m, "a", present, inOneRequest)
	if _, err := m.Exists(t.Context(), "x"); err == nil {
		t.Error("Exists of an item that is not in the copy: no error")
	}
	var batch *bloom.BatchError
	if _, err := m.ExistsAll(t.Context(), []string{"a", "x"}); !errors.As(err, &batch) {
		t.Errorf("ExistsAll with such an item: %v, want a BatchError", err)
	}
	if _, err := m.Add(t.Context(), "x"); err == nil {
		t.Error("Add in an outage: no error")
	}
}

// A filter that is gone, is another one or was made again is an answer, and so is
// a refusal.
func TestMirrorStaleIfErrorEndsWithAnAnswer(t *testing.T) {
	// afterAnOutage looks up "a", which was in the filter before the change.
	afterAnOutage := func(change func(s *upstashtest.Server)) (bool, error) {
		t.Helper()
		s, _, m, c := mirrored(t, bloom.MirrorConfig{
			MaxStale: time.Second, MaxTrust: time.Second, StaleIfError: time.Hour,
		}, upstash.WithRetry(0))
		wantLookUp(t, s, m, "a", present, inTwoRequests)
		bloomtest.StrikeAll(s, notSent)
		c.pass(time.Minute)
		wantLookUp(t, s, m, "a", present, inOneRequest)
		s.InjectFunc(nil)
		change(s)
		c.pass(2 * time.Second)
		found, err := m.Exists(t.Context(), "a")
		if since := m.Stats().StaleSince; !since.IsZero() {
			t.Errorf("stale since %v, want not at all", since)
		}
		return found, err
	}
	makeAgain := func(cfg bloom.Config, item string) func(*upstashtest.Server) {
		return func(s *upstashtest.Server) {
			do(t, s, "DEL", key)
			mustAdd(t, handle(t, s.Client(), cfg), item)
		}
	}

	_, err := afterAnOutage(func(s *upstashtest.Server) { do(t, s, "DEL", key) })
	wantError(t, err, bloom.ErrNotFound)
	_, err = afterAnOutage(makeAgain(bloom.Config{Capacity: 55, FPRate: 0.01}, "a"))
	wantMismatch(t, err)
	_, err = afterAnOutage(func(s *upstashtest.Server) { s.DenyFunc(func([]string) bool { return true }) })
	wantError(t, err, upstash.ErrNoPermission)
	if found, err := afterAnOutage(makeAgain(roomy(), "b")); found || err != nil {
		t.Errorf("Exists in a filter that was made again: %t, %v, want false", found, err)
	}
}

// MaxCopy is an hour by default. A copy that is older is downloaded again.
func TestMirrorMaxCopyIsAnHourByDefault(t *testing.T) {
	s, _, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: time.Minute})
	wantLookUp(t, s, m, "x", absent, inTwoRequests)
	c.pass(time.Hour)
	wantLookUp(t, s, m, "x", absent, inOneRequest) // the count alone
	c.pass(1)
	wantLookUp(t, s, m, "x", absent, inTwoRequests)
}
