package bloom_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

var errLost = errors.New("the answer is lost")

// loseOnce loses the answer to the next request whose body contains text.
func loseOnce(text string) func(string) error {
	lost := false
	return func(body string) error {
		if lost || !strings.Contains(body, text) {
			return nil
		}
		lost = true
		return errLost
	}
}

// After a lost answer "seen" is uncertain, whatever other panes say: a client
// found the bits of the lost attempt, was told "seen", and set bits elsewhere.
func TestWindowAfterALostAnswer(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		c, wire := timedClient(t, s, clock)
		w := window(t, c, day())
		add(t, w, "old", true)
		clock.pass(dayPane)
		add(t, w, "now", true)
		for item, want := range map[string]error{"new": bloom.ErrUncertain, "now": bloom.ErrUncertain, "old": bloom.ErrUncertain} {
			wire.after = loseOnce("INCRBY")
			added, err := w.Add(t.Context(), item)
			if added || !errors.Is(err, want) || !bloom.InFilter(err) {
				t.Errorf("Add(%s) = %v, %v, want false, %v", item, added, err, want)
			}
			wire.after = nil
			exists(t, w, item, true)
		}
		// If an attempt did not arrive, a bit was left at 0.
		wire.before = loseOnce("INCRBY")
		add(t, w, "never arrived", true)
	})
}

// If a process was frozen while its command was under way, it adds the item
// again, and the item lives for its Span. Whether it was new is not known: in
// the meantime others may have found it.
func TestWindowInAFrozenProcess(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		c, wire := timedClient(t, s, clock)
		w := window(t, c, day())
		add(t, w, "a", true)
		frozen := false
		wire.after = func(body string) error {
			if !frozen && strings.Contains(body, "INCRBY") {
				frozen = true
				clock.pass(30 * time.Hour)
			}
			return nil
		}
		if added, err := w.Add(t.Context(), "b"); added || err != bloom.ErrUncertain {
			t.Errorf("Add = %v, %v, want ErrUncertain", added, err)
		}
		clock.pass(24 * time.Hour)
		exists(t, w, "b", true)

		// If the second command fails, there is no answer. The item is in, but may
		// be forgotten early.
		frozen = false
		wire.before = func(body string) error {
			if frozen && strings.Contains(body, "INCRBY") {
				return errLost
			}
			return nil
		}
		added, err := w.Add(t.Context(), "c")
		if added || !errors.Is(err, bloom.ErrUncertain) || !errors.Is(err, errLost) || !bloom.InFilter(err) ||
			upstash.SafeToRetry(err) {
			t.Errorf("Add = %v, %v, want ErrUncertain and the loss, not safe to retry", added, err)
		}
		exists(t, w, "c", true)
	})
}

// A late or repeated turn changes nothing: the window's word is no longer the
// one its caller saw.
func TestWindowLateTurn(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		c, wire := timedClient(t, s, clock)
		w := window(t, c, day())
		add(t, w, "a", true)
		clock.pass(dayPane)
		turn := ""
		wire.before = func(body string) error {
			if strings.Contains(body, "EVAL") {
				turn = body
				return errLost // it is on its way, and slow
			}
			return nil
		}
		add(t, w, "b", true) // the answer counts without the turn
		wire.before = nil
		add(t, w, "c", true) // turns
		clock.pass(dayPane)
		add(t, w, "d", true)
		before := stored(t, s)
		if turn == "" {
			t.Fatal("no turn was sent")
		}
		var resp upstash.Response
		req := &upstash.Request{URL: s.URL + "/", Body: []byte(turn), MaxResponse: 1 << 20}
		req.Header = append(req.Header, upstash.Header{Name: "Authorization", Value: "Bearer " + s.Token})
		if err := wire.next.RoundTrip(context.Background(), req, &resp); err != nil || resp.StatusCode != 200 {
			t.Fatalf("the late turn: %v, status %d, %s", err, resp.StatusCode, resp.Body)
		}
		if stored(t, s) != before {
			t.Error("a late turn changed the window")
		}
		exists(t, w, "b", true)
	})
}

// Each pane is sized for the whole Capacity, so a burst within a Span keeps the
// rate.
func TestMeasuredRatesOfWindow(t *testing.T) {
	s := upstashtest.NewServer(t)
	clock := newServerClock()
	c, _ := timedClient(t, s, clock)
	for _, panes := range []int{1, 2, 4} {
		if panes != 1 && !testenv.Long() {
			continue
		}
		s.FlushAll()
		cfg := bloom.WindowConfig{Capacity: 5000, FPRate: 0.01, Span: time.Hour, Panes: panes}
		w := window(t, c, cfg)
		// One burst in each epoch, until every pane is full.
		for burst := range panes + 2 {
			mustAdd(t, w, numbered("item"+string(rune('a'+burst)), 5000)...)
			if burst <= panes {
				clock.pass(time.Hour/time.Duration(panes) + 5*time.Second)
			}
		}
		asked := 160_000 // the standard error is 2.5%
		if !testenv.Long() {
			asked = 40_000 // it is 5%
		}
		found, err := w.ExistsAll(t.Context(), numbered("other", asked))
		noError(t, err)
		rate := float64(count(found)) / float64(asked)
		if t.Logf("%d panes: %.5f", panes, rate); rate > 0.011 || rate < 0.009 {
			t.Errorf("%d panes: a rate of %v, promised 0.01", panes, rate)
		}
	}
}

// If the token may not run BITFIELD, the nearest region is asked instead. It
// forgets by the server's clock, as the primary does.
func TestWindowForgetsInARegion(t *testing.T) {
	clock, s := newServerClock(), upstashtest.NewServer(t)
	c, _ := timedClient(t, s, clock)
	w := window(t, c, day())
	add(t, w, "a", true)
	s.InjectFunc(func(_ int64, q upstashtest.RequestInfo) upstashtest.Fault {
		if q.Commands[0] == "BITFIELD" {
			return upstashtest.NoPermission("BITFIELD")
		}
		return upstashtest.Fault{}
	})
	exists(t, w, "a", true)
	clock.pass(4 * dayPane)
	other, _ := timedClient(t, s, clock) // it does not know the server's time yet
	for _, w := range []*bloom.Window{w, window(t, other, day())} {
		if found, err := w.Exists(t.Context(), "a"); found || err == nil {
			t.Errorf("Exists = %v, %v, want false and an error: the region may lag", found, err)
		}
	}
}
