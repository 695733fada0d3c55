package bloom_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// The tests of single rules of a Mirror, which mirror.go numbers. Others are in
// mirror_test.go and mirror_refresh_test.go, by what a caller wants.

// wired makes a Mirror on a virtual clock, behind a wire. Its filter holds "a".
func wired(t *testing.T, cfg bloom.MirrorConfig,
	do func(t *testing.T, s *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror),
) {
	t.Helper()
	s := upstashtest.NewServer(t)
	synctest.Test(t, func(t *testing.T) {
		next := httptransport.New(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
		w := &bloomtest.Wire{Next: next}
		c := s.Client(upstash.WithRetry(0), upstash.WithTimeout(24*time.Hour), upstash.WithTransport(w))
		f := handle(t, c, roomy())
		mustAdd(t, f, "a")
		m := newMirror(t, f, cfg)
		do(t, s, w, m)
	})
}

// aged is wired with a whole copy that is two minutes old, and late for an hour.
func aged(t *testing.T, maxStale time.Duration,
	do func(t *testing.T, s *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror),
) {
	t.Helper()
	cfg := bloom.MirrorConfig{MaxStale: maxStale, StaleIfError: time.Hour}
	wired(t, cfg, func(t *testing.T, s *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror) {
		noError(t, m.Refresh(t.Context()))
		time.Sleep(2 * time.Minute)
		do(t, s, w, m)
	})
}

// whileHeld makes a call, and does something else while the call's request is held.
func whileHeld(held *bloomtest.Held, call, do func()) {
	var calls sync.WaitGroup
	calls.Go(call)
	<-held.Here
	do()
	held.Free <- nil
	calls.Wait()
}

// refreshes is a call of Refresh that succeeds.
func refreshes(t *testing.T, m *bloom.Mirror) func() {
	return func() { wantError(t, m.Refresh(t.Context()), nil) }
}

// crowd has thirty callers make a call while the request of one is held, which ends
// with an error, and counts all requests.
func crowd(t *testing.T, s *upstashtest.Server, held *bloomtest.Held, end error, want int64, call func()) {
	t.Helper()
	before := s.Stats().Requests
	var callers sync.WaitGroup
	for range 30 {
		callers.Go(call)
	}
	synctest.Wait() // all but one wait for its answer
	held.Free <- end
	callers.Wait()
	if n := s.Stats().Requests - before; n != want {
		t.Errorf("%d requests of thirty callers, want %d", n, want)
	}
}

// wantOutage checks whether the Mirror thinks that the server is silent.
func wantOutage(t *testing.T, m *bloom.Mirror, want bool) {
	t.Helper()
	if since := m.Stats().StaleSince; since.IsZero() == want {
		t.Errorf("an outage since %v, want one: %t", since, want)
	}
}

// Rule 3: two look-ups are under way while the filter is replaced. The answer from
// the old filter comes last, whichever was sent first. It brings no item back.
func TestMirrorAnswersThatCross(t *testing.T) {
	for _, oldFirst := range []bool{true, false} {
		wired(t, bloom.MirrorConfig{}, func(t *testing.T, s *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror) {
			var calls sync.WaitGroup
			send := func(item string, ran, want bool) *bloomtest.Held {
				h := w.Hold("BITFIELD", ran)
				calls.Go(func() { exists(t, m, item, want) })
				<-h.Here
				time.Sleep(time.Second)
				return h
			}
			var before, after *bloomtest.Held // have they run before the Replace, or after it?
			if oldFirst {
				before = send("a", true, present)
			}
			after = send("x", false, absent)
			if !oldFirst {
				before = send("a", true, present)
			}
			f := handle(t, s.Client(), roomy())
			noError(t, f.Replace(t.Context(), bloom.NewLocal(f.Geometry())))
			for _, h := range []*bloomtest.Held{after, before} {
				h.Free <- nil
				time.Sleep(time.Second)
			}
			calls.Wait()
			wantLookUp(t, s, m, "a", absent, inOneRequest)
		})
	}
}

// Rule 3: a refresh has counted a filter which was deleted since. The count comes
// after the answer to an Add that made the next filter. The refresh counts again.
func TestMirrorACountThatCrosses(t *testing.T) {
	wired(t, bloom.MirrorConfig{MaxStale: time.Hour}, func(t *testing.T, s *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror) {
		whileHeld(w.Hold("EVAL", true), refreshes(t, m), func() {
			time.Sleep(time.Second)
			noError(t, errorOf(handle(t, s.Client(), roomy()).Delete(t.Context())))
			wantNew(t, m, "b")
			time.Sleep(time.Second)
		})
		wantLookUp(t, s, m, "b", present, fromCopy)
		wantLookUp(t, s, m, "a", absent, fromCopy)
	})
}

// Rule 3: the answers "no filter" to a look-up and to a refresh come after the
// Mirror's own Add has made the filter. The first drops the copy. The second must
// not make an empty copy whole: the Mirror would deny what it added.
func TestMirrorDoesNotDenyItsOwnAdd(t *testing.T) {
	s := upstashtest.NewServer(t)
	w := bloomtest.NewWire(t)
	cfg := roomy()
	cfg.MissingIsEmpty = true
	f := handle(t, s.Client(upstash.WithTransport(w), upstash.WithRetry(0)), cfg)
	m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Hour})
	look, refresh := w.Hold("BITFIELD", true), w.Hold("EVAL", true)
	s.Inject(upstashtest.Drop(upstashtest.BeforeExec)) // the refresh of the look-up: it asks by itself then
	var looking sync.WaitGroup
	looking.Go(func() { exists(t, m, "x", absent) })
	<-look.Here
	whileHeld(refresh, refreshes(t, m), func() {
		c.pass(time.Second)
		wantNew(t, m, "x")
		look.Free <- nil
		looking.Wait()
	})
	exists(t, m, "x", true)
}

// Rule 3: what the copy learns after the question makes no counts equal. Here it has
// as many bits as the filter, and lacks an item.
func TestMirrorCountsWhatItHadBefore(t *testing.T) {
	w := bloomtest.NewWire(t)
	s, f, m, _ := mirrored(t, bloom.MirrorConfig{MaxStale: time.Hour}, upstash.WithTransport(w))
	wantLookUp(t, s, m, "a", present, inOneRequest)
	mustAdd(t, f, "b")
	whileHeld(w.Hold("EVAL", true), refreshes(t, m), func() { wantNew(t, m, "c") })
	for _, item := range []string{"a", "b", "c"} {
		wantLookUp(t, s, m, item, present, fromCopy)
	}
}

// Rule 3: an Add is answered at its second attempt. If the first did not run, an answer
// in between is of the filter that was replaced after it. If it ran, each attempt made
// another filter, and that of the first was deleted between them. What the copy knew of
// either is forgotten.
func TestMirrorOfAnAddThatWasRepeated(t *testing.T) {
	for _, ran := range []bool{false, true} {
		s := upstashtest.NewServer(t)
		synctest.Test(t, func(t *testing.T) {
			writer := handle(t, s.Client(), roomy())
			var m *bloom.Mirror
			between := func() {
				mustAdd(t, writer, "old")
				time.Sleep(time.Second)
				exists(t, m, "old", true)
				time.Sleep(time.Second)
				if ran {
					noError(t, errorOf(writer.Delete(t.Context())))
				} else {
					noError(t, writer.Replace(t.Context(), bloom.NewLocal(writer.Geometry())))
				}
			}
			c := impatient(s, upstash.WithObserver(func(_ context.Context, e upstash.Event) {
				if e.Err != nil {
					between()
				}
			}))
			m = newMirror(t, handle(t, c, roomy()), bloom.MirrorConfig{})
			s.Inject(upstashtest.Drop(upstashtest.When(ran)))
			added, err := m.AddThrough(t.Context(), "own")
			if uncertain := errors.Is(err, bloom.ErrUncertain); uncertain && !ran || !uncertain && (err != nil || !added) {
				t.Errorf("AddThrough = %v, %v, want true", added, err)
			}
			wantLookUp(t, s, m, "old", absent, inOneRequest)
			wantLookUp(t, s, m, "own", present, fromCopy)
		})
	}
}

// Rule 5: with MaxStale a "yes" counts no longer than a "no".
func TestMirrorYesCountsForMaxStale(t *testing.T) {
	s, f, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: 5 * time.Second})
	wantLookUp(t, s, m, "a", present, inOneRequest)
	noError(t, errorOf(f.Delete(t.Context())))
	c.pass(5 * time.Second)
	wantLookUp(t, s, m, "a", present, fromCopy)
	add(t, m, "a", isSeen)
	c.pass(1)
	wantError(t, errorOf(m.Exists(t.Context(), "a")), bloom.ErrNotFound)
}

// Rule 5: a region proves nothing. Here it has the filter that was deleted since.
func TestMirrorARegionProvesNothing(t *testing.T) {
	s, writer, near := nearAStuckRegion(t, true, upstash.WithoutSyncToken())
	m, c := mirror(t, near, bloom.MirrorConfig{})
	wantLookUp(t, s, m, "a", present, inOneRequest)
	noError(t, errorOf(writer.Delete(t.Context())))
	c.pass(time.Minute)
	wantLookUp(t, s, m, "x", absent, inOneRequest)
	wantLookUp(t, s, m, "a", present, fromCopy)
	c.pass(1)
	wantError(t, errorOf(m.Exists(t.Context(), "a")), bloom.ErrNotFound)
}

// Rule 6: a ticker ahead of MaxStale spares all others the wait, also when the
// copy is too old for a refresh by counts.
func TestMirrorTickerSparesTheWait(t *testing.T) {
	s, _, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: time.Minute})
	for tick := range 150 {
		noError(t, m.Refresh(t.Context()))
		c.pass(50 * time.Second)
		wantLookUp(t, s, m, "x", absent, fromCopy)
		wantLookUp(t, s, m, "a", present, fromCopy)
		if t.Failed() {
			t.Fatal("at tick", tick)
		}
	}
}

// Rules 6 and 7: in an outage a copy stays, however many calls fail or look.
func TestMirrorKeepsAnOldCopyInAnOutage(t *testing.T) {
	for _, maxStale := range []time.Duration{0, time.Minute} {
		s, _, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: maxStale, StaleIfError: 3 * time.Hour},
			upstash.WithRetry(0))
		noError(t, m.Refresh(t.Context()))
		c.pass(59 * time.Minute)
		bloomtest.StrikeAll(s, notSent)
		for range 20 {
			c.pass(5 * time.Minute)
			if _, err := m.AddThrough(t.Context(), "b"); err == nil {
				t.Error("AddThrough in an outage: no error")
			}
			exists(t, m, "a", present)
			if maxStale > 0 {
				exists(t, m, "x", absent)
			}
		}
	}
}

// Rule 6: with MaxStale an answer does not make an old copy start over, because a
// refresh will renew it.
func TestMirrorAnAddKeepsAnOldCopy(t *testing.T) {
	s, _, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: time.Minute, StaleIfError: 3 * time.Hour},
		upstash.WithRetry(0))
	noError(t, m.Refresh(t.Context()))
	c.pass(time.Hour + 2*time.Minute)
	wantNew(t, m, "b")
	bloomtest.StrikeAll(s, notSent)
	exists(t, m, "a", present)
	exists(t, m, "zzz", absent)
}

// Rule 6: a download goes on if the copy that it will replace grows too old meanwhile.
func TestMirrorDownloadsPastTheHour(t *testing.T) {
	part, through := holdReply(t, 5) // after those to two Adds, a refresh and the count
	s, f, m, c := mirrored(t, bloom.MirrorConfig{}, through)
	noError(t, m.Refresh(t.Context()))
	mustAdd(t, f, "b")
	c.pass(time.Hour)
	whileHeld(part, refreshes(t, m), func() { c.pass(1) })
	wantLookUp(t, s, m, "b", present, fromCopy)
}

// Rule 12: in an outage, a look-up is answered late, and an Add is not.
func TestMirrorAnAddIsNeverLate(t *testing.T) {
	s, _, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: time.Minute, StaleIfError: time.Hour}, upstash.WithRetry(0))
	noError(t, m.Refresh(t.Context()))
	c.pass(2 * time.Minute)
	bloomtest.StrikeAll(s, notSent)
	exists(t, m, "a", present)
	wantOutage(t, m, true)
	if added, err := m.Add(t.Context(), "a"); err == nil {
		t.Errorf("Add in an outage = %v, want the error of its request", added)
	}
}

// Rule 10e: of the requests of a call only that with the unknown item is answered.
// The copy knows all others, so there is no error.
func TestMirrorIsLateBesideAnAnswer(t *testing.T) {
	s, next := upstashtest.NewServer(t), overHTTP(t)
	kept := "" // is in the only request that is not lost
	var last atomic.Value
	var lost atomic.Int64
	answered := make(chan bool)
	w := transportFunc(func(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
		if body := string(req.Body); kept == "" {
			last.Store(body)
		} else if !strings.Contains(body, kept) {
			<-answered
			lost.Add(1)
			return bloomtest.ErrCut
		} else {
			defer close(answered)
		}
		return next.RoundTrip(ctx, req, resp)
	})
	f := handle(t, s.Client(upstash.WithTransport(w), upstash.WithRetry(0), upstash.WithMaxRequest(1024)), roomy())
	known := numbered("known", 50)
	mustAdd(t, f, known...)
	m, c := mirror(t, f, bloom.MirrorConfig{StaleIfError: time.Hour})
	noError(t, errorOf(m.ExistsAll(t.Context(), known)))
	c.pass(2 * time.Minute)
	exists(t, m, "x", absent)
	c.pass(2 * time.Minute)
	body := strings.TrimRight(last.Load().(string), "]")
	kept = body[strings.LastIndexByte(body, ','):] // the last word of x
	found, err := m.ExistsAll(t.Context(), append([]string{"x"}, known...))
	noError(t, err)
	for i, yes := range found {
		if yes != (i > 0) {
			t.Errorf("item %d is found: %t", i, yes)
		}
	}
	if lost.Load() == 0 {
		t.Error("no request was lost")
	}
}

// Rule 8: any answer ends an outage, to whatever question.
func TestMirrorAnyAnswerEndsAnOutage(t *testing.T) {
	for name, ask := range map[string]func(m *bloom.Mirror) error{
		"a look-up":  func(m *bloom.Mirror) error { return errorOf(m.Exists(t.Context(), "x")) },
		"look-ups":   func(m *bloom.Mirror) error { return errorOf(m.ExistsAll(t.Context(), []string{"x", "y"})) },
		"Add":        func(m *bloom.Mirror) error { return errorOf(m.Add(t.Context(), "b")) },
		"AddThrough": func(m *bloom.Mirror) error { return errorOf(m.AddThrough(t.Context(), "a")) },
		"AddAll":     func(m *bloom.Mirror) error { return errorOf(m.AddAll(t.Context(), []string{"b", "c"})) },
		"Refresh":    func(m *bloom.Mirror) error { return m.Refresh(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			s, _, m, c := mirrored(t, bloom.MirrorConfig{StaleIfError: time.Hour}, upstash.WithRetry(0))
			wantLookUp(t, s, m, "a", present, inOneRequest)
			s.Inject(notSent)
			if _, err := m.AddThrough(t.Context(), "b"); err == nil {
				t.Error("AddThrough that is lost: no error")
			}
			wantOutage(t, m, true)
			c.pass(2 * time.Second)
			noError(t, ask(m))
			wantOutage(t, m, false)
		})
	}
}

// Rule 8: so does an answer to a question that was sent before the one without.
func TestMirrorALateAnswerEndsAnOutage(t *testing.T) {
	wired(t, bloom.MirrorConfig{StaleIfError: time.Hour}, func(t *testing.T, s *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror) {
		whileHeld(w.Hold("BITFIELD", true), func() { exists(t, m, "x", absent) }, func() {
			time.Sleep(time.Second)
			w.Cut(true)
			_, _ = m.AddThrough(t.Context(), "b")
			wantOutage(t, m, true)
		})
		wantOutage(t, m, false)
	})
}

// Rule 8: the first part of a download ends an outage that began after the count.
func TestMirrorAPartEndsAnOutage(t *testing.T) {
	wired(t, bloom.MirrorConfig{StaleIfError: time.Hour}, func(t *testing.T, s *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror) {
		noError(t, m.Refresh(t.Context()))
		mustAdd(t, handle(t, s.Client(), roomy()), "more")
		w.Hold("EVAL", true).Free <- nil // the count
		whileHeld(w.Hold("EVAL", false), refreshes(t, m), func() {
			w.Cut(true)
			_, _ = m.AddThrough(t.Context(), "b")
			wantOutage(t, m, true)
			w.Cut(false)
		})
		wantOutage(t, m, false)
	})
}

// Rules 8 and 11: a question that is lost after a later one was answered begins no
// outage. Its own call is answered by the copy.
func TestMirrorALaterAnswerCounts(t *testing.T) {
	aged(t, 0, func(t *testing.T, s *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror) {
		lost := w.Hold("BITFIELD", false)
		var calls sync.WaitGroup
		calls.Go(func() { exists(t, m, "a", present) })
		<-lost.Here
		time.Sleep(time.Second)
		exists(t, m, "new", absent)
		time.Sleep(time.Second)
		lost.Free <- bloomtest.ErrCut
		calls.Wait()
		wantOutage(t, m, false)
	})
}

// Rule 9: every end of a request that was sent begins an outage, if it does not say
// what is at the key.
func TestMirrorWhatBeginsAnOutage(t *testing.T) {
	for _, fault := range []upstashtest.Fault{
		upstashtest.Drop(upstashtest.BeforeExec), upstashtest.Drop(upstashtest.AfterExec),
		upstashtest.CutBody(5), upstashtest.NotJSON(upstashtest.AfterExec), upstashtest.ShortResult(),
		upstashtest.WrongType(), upstashtest.RateLimit(0), upstashtest.RateLimit(time.Second),
		upstashtest.InternalError(upstashtest.BeforeExec), upstashtest.BadGateway(upstashtest.BeforeExec),
		upstashtest.ErrorObject("ERR max requests limit exceeded. Limit: 10000, Usage: 10000."),
		upstashtest.CommandError("ERR max daily request limit exceeded. Limit: 10000, Usage: 10001."),
		upstashtest.CommandError("OOM command not allowed when used memory > 'maxmemory'."),
		upstashtest.CommandError("LOADING Redis is loading the dataset in memory"),
		upstashtest.CommandError("WRONGPASS invalid or missing auth token"),
		upstashtest.CommandError("NOPERM this user has no permissions to run the command"),
	} {
		for _, maxStale := range []time.Duration{0, time.Minute} {
			s, _, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: maxStale, StaleIfError: time.Hour},
				upstash.WithRetry(0))
			noError(t, m.Refresh(t.Context()))
			bloomtest.StrikeAll(s, fault)
			for range 2 {
				c.pass(2 * time.Minute)
				if found, err := m.Exists(t.Context(), "a"); !found || err != nil {
					t.Errorf("%v, MaxStale %v: %t, %v, want true", fault, maxStale, found, err)
				}
				wantOutage(t, m, true)
				if maxStale > 0 {
					wantLookUp(t, s, m, "x", absent, fromCopy)
				}
			}
		}
	}
}

// Rule 9: a caller whose context ended before anything was sent says nothing of the
// server, and gets its own error.
func TestMirrorADeadCallerBeginsNoOutage(t *testing.T) {
	for _, maxStale := range []time.Duration{0, time.Minute} {
		s, f, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: maxStale, StaleIfError: time.Hour})
		noError(t, m.Refresh(t.Context()))
		c.pass(2 * time.Minute)
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		expired, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		before := s.Stats().Requests
		for _, ctx := range []context.Context{canceled, expired} {
			wantError(t, errorOf(m.Exists(ctx, "a")), ctx.Err())
			wantError(t, errorOf(m.ExistsAll(ctx, []string{"a", "x"})), ctx.Err())
			wantError(t, errorOf(m.Add(ctx, "a")), ctx.Err())
			wantError(t, errorOf(m.AddThrough(ctx, "a")), ctx.Err())
			wantError(t, m.Refresh(ctx), ctx.Err())
			wantOutage(t, m, false)
		}
		if n := s.Stats().Requests; n != before {
			t.Errorf("%d requests, want none", n-before)
		}
		noError(t, errorOf(f.Delete(t.Context())))
		wantError(t, errorOf(m.Exists(t.Context(), "a")), bloom.ErrNotFound) // all others ask
	}
}

// Rule 9: nor does one that leaves while it waits. One whose deadline passes has
// waited for the server: it is answered late, and others learn of the outage.
func TestMirrorACallerThatLeavesBeginsNoOutage(t *testing.T) {
	for _, maxStale := range []time.Duration{0, time.Minute} {
		aged(t, maxStale, func(t *testing.T, s *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror) {
			asked := w.Hold("", false)
			ctx, leave := context.WithCancel(t.Context())
			go func() { <-asked.Here; leave() }()
			wantError(t, errorOf(m.Exists(ctx, "a")), context.Canceled)
			wantOutage(t, m, false)

			w.Hold("", false)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if found, err := m.Exists(ctx, "a"); !found || err != nil {
				t.Errorf("Exists until a deadline: %t, %v, want true", found, err)
			}
			wantOutage(t, m, true)
		})
	}
}

// Rule 9: in an outage, too. The next call asks at once, in its place.
func TestMirrorACallerThatLeavesIsReplaced(t *testing.T) {
	for _, maxStale := range []time.Duration{0, time.Minute} {
		aged(t, maxStale, func(t *testing.T, s *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror) {
			w.Hold("", false).Free <- bloomtest.ErrCut
			exists(t, m, "a", present)
			wantOutage(t, m, true)
			time.Sleep(2 * time.Second)
			asked := w.Hold("", false)
			ctx, leave := context.WithCancel(t.Context())
			go func() { <-asked.Here; leave() }()
			_, _ = m.Exists(ctx, "a")
			noError(t, errorOf(handle(t, s.Client(), roomy()).Delete(t.Context())))
			wantError(t, errorOf(m.Exists(t.Context(), "a")), bloom.ErrNotFound)
		})
	}
}

// Rule 10b: after one lost request, and then health, the next call asks. MaxStale
// makes no difference.
func TestMirrorAsksAgainAfterOneLostRequest(t *testing.T) {
	for _, maxStale := range []time.Duration{0, time.Minute} {
		s, f, m, c := mirrored(t, bloom.MirrorConfig{MaxStale: maxStale, StaleIfError: time.Hour},
			upstash.WithRetry(0))
		noError(t, m.Refresh(t.Context()))
		c.pass(2 * time.Minute)
		s.Inject(notSent)
		wantLookUp(t, s, m, "a", present, inOneRequest)
		wantLookUp(t, s, m, "a", present, fromCopy) // somebody asked within a second
		noError(t, errorOf(f.Delete(t.Context())))
		c.pass(time.Second + 1)
		wantError(t, errorOf(m.Exists(t.Context(), "a")), bloom.ErrNotFound)
		wantOutage(t, m, false)
	}
}

// Rule 10b: who has waited looks at b again before it asks. Here an outage began
// while it waited for a refresh that was then given up.
func TestMirrorLooksAtItsTurnAgain(t *testing.T) {
	aged(t, time.Minute, func(t *testing.T, s *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror) {
		refresh := w.Hold("EVAL", false)
		ctx, giveUp := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		calls.Go(func() { _, _ = m.Exists(ctx, "a") })
		<-refresh.Here
		calls.Go(func() { exists(t, m, "x", absent) })
		synctest.Wait() // it waits for the refresh
		w.Cut(true)
		_, _ = m.AddThrough(t.Context(), "b")
		wantOutage(t, m, true)
		before := m.Stats().Failures
		giveUp()
		calls.Wait()
		if n := m.Stats().Failures - before; n != 1 {
			t.Errorf("%d refreshes have failed, want only the one that was given up", n)
		}
	})
}

// Rules 10c, 10d and 11: those who wait for a refresh or for the proof of one call that
// gets no answer are answered late with it, and ask nothing.
func TestMirrorLateForAllWhoWait(t *testing.T) {
	for maxStale, item := range map[time.Duration]string{time.Minute: "x", 0: "a"} {
		aged(t, maxStale, func(t *testing.T, s *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror) {
			crowd(t, s, w.Hold("", false), bloomtest.ErrCut, 0, func() { exists(t, m, item, item == "a") })
			wantOutage(t, m, true)
		})
	}
}

// Rule 10d: who waited for a proof asks too, if that caller left, or if late does not
// go so far.
func TestMirrorAsksAfterAProofThatDidNotCome(t *testing.T) {
	for _, late := range []time.Duration{0, time.Hour} {
		cfg := bloom.MirrorConfig{StaleIfError: late}
		wired(t, cfg, func(t *testing.T, s *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror) {
			exists(t, m, "a", present)
			time.Sleep(2 * time.Minute)
			proof, second := w.Hold("BITFIELD", false), w.Hold("BITFIELD", true)
			ctx, leave := context.WithCancel(t.Context())
			var calls sync.WaitGroup
			calls.Go(func() { _, _ = m.Exists(ctx, "a") })
			<-proof.Here
			calls.Go(func() { exists(t, m, "a", present) })
			synctest.Wait()
			if late == 0 {
				proof.Free <- bloomtest.ErrCut
			} else {
				leave()
			}
			<-second.Here
			second.Free <- nil
			calls.Wait()
			leave()
		})
	}
}

// Rule 10e: in an outage a call that could send nothing is answered late, too.
func TestMirrorIsLateForADeadCallerInAnOutage(t *testing.T) {
	aged(t, 0, func(t *testing.T, s *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror) {
		w.Cut(true)
		exists(t, m, "a", present)
		time.Sleep(2 * time.Second)
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		if found, err := m.Exists(dead, "a"); !found || err != nil {
			t.Errorf("Exists = %t, %v, want true", found, err)
		}
	})
}

// Rule 10b: a call whose turn it is asks, although it waited for a refresh that was
// given up.
func TestMirrorKeepsItsTurn(t *testing.T) {
	aged(t, time.Minute, func(t *testing.T, s *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror) {
		w.Hold("EVAL", false).Free <- bloomtest.ErrCut
		exists(t, m, "a", present)
		wantOutage(t, m, true)
		time.Sleep(2 * time.Second)
		refresh, own := w.Hold("EVAL", false), w.Hold("EVAL", true)
		ctx, giveUp := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		calls.Go(func() { wantError(t, m.Refresh(ctx), context.Canceled) })
		<-refresh.Here
		calls.Go(func() { exists(t, m, "x", absent) })
		synctest.Wait()
		giveUp()
		<-own.Here
		own.Free <- nil
		calls.Wait()
		wantOutage(t, m, false)
	})
}

// Rule 10c: a refresh that was too early for a call, or whose caller's deadline passed,
// is followed by another.
func TestMirrorRefreshesAfterOneOfNoUse(t *testing.T) {
	for _, tooEarly := range []bool{true, false} {
		aged(t, time.Minute, func(t *testing.T, s *upstashtest.Server, w *bloomtest.Wire, m *bloom.Mirror) {
			first, second := w.Hold("EVAL", true), w.Hold("EVAL", true)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			var calls sync.WaitGroup
			calls.Go(func() { _ = m.Refresh(ctx) })
			<-first.Here
			time.Sleep(2 * time.Minute)
			calls.Go(func() { exists(t, m, "x", absent) })
			synctest.Wait()
			_, _ = m.AddThrough(t.Context(), "a") // answered: no outage
			if tooEarly {
				first.Free <- nil
			}
			<-second.Here
			second.Free <- nil
			calls.Wait()
		})
	}
}

// Rule 11: the sums of the longest durations are the longest duration.
func TestMirrorLongestDurations(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	for _, cfg := range []bloom.MirrorConfig{
		{MaxStale: longest},
		{MaxStale: longest, StaleIfError: longest},
		{MaxStale: time.Minute, StaleIfError: longest},
		{StaleIfError: longest},
	} {
		s, _, m, c := mirrored(t, cfg, upstash.WithRetry(0))
		noError(t, m.Refresh(t.Context()))
		bloomtest.StrikeAll(s, notSent)
		for range 100 {
			c.pass(365 * 24 * time.Hour)
			exists(t, m, "a", present)
			if cfg.MaxStale > 0 {
				exists(t, m, "x", absent)
			}
		}
	}
}
