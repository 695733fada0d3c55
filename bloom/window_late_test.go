package bloom_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Histories in which commands or their answers wait for as long as a pane. Epoch
// 0 is the one in which a test begins.

// A lateWindow is a window of a day, whose clients share a clock.
type lateWindow struct {
	t     *testing.T
	s     *upstashtest.Server
	clock *serverClock
}

func eachLate(t *testing.T, do func(t *testing.T, l lateWindow)) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		do(t, lateWindow{t, s, newServerClock()})
	})
}

// client returns the window's handle in another process.
func (l lateWindow) client() (*bloom.Window, *timed) {
	c, wire := timedClient(l.t, l.s, l.clock)
	return window(l.t, c, day()), wire
}

// add adds an item by another client.
func (l lateWindow) add(item string, want bool) {
	l.t.Helper()
	w, _ := l.client()
	add(l.t, w, item, want)
}

func (l lateWindow) nextEpoch() { l.clock.pass(dayPane) }

func wantUncertain(t *testing.T, w *bloom.Window, item string) {
	t.Helper()
	if added, err := w.Add(t.Context(), item); added || !errors.Is(err, bloom.ErrUncertain) {
		t.Errorf("Add(%s) = %v, %v, want ErrUncertain", item, added, err)
	}
	exists(t, w, item, true)
}

// An attempt runs in epoch 0, and its answer is lost. In epoch 1 another client
// finds its bits, is told "seen", and sets its own. In epoch 2 a third one turns
// the window, which clears the pane of the attempt. The attempt's repetition
// finds the second client's bits. It must not say "seen": nobody was told "new".
func TestWindowRetryAfterATurn(t *testing.T) {
	eachLate(t, func(t *testing.T, l lateWindow) {
		l.add("begin", true)
		w, wire := l.client()
		wire.after = nth(1, func() error {
			l.nextEpoch()
			l.add("b", false)
			l.nextEpoch()
			l.add("tick", true)
			return errLost
		})
		wantUncertain(t, w, "b")
	})
}

// In epoch 1 an Add is refused with 429, and waits until epoch 3. The window has
// been idle since epoch 0. Another client's first command sets its bits in pane
// 0 of 3, which is yet to be cleared, and counts for the Add that waited. It must
// not say "seen", as the other one will: nobody was told "new".
func TestWindowIdleAndRateLimited(t *testing.T) {
	eachLate(t, func(t *testing.T, l lateWindow) {
		l.add("begin", true)
		l.nextEpoch()
		other, otherWire := l.client()
		ran, goOn, told := make(chan struct{}), make(chan struct{}), make(chan bool)
		otherWire.after = nth(1, func() error { // it has not turned the window yet
			close(ran)
			<-goOn
			return nil
		})
		w, wire := l.client()
		attempts := 0
		wire.before = func(body string) error {
			if attempts++; attempts == 1 {
				return errTooMany
			}
			if attempts == 2 {
				l.clock.pass(2 * dayPane)
				go func() {
					added, err := other.Add(t.Context(), "b")
					told <- added || err != nil
				}()
				<-ran
			}
			return nil
		}
		add(t, w, "b", true)
		close(goOn)
		if <-told {
			t.Error("the other client is told that it is new, or has an error, want seen")
		}
	})
}

// A command is aimed at epoch 0 and runs in epoch 2, before anybody has turned
// the window from 1 to 2. Its bits are in the pane that this turn clears, and do
// not count for those who add the item now. So its answer "new" decides nothing.
func TestWindowLateNew(t *testing.T) {
	eachLate(t, func(t *testing.T, l lateWindow) {
		l.add("begin", true)
		w, wire := l.client()
		wire.before = nth(1, func() error {
			l.nextEpoch()
			l.add("tick", true)
			l.nextEpoch()
			return nil
		})
		wire.after = nth(1, func() error {
			l.add("b", true)
			return nil
		})
		wantUncertain(t, w, "b")
	})
}

// The clock of a process is wrong by an hour, and agrees with the window's last
// turn. A look-up does not believe it: old items are not found.
func TestWindowReaderWithAWrongClock(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		cfg := bloom.WindowConfig{Capacity: 1000, FPRate: 1e-6, Span: 10 * time.Minute}
		c, _ := timedClient(t, s, clock)
		add(t, window(t, c, cfg), "a", true)
		turned := clock.read()
		clock.pass(time.Hour)
		wrong, wire := timedClient(t, s, clock, upstash.WithClock(
			func() time.Time { return turned }, func() time.Duration { return 0 }))
		exists(t, window(t, wrong, cfg), "a", false)
		if n := wire.sent(); n != 3 { // a look-up, TIME and a turn
			t.Errorf("%d requests, want 3", n)
		}
	})
}

// A reader that does not know the time asks for it if it finds something. If it
// gets no answer, it has none either. What it does not find is not there.
func TestWindowReaderWithoutAnAnswerToTIME(t *testing.T) {
	eachLate(t, func(t *testing.T, l lateWindow) {
		l.add("a", true)
		w, wire := l.client()
		wire.time = func() error { return errLost }
		if found, err := w.Exists(t.Context(), "a"); found || !errors.Is(err, errLost) || !upstash.SafeToRetry(err) {
			t.Errorf("Exists = %v, %v, want the error of TIME", found, err)
		}
		found, err := w.ExistsAll(t.Context(), []string{"b", "a"})
		var b *bloom.BatchError
		if !errors.As(err, &b) || count(found) != 0 || b.Count(bloom.ItemNotDone) != 2 {
			t.Errorf("ExistsAll = %v, %v, want two items without an answer", found, err)
		}
		exists(t, w, "b", false)
	})
}

// An answer counts until a second after the end of its epoch. One that comes
// later is asked for again.
func TestWindowGrace(t *testing.T) {
	for late, want := range map[time.Duration]int{time.Second: 1, 2 * time.Second: 2} {
		eachLate(t, func(t *testing.T, l lateWindow) {
			left := dayPane - time.Duration(l.clock.read().Unix()%int64(dayPane/time.Second))*time.Second
			l.clock.pass(left - time.Second) // one second before the end
			l.add("a", true)
			w, wire := l.client()
			sent := 0
			wire.before = func(body string) error {
				if strings.Contains(body, "INCRBY") {
					sent++
				}
				return nil
			}
			wire.after = nth(1, func() error { l.clock.pass(late); return nil })
			added, err := w.Add(t.Context(), "b")
			if certain := err == nil && added; sent != want || certain != (want == 1) {
				t.Errorf("an answer %v after the end of its epoch: %d commands, %v, %v, want %d",
					late-time.Second, sent, added, err, want)
			}
		})
	}
}

// After a long pause the first client's command is lost: a turn will clear its
// bits, and nobody counts them. So what it finds after the turn is another
// client's, and certain.
func TestWindowSeenAfterALostCommand(t *testing.T) {
	eachLate(t, func(t *testing.T, l lateWindow) {
		l.add("begin", true)
		l.clock.pass(7 * dayPane)
		w, wire := l.client()
		wire.after = nth(1, func() error {
			l.add("b", true)
			return nil
		})
		add(t, w, "b", false)
	})
}

// A command is repeated although its first attempt never arrived. That attempt
// could have set bits only in the pane of its epoch: what only an older pane
// holds was certainly seen. Each item of a batch is judged by itself.
func TestWindowRepeatedItems(t *testing.T) {
	eachLate(t, func(t *testing.T, l lateWindow) {
		l.add("old", true)
		l.nextEpoch()
		l.add("now", true)
		w, wire := l.client()
		wire.before = nth(1, func() error { return errLost })
		added, err := w.AddAll(t.Context(), []string{"old", "now", "new"})
		var b *bloom.BatchError
		want := []bloom.ItemState{bloom.ItemDone, bloom.ItemUncertain, bloom.ItemDone}
		if !errors.As(err, &b) || !errors.Is(err, bloom.ErrUncertain) || !slices.Equal(b.Items, want) ||
			!slices.Equal(added, []bool{false, false, true}) {
			t.Errorf("AddAll = %v, %v, want seen, uncertain and new", added, err)
		}
	})
}

// The answer to one part of a batch comes late. If its repetition fails, its
// items are unknown. If not, those found by it are uncertain. The other part
// keeps its answers.
func TestWindowLatePartOfABatch(t *testing.T) {
	for name, c := range map[string]struct {
		again error
		want  []bloom.ItemState
	}{
		"repeated": {nil, []bloom.ItemState{bloom.ItemDone, bloom.ItemUncertain}},
		"lost":     {errLost, []bloom.ItemState{bloom.ItemDone, bloom.ItemUnknown}},
	} {
		eachLate(t, func(t *testing.T, l lateWindow) {
			l.add("begin", true)
			client, wire := timedClient(t, l.s, l.clock)
			cfg := day()
			cfg.BatchBytes, cfg.BatchParallel = 1, 1 // an item a part
			w := window(t, client, cfg)
			commands := 0
			wire.after = func(body string) error {
				if !strings.Contains(body, "INCRBY") {
					return nil
				}
				if commands++; commands == 2 {
					l.nextEpoch()
				} else if commands > 2 {
					return c.again
				}
				return nil
			}
			added, err := w.AddAll(t.Context(), []string{"first", "second"})
			var b *bloom.BatchError
			if !errors.As(err, &b) || !slices.Equal(b.Items, c.want) || !added[0] || added[1] ||
				!errors.Is(err, bloom.ErrUncertain) || upstash.SafeToRetry(err) ||
				bloom.InFilter(err) != (c.again == nil) {
				t.Errorf("%s: AddAll = %v, %v, want new and %v", name, added, err, c.want[1])
			}
		})
	}
}
