package bloom_test

import (
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// The answers to a handle's writes lead to a warning, after single Adds and
// batches, without random looks.
func TestWindowWarnFillFromAnswers(t *testing.T) {
	neverByLot(t)
	for _, batch := range []int{1, 10, 1000} {
		if batch == 1 && !testenv.Long() {
			continue
		}
		s := upstashtest.NewServer(t)
		warnings := 0
		w := window(t, s.Client(), bloom.WindowConfig{
			Capacity: 4000, FPRate: 0.001, Span: time.Hour, ExpireIdle: true, WarnFill: func(st bloom.WindowStats) {
				warnings++
				if !st.OverCapacity() || st.Capacity != 4000 || st.TTL <= 0 || st.Panes[1].Items > 5200 {
					t.Errorf("batches of %d: a warning with %+v, want over 4,000 items, 5,200 at most, and a TTL",
						batch, st)
				}
			},
		})
		items := numbered("item", 8000)
		for n := 0; n < len(items); n += batch {
			if n == 4000 && warnings != 0 {
				t.Errorf("batches of %d: a warning within the capacity", batch)
			}
			mustAdd(t, w, items[n:n+batch]...)
		}
		if warnings != 1 {
			t.Errorf("batches of %d: %d warnings, want one", batch, warnings)
		}
	}
}

// Each pane may take the Capacity. What counts is the pane that takes the
// items, even if an older pane holds them too.
func TestWindowWarnFillCountsByPane(t *testing.T) {
	neverByLot(t)
	for epochs := range 3 {
		for _, batch := range []int{1, 50} {
			clock := newServerClock()
			c, requests := timedClient(t, upstashtest.NewServer(t), clock)
			warnings := 0
			w := window(t, c, bloom.WindowConfig{
				Capacity: 1000, FPRate: 0.01, Span: 24 * time.Hour,
				WarnFill: func(bloom.WindowStats) { warnings++ },
			})
			items := numbered("item", 1300)
			for range epochs { // the same items in each of them
				wantAdds(t, w, items[:950], 950)
				clock.pass(dayPane)
			}
			wantAdds(t, w, items[:950], batch)
			if warnings != 0 || requests.count("BITCOUNT") > 1 {
				t.Errorf("epoch %d: %d warnings and %d looks, want none of a window within its capacity, one by chance",
					epochs, warnings, requests.count("BITCOUNT"))
			}
			wantAdds(t, w, items[950:], batch)
			if warnings != 1 {
				t.Errorf("epoch %d, batches of %d: %d warnings of 1,300 items in a pane, want 1",
					epochs, batch, warnings)
			}
		}
	}
}

// Items held by an older pane are seen, and fill the pane that takes them.
func TestWindowWarnFillOfSeenItems(t *testing.T) {
	neverByLot(t)
	clock := newServerClock()
	c, _ := timedClient(t, upstashtest.NewServer(t), clock)
	cfg := bloom.WindowConfig{Capacity: 1000, FPRate: 0.01, Span: 24 * time.Hour}
	items := numbered("item", 1300)
	wantAdds(t, window(t, c, cfg), items, 100)
	clock.pass(dayPane)
	warned := uint64(0)
	cfg.WarnFill = func(st bloom.WindowStats) { warned = max(warned, st.Panes[1].Items) }
	wantAdds(t, window(t, c, cfg), items, 100)
	if warned == 0 {
		t.Error("no warning of a pane with 1,300 items, all of which an older pane holds")
	}
}

// A handle for a single Add looks by chance: in time, and never more often than
// for one write in ten.
func TestWindowWarnFillByLot(t *testing.T) {
	seeded(t)
	late, looks, writes := 0, 0, 0
	runs := 10
	if testenv.Long() {
		runs = 30
	}
	for range runs {
		s := upstashtest.NewServer(t)
		c, requests := timedClient(t, s, newServerClock())
		var warned atomic.Bool
		cfg := bloom.WindowConfig{Capacity: 200, FPRate: 0.01, Span: 24 * time.Hour}
		geo, err := cfg.Geometry()
		noError(t, err)
		cfg.WarnFill = func(st bloom.WindowStats) {
			warned.Store(true)
			if !st.OverCapacity() || st.Geometry != geo {
				t.Errorf("a warning with %+v", st)
			}
		}
		for i, item := range numbered("item", 320) {
			if i == 200 {
				looks, writes = looks+requests.count("BITCOUNT"), writes+i
				if warned.Load() {
					t.Error("a warning within the capacity")
				}
			}
			noError(t, errorOf(window(t, c, cfg).Add(t.Context(), item)))
			if warned.Load() {
				break
			}
		}
		if !warned.Load() {
			late++
		}
	}
	if late > 1 {
		t.Errorf("%d of %d windows for 200 items had no warning before 320", late, runs)
	}
	if looks == 0 || looks > writes/10 {
		t.Errorf("%d looks in %d writes, want some, one in ten writes at most", looks, writes)
	}
}

// A failed look changes nothing of the Add.
func TestWindowWarnFillLookFails(t *testing.T) {
	old := bloom.SetLot(func() float64 { return 0 })
	t.Cleanup(func() { bloom.SetLot(old) })
	s := upstashtest.NewServer(t)
	s.InjectFunc(func(_ int64, q upstashtest.RequestInfo) (f upstashtest.Fault) {
		if q.Commands[0] == "BITCOUNT" {
			f = upstashtest.CommandError("ERR no look")
		}
		return f
	})
	c, requests := timedClient(t, s, newServerClock())
	w := window(t, c, bloom.WindowConfig{
		Capacity: 1, FPRate: 0.01, Span: 24 * time.Hour,
		WarnFill: func(bloom.WindowStats) { t.Error("a warning without a look") },
	})
	add(t, w, "a", true)
	add(t, w, "a", false)
	if n := requests.count("BITCOUNT"); n != 2 {
		t.Errorf("%d looks after two Adds, want 2", n)
	}
}

// The figures of WindowConfig.Capacity: both panes of a Span hold too many items.
func TestWindowOverFilled(t *testing.T) {
	for times, want := range map[int]float64{1: 0.001, 2: 0.04, 5: 0.72} {
		clock := newServerClock()
		c, _ := timedClient(t, upstashtest.NewServer(t), clock)
		w := window(t, c, bloom.WindowConfig{Capacity: 2000, FPRate: 0.001, Span: 24 * time.Hour})
		for _, epoch := range []string{"old", "new"} {
			wantAdds(t, w, numbered(epoch, times*2000), 2000)
			clock.pass(dayPane)
		}
		clock.pass(-dayPane)
		found, err := w.ExistsAll(t.Context(), numbered("other", 10_000))
		noError(t, err)
		wrong := 0
		for _, yes := range found {
			if yes {
				wrong++
			}
		}
		sigma := math.Sqrt(want * (1 - want) / 10_000)
		if got := float64(wrong) / 10_000; math.Abs(got-want) > 5*sigma+0.1*want {
			t.Errorf("at %d times the capacity %.4f are found that were never added, want %v", times, got, want)
		}
	}
}

// wantAdds adds items in batches and takes any answer.
func wantAdds(t *testing.T, w *bloom.Window, items []string, batch int) {
	t.Helper()
	for part := range slices.Chunk(items, batch) {
		mustAdd(t, w, part...)
	}
}

// count returns how many requests of the command were sent.
func (w *timed) count(command string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, body := range w.requests {
		if strings.HasPrefix(body, `["`+command+`"`) {
			n++
		}
	}
	return n
}
