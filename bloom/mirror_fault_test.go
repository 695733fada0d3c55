package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
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
	for _, fault := range upstashtest.EveryFault() {
		for hit := range int64(3) {
			s := upstashtest.NewServer(t)
			c := s.Client(upstash.WithRetry(0), upstash.WithTimeout(50*time.Millisecond))
			mustAdd(t, handle(t, s.Client(), roomy()), "a", "b")
			m, clock := mirror(t, handle(t, c, roomy()), bloom.MirrorConfig{MaxStale: time.Minute})
			look := func(when string) {
				t.Helper()
				s.InjectFunc(func(n int64, _ upstashtest.RequestInfo) upstashtest.Fault {
					if n == hit+1 {
						return fault
					}
					return upstashtest.Fault{}
				})
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
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), roomy())
	mustAdd(t, f, "a")
	m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Minute})
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
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), roomy())
	mustAdd(t, f, "a")
	m, _ := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Minute})
	s.Inject(upstashtest.Stall(upstashtest.AfterExec))
	leader, giveUp := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	calls.Go(func() {
		if _, err := m.Exists(leader, "x"); !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that gave up got %v", err)
		}
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
	if err := m.Refresh(t.Context()); !errors.Is(err, bloom.ErrNotFilter) {
		t.Errorf("Refresh: %v, want ErrNotFilter", err)
	}
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
	web := &http.Client{}
	defer web.CloseIdleConnections()
	limits := &limited{Transport: httptransport.New(web)}
	f := handle(t, s.Client(upstash.WithTransport(limits), upstash.WithTimeout(5*time.Second)), roomy())
	mustAdd(t, f, "a")
	m, _ := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Minute})
	if err := m.Refresh(t.Context()); err != nil || limits.longest == 0 || limits.longest > 5*time.Second {
		t.Errorf("%v; an attempt has %v, want 5s at most", err, limits.longest)
	}
}
