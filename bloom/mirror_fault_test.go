package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Only an answer sets bits in the copy.
func TestMirrorAddOfUnknownOutcomeLeavesNoTrace(t *testing.T) {
	for _, when := range []upstashtest.When{upstashtest.BeforeExec, upstashtest.AfterExec} {
		s := upstashtest.NewServer(t)
		f := handle(t, once(s), roomy())
		mustAdd(t, f, "other")
		m, _ := mirror(t, f, bloom.MirrorConfig{})
		s.Inject(upstashtest.Drop(when), upstashtest.Drop(when))
		if _, err := m.Add(t.Context(), "a"); err == nil {
			t.Fatal("an Add without an answer is no error")
		}
		if _, err := m.AddAll(t.Context(), []string{"a", "b"}); err == nil {
			t.Fatal("an AddAll without an answer is no error")
		}
		if n := m.Stats().SetBits; n != 0 {
			t.Errorf("%v: %d bits in the copy", when, n)
		}
		wantLookUp(t, s, m, "a", bool(when), inOneRequest)
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
// ago. Time passes only between the rounds, however fast the machine is.
func TestMirrorPromiseUnderWriters(t *testing.T) {
	const stale = time.Minute
	s := upstashtest.NewServer(t)
	cfg := roomy()
	cfg.MissingIsEmpty = true
	f := handle(t, s.Client(), cfg)
	m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: stale, MaxTrust: stale})
	writers := &writers{more: make(chan struct{}, 1), clock: c}
	stop := writers.start(t, f.Add, m.AddThrough)
	checked := 0
	for i := range 200 {
		if i%50 == 49 {
			writers.deleteAll(t, f)
		}
		<-writers.more
		c.pass(stale / 4)
		if old := writers.before(c.Now().Add(-stale)); len(old) > 0 {
			checked++
			item := old[rand.IntN(len(old))]
			if found, err := m.Exists(t.Context(), item); !found || err != nil {
				t.Errorf("%s, added more than MaxStale ago: %v, %v", item, found, err)
			}
		}
		if _, err := m.Exists(t.Context(), fmt.Sprint("absent", i)); err != nil {
			t.Error(err)
		}
	}
	stop()
	if st := m.Stats(); checked == 0 || st.Hits == 0 || st.Refreshes < 2 {
		t.Errorf("the test showed nothing: %d items, %+v", checked, st)
	}
}

// writers add items, and remember when each Add was acknowledged.
type writers struct {
	clock *clock
	more  chan struct{} // an item was added
	life  sync.RWMutex  // write-locked while the filter is deleted
	mu    sync.Mutex
	acked []acked // in the live filter
}

type acked struct {
	item string
	at   time.Time
}

// start begins two writers, who use the Adds in turn. stop ends them.
func (w *writers) start(t *testing.T, adds ...func(context.Context, string) (bool, error)) (stop func()) {
	var calls sync.WaitGroup
	done := make(chan struct{})
	for n := range 2 {
		calls.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				w.add(t, fmt.Sprint(n, "-", i), adds[i%len(adds)])
			}
		})
	}
	return func() { close(done); calls.Wait() }
}

func (w *writers) add(t *testing.T, item string, add func(context.Context, string) (bool, error)) {
	w.life.RLock()
	if _, err := add(t.Context(), item); err != nil {
		t.Error(err)
	}
	w.mu.Lock()
	w.acked = append(w.acked, acked{item, w.clock.Now()})
	w.mu.Unlock()
	w.life.RUnlock()
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// deleteAll deletes the filter, which the next Add makes again.
func (w *writers) deleteAll(t *testing.T, f *bloom.Filter) {
	w.life.Lock()
	defer w.life.Unlock()
	if _, err := f.Delete(t.Context()); err != nil {
		t.Error(err)
	}
	w.acked = nil
}

// before returns the items of the live filter acknowledged before a time.
func (w *writers) before(then time.Time) (items []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.acked {
		if a.at.Before(then) {
			items = append(items, a.item)
		}
	}
	return items
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
	s := upstashtest.NewServer(t)
	limits := &limited{Transport: overHTTP(t)}
	f := handle(t, s.Client(upstash.WithTransport(limits), upstash.WithTimeout(5*time.Second)), roomy())
	mustAdd(t, f, "a")
	m, _ := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Minute})
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
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), roomy())
	mustAdd(t, f, "a")
	h := holdReply(2) // of the count, and then of the part
	m, _ := mirror(t, handle(t, h.client(t, s), roomy()), bloom.MirrorConfig{MaxStale: time.Minute})
	refreshed := make(chan error)
	go func() { refreshed <- m.Refresh(t.Context()) }()
	<-h.here
	if added, err := m.AddThrough(t.Context(), "own"); !added || err != nil {
		t.Errorf("AddThrough: %t, %v, want new", added, err)
	}
	close(h.release)
	noError(t, <-refreshed)
	wantLookUp(t, s, m, "own", present, fromCopy)
	wantLookUp(t, s, m, "a", present, fromCopy)
}

// Once the proof is older than MaxTrust, one request proves for all callers.
func TestMirrorProvesOnceForAllCallers(t *testing.T) {
	for name, call := range map[string]func(m *bloom.Mirror) error{
		"Exists": func(m *bloom.Mirror) error {
			found, err := m.Exists(t.Context(), "a")
			return expect(found, err)
		},
		"ExistsAll": func(m *bloom.Mirror) error {
			found, err := m.ExistsAll(t.Context(), []string{"a"})
			return expect(len(found) == 1 && found[0], err)
		},
		"Add": func(m *bloom.Mirror) error {
			added, err := m.Add(t.Context(), "a")
			return expect(!added, err)
		},
		"AddAll": func(m *bloom.Mirror) error {
			added, err := m.AddAll(t.Context(), []string{"a"})
			return expect(len(added) == 1 && !added[0], err)
		},
	} {
		s := upstashtest.NewServer(t)
		f := handle(t, s.Client(), roomy())
		mustAdd(t, f, "a")
		h := holdReply(2)
		m, c := mirror(t, handle(t, h.client(t, s), roomy()), bloom.MirrorConfig{})
		wantLookUp(t, s, m, "a", present, inOneRequest)
		c.pass(time.Minute + 1)

		before := s.Stats().Requests
		var callers sync.WaitGroup
		callers.Go(func() {
			if err := call(m); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		<-h.here
		for range 29 {
			callers.Go(func() {
				if err := call(m); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		close(h.release)
		callers.Wait()
		if n := s.Stats().Requests - before; n != 1 {
			t.Errorf("%s: %d requests of thirty callers, want 1", name, n)
		}
	}
}

// expect returns an error if there is one, or if the answer is wrong.
func expect(right bool, err error) error {
	if err == nil && !right {
		err = errors.New("a wrong answer")
	}
	return err
}

// outage makes a server that drops all requests while down is set.
func outage(t *testing.T, opts ...upstash.Option) (s *upstashtest.Server, c *upstash.Client, down *atomic.Bool) {
	t.Helper()
	s, down = upstashtest.NewServer(t), new(atomic.Bool)
	s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		if down.Load() {
			return upstashtest.Drop(upstashtest.BeforeExec)
		}
		return upstashtest.Fault{}
	})
	return s, s.Client(append(opts, upstash.WithRetry(0))...), down
}

// In an outage the copy answers for StaleIfError beyond its limits, and one call
// a second asks.
func TestMirrorStaleIfError(t *testing.T) {
	var labels []string
	s, client, down := outage(t, upstash.WithObserver(func(_ context.Context, e upstash.Event) {
		labels = append(labels, e.Label)
	}))
	mustAdd(t, handle(t, s.Client(), roomy()), "a")
	m, c := mirror(t, handle(t, client, roomy()), bloom.MirrorConfig{
		MaxStale: 10 * time.Second, MaxTrust: 10 * time.Second, MaxCopy: 10 * time.Second, StaleIfError: time.Minute,
	})
	wantLookUp(t, s, m, "a", present, inTwoRequests)
	down.Store(true)
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
	down.Store(false)
	mustAdd(t, handle(t, s.Client(), roomy()), "x")
	c.pass(time.Second + 1)
	wantLookUp(t, s, m, "x", present, inTwoRequests)
	if since := m.Stats().StaleSince; !since.IsZero() {
		t.Errorf("stale since %v, want not at all", since)
	}
}

// While one call waits for a server that does not answer, the others do not.
func TestMirrorStaleIfErrorAsksOnce(t *testing.T) {
	s := upstashtest.NewServer(t)
	asked, answer := make(chan bool), make(chan bool)
	var down atomic.Bool
	s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		if down.Load() {
			asked <- true
			<-answer
			return upstashtest.Drop(upstashtest.BeforeExec)
		}
		return upstashtest.Fault{}
	})
	f := handle(t, s.Client(upstash.WithRetry(0), upstash.WithTimeout(time.Hour)), roomy())
	mustAdd(t, f, "a")
	m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Second, StaleIfError: time.Hour})
	wantLookUp(t, s, m, "a", present, inTwoRequests)
	down.Store(true)
	answered := make(chan error)
	lookUp := func() {
		found, err := m.Exists(t.Context(), "x")
		answered <- expect(!found, err)
	}
	for range 2 { // the first learns of the outage, the second asks if it is over
		c.pass(2 * time.Second)
		go lookUp()
		<-asked
		if m.Stats().StaleSince.IsZero() {
			answer <- false
			noError(t, <-answered)
		}
	}
	c.pass(10 * time.Second)
	wantLookUp(t, s, m, "x", absent, fromCopy)
	answer <- false
	noError(t, <-answered)
	down.Store(false)
	c.pass(2 * time.Second)
	wantLookUp(t, s, m, "x", absent, inOneRequest)
}

// The time that a call waits for an answer counts: it may take the copy past the
// sum of the limits.
func TestMirrorStaleIfErrorCountsTheWait(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(upstash.WithRetry(0)), roomy())
	mustAdd(t, f, "a")
	m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Second, StaleIfError: 10 * time.Second})
	wantLookUp(t, s, m, "x", absent, inTwoRequests)
	wait := 5 * time.Second
	s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		c.pass(wait)
		return upstashtest.Drop(upstashtest.BeforeExec)
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
		s := upstashtest.NewServer(t)
		f := handle(t, s.Client(upstash.WithRetry(0)), roomy())
		mustAdd(t, f, "a")
		m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Second, StaleIfError: time.Hour})
		wantLookUp(t, s, m, "x", absent, inTwoRequests)
		s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault { return fault })
		c.pass(time.Minute)
		wantLookUp(t, s, m, "x", absent, inOneRequest)
		if m.Stats().StaleSince.IsZero() {
			t.Errorf("%v: the Mirror is not stale", fault)
		}
	}
}

// Without MaxStale the copy says no "no", in an outage either.
func TestMirrorStaleIfErrorWithoutMaxStale(t *testing.T) {
	s, client, down := outage(t)
	mustAdd(t, handle(t, s.Client(), roomy()), "a")
	m, c := mirror(t, handle(t, client, roomy()), bloom.MirrorConfig{StaleIfError: time.Hour})
	wantLookUp(t, s, m, "a", present, inOneRequest)
	down.Store(true)
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
	for name, c := range map[string]struct {
		change func(t *testing.T, s *upstashtest.Server)
		want   func(found bool, err error) bool
	}{
		"missing": {
			func(t *testing.T, s *upstashtest.Server) { do(t, s, "DEL", key) },
			func(_ bool, err error) bool { return errors.Is(err, bloom.ErrNotFound) },
		},
		"another": {
			func(t *testing.T, s *upstashtest.Server) {
				do(t, s, "DEL", key)
				mustAdd(t, handle(t, s.Client(), bloom.Config{Capacity: 55, FPRate: 0.01}), "a")
			},
			func(_ bool, err error) bool { return errors.As(err, new(*bloom.MismatchError)) },
		},
		"made again": {
			func(t *testing.T, s *upstashtest.Server) {
				do(t, s, "DEL", key)
				mustAdd(t, handle(t, s.Client(), roomy()), "b")
			},
			func(found bool, err error) bool { return !found && err == nil },
		},
		"refused": {
			func(t *testing.T, s *upstashtest.Server) { s.DenyFunc(func([]string) bool { return true }) },
			func(_ bool, err error) bool { return err != nil },
		},
	} {
		s, client, down := outage(t)
		mustAdd(t, handle(t, s.Client(), roomy()), "a")
		m, clock := mirror(t, handle(t, client, roomy()), bloom.MirrorConfig{
			MaxStale: time.Second, MaxTrust: time.Second, StaleIfError: time.Hour,
		})
		wantLookUp(t, s, m, "a", present, inTwoRequests)
		down.Store(true)
		clock.pass(time.Minute)
		wantLookUp(t, s, m, "a", present, inOneRequest)
		down.Store(false)
		c.change(t, s)
		clock.pass(2 * time.Second)
		if found, err := m.Exists(t.Context(), "a"); !c.want(found, err) {
			t.Errorf("%s: Exists is %t, %v", name, found, err)
		}
		if since := m.Stats().StaleSince; !since.IsZero() {
			t.Errorf("%s: stale since %v, want not at all", name, since)
		}
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
