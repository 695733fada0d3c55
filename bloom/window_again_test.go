package bloom_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// nth runs do when the n-th Add is sent or answered.
func nth(n int, do func() error) func(string) error {
	return func(body string) error {
		if strings.Contains(body, "INCRBY") {
			if n--; n == 0 {
				return do()
			}
		}
		return nil
	}
}

// A process can be frozen for so long that its repeated Add is the first write
// after a long pause. The panes are turned then too.
func TestWindowFrozenForPanes(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		c, wire := timedClient(t, s, clock)
		w := window(t, c, day())
		add(t, w, "a", true)
		wire.after = nth(1, func() error { clock.pass(3 * dayPane); return nil })
		add(t, w, "b", true)
		exists(t, w, "b", true)
		other, _ := timedClient(t, s, clock)
		add(t, window(t, other, day()), "c", true)
		add(t, w, "b", false)
		clock.pass(23 * time.Hour)
		exists(t, w, "b", true)
	})
}

// After a long pause the first answer does not count. If the Add that follows
// the turn loses an attempt, its "seen" is uncertain.
func TestWindowLostAfterTurn(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		c, wire := timedClient(t, s, clock)
		w := window(t, c, day())
		add(t, w, "a", true)
		clock.pass(7 * dayPane)
		wire.after = nth(2, func() error { return errLost })
		if added, err := w.Add(t.Context(), "b"); added || !errors.Is(err, bloom.ErrUncertain) {
			t.Errorf("Add = %v, %v, want ErrUncertain", added, err)
		}
	})
}

// If an Add is uncertain and its repetition in a later epoch fails, the error
// says both.
func TestWindowUncertainAndNotRepeated(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		c, wire := timedClient(t, s, clock)
		w := window(t, c, day())
		add(t, w, "a", true)
		n := 0
		wire.after = func(body string) error {
			if !strings.Contains(body, "INCRBY") {
				return nil
			}
			if n++; n == 2 {
				clock.pass(30 * time.Hour)
				return nil
			}
			return errLost
		}
		added, err := w.Add(t.Context(), "b")
		if added || !errors.Is(err, bloom.ErrUncertain) || !errors.Is(err, errLost) || !bloom.InFilter(err) {
			t.Errorf("Add = %v, %v, want ErrUncertain and the loss", added, err)
		}
	})
}

// If an answer does not count, the turn clears its bits. If nothing follows it,
// the items of a batch are not in.
func TestWindowBatchNotRepeated(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		c, wire := timedClient(t, s, clock)
		w := window(t, c, day())
		add(t, w, "a", true)
		clock.pass(7 * dayPane)
		n := 0
		wire.before = func(body string) error {
			if strings.Contains(body, "INCRBY") {
				if n++; n > 1 {
					return errLost
				}
			}
			return nil
		}
		_, err := w.AddAll(t.Context(), []string{"b", "c"})
		var b *bloom.BatchError
		if !errors.As(err, &b) || b.Count(bloom.ItemUnknown) != 2 {
			t.Errorf("AddAll: %v, want two unknown items", err)
		}
	})
}

// An Add loses its answer. In the next epoch another client adds the item,
// finds its bits and is told "seen". Its own bits do not prove to the first Add
// that the item was seen.
func TestWindowSeenByALostAttempt(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		c, wire := timedClient(t, s, clock)
		w := window(t, c, day())
		add(t, w, "a", true)
		wire.after = nth(1, func() error {
			clock.pass(dayPane)
			other, _ := timedClient(t, s, clock)
			add(t, window(t, other, day()), "b", false)
			return errLost
		})
		if added, err := w.Add(t.Context(), "b"); added || !errors.Is(err, bloom.ErrUncertain) {
			t.Errorf("Add = %v, %v, want ErrUncertain", added, err)
		}
	})
}

// Without EVAL a token cannot turn a window after a pause. An Add gives up if
// every answer comes panes too late. Neither answer says anything of the item.
func TestWindowCannotBeTurned(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		c, wire := timedClient(t, s, clock)
		w := window(t, c, day())
		add(t, w, "a", true)
		fails := func(name string, want error) {
			t.Helper()
			added, err := w.Add(t.Context(), "b")
			if added || err == nil || want != nil && !errors.Is(err, want) ||
				!strings.HasPrefix(err.Error(), "bloom: the panes of the window could not be turned") ||
				strings.Contains(err.Error(), "nil") || upstash.SafeToRetry(err) || bloom.InFilter(err) {
				t.Errorf("%s: Add = %v, %v, want false and why the panes could not be turned",
					name, added, err)
			}
		}
		clock.pass(7 * dayPane)
		s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
			return upstashtest.NoPermission("EVAL")
		})
		fails("refused", upstash.ErrNoPermission)
		s.InjectFunc(nil)
		wire.after = func(body string) error {
			if strings.Contains(body, "INCRBY") {
				clock.pass(7 * dayPane)
			}
			return nil
		}
		fails("too late each time", nil)
		wire.after = nil
		add(t, w, "b", true)
	})
}
