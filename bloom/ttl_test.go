package bloom_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestTTLIsSetOnceAndNeverProlonged(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c := s.Client()
		add(t, handle(t, c, expiring(time.Hour)), "a", true)
		wantTTL(t, s, time.Hour)

		do(t, s, "PEXPIRE", key, "600000") // as if 50 minutes had passed
		f := handle(t, c, expiring(time.Hour))
		add(t, f, "b", true)
		add(t, f, "c", true)
		wantTTL(t, s, 10*time.Minute)
	})
}

// If the user decides while a settling is under way, the settling changes
// nothing.
func TestTheUserDecides(t *testing.T) {
	const keep = -1 // no TTL
	for name, want := range map[string]time.Duration{"Persist": keep, "Expire": 10 * time.Minute} {
		eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
			f := whileSettling(t, s, func() {
				user, err := handle(t, s.Client(), small()), error(nil)
				if want == keep {
					_, err = user.Persist(t.Context())
				} else {
					_, err = user.Expire(t.Context(), want)
				}
				noError(t, err)
			})
			check := func() {
				t.Helper()
				if got := pttl(t, s); !bloomtest.IsLeft(got, want) {
					t.Errorf("%s: the TTL is %v, want %v", name, got, want)
				}
			}
			check()
			s.ResetStats()
			add(t, f, "b", true)
			add(t, handle(t, s.Client(), expiring(time.Hour)), "c", true)
			wantRequests(t, s, 2) // nobody settles again
			check()
		})
	}
}

// whileSettling makes a filter by an Add, and calls do when the script comes that
// settles its TTL.
func whileSettling(t *testing.T, s *upstashtest.Server, do func()) *bloom.Filter {
	t.Helper()
	c, w := watch(t, s)
	f := handle(t, c, expiring(time.Hour))
	w.Arrive = func(int) {
		if strings.HasPrefix(w.Bodies[len(w.Bodies)-1], `["EVAL"`) {
			do()
		}
	}
	add(t, f, "a", true)
	w.Arrive = nil
	if len(w.Bodies) != 2 {
		t.Fatalf("%d requests, want the Add and its settling", len(w.Bodies))
	}
	return f
}

// The script for the TTL also checks the header. If something else is at the
// key by then, the script leaves it alone.
func TestSettlingLooksAgain(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		other := handle(t, s.Client(), sparse())
		for name, put := range map[string]func(){
			"another filter": func() { create(t, other, true) },
			"a text":         func() { do(t, s, "SET", key, "some text of theirs") },
			"a list":         func() { do(t, s, "RPUSH", key, "theirs") },
		} {
			s.FlushAll()
			whileSettling(t, s, func() { do(t, s, "DEL", key); put() })
			if got := pttl(t, s); got != -1 {
				t.Errorf("%s: the TTL is %v, want none", name, got)
			}
		}
		s.FlushAll()
		whileSettling(t, s, func() { do(t, s, "DEL", key) })
		wantNoKey(t, s, key)
	})
}

// overHTTP is a transport until the end of the test.
func overHTTP(t *testing.T) upstash.Transport {
	next := httptransport.New(nil)
	t.Cleanup(func() { _ = next.Close() })
	return next
}

// A late settling sets no TTL on a filter that another program has made since,
// without a TTL.
func TestLateSettlingMeetsAnotherFilter(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, there := range []bool{false, true} { // a filter whose TTL nobody has settled
			w := bloomtest.NewWire(t)
			late := w.Keep(`["EVAL`)
			cfg := small()
			plain := handle(t, s.Client(), cfg)
			cfg.TTL = time.Hour
			f := handle(t, s.Client(upstash.WithTransport(w), upstash.WithRetry(0)), cfg)
			noError(t, errorOf(plain.Delete(t.Context())))
			if there {
				add(t, plain, "z", true)
			}
			wantError(t, errorOf(f.Add(t.Context(), "a")), bloom.ErrNoTTL)
			noError(t, errorOf(plain.Delete(t.Context())))
			add(t, plain, "b", true)
			late.Arrive(t)
			wantNoTTL(t, s)
			add(t, handle(t, s.Client(), cfg), "c", true) // a new writer settles it
			wantTTL(t, s, time.Hour)
		}
	})
}

// lastMoment has the scripts of moves find a PTTL of 0: less than a millisecond
// is left.
type lastMoment struct{ upstash.Transport }

func (l lastMoment) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	at := *req
	for _, ask := range []string{"redis.call('PTTL', KEYS[1])", "call('PTTL', KEYS[1])"} {
		at.Body = bytes.ReplaceAll(at.Body, []byte(ask), []byte("0"))
	}
	return l.Transport.RoundTrip(ctx, &at, resp)
}

// A filter in its last millisecond still expires after Merge or Replace.
func TestMovesAtTheEndOfTheTTL(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for name, move := range map[string]func(f *bloom.Filter) error{
			"Merge":   func(f *bloom.Filter) error { return errorOf(f.Merge(t.Context(), localOf(f, 0, 9))) },
			"Replace": func(f *bloom.Filter) error { return f.Replace(t.Context(), localOf(f, 0, 9)) },
		} {
			made := handle(t, s.Client(), small())
			create(t, made, true)
			noError(t, errorOf(made.Expire(t.Context(), time.Hour)))
			c := s.Client(upstash.WithTransport(lastMoment{overHTTP(t)}))
			noError(t, move(handle(t, c, small())))
			if left := pttl(t, s); left == -1 || left > time.Millisecond {
				t.Errorf("%s: PTTL %v, want a millisecond at most, or no filter", name, left)
			}
			do(t, s, "DEL", key)
		}
	})
}

// Faults of one request.
var (
	noReply = upstashtest.Drop(upstashtest.AfterExec)
	notSent = upstashtest.Drop(upstashtest.BeforeExec)
)

// A TTL that another program has set is not prolonged by the settling.
func TestSettlingProlongsNoTTL(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		add(t, handle(t, s.Client(), small()), "a", true)
		do(t, s, "PEXPIRE", key, "60000")
		add(t, handle(t, s.Client(), expiring(time.Hour)), "b", true)
		wantTTL(t, s, time.Minute)
	})
}
