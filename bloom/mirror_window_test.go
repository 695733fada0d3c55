package bloom_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// The tests of a Mirror of a Window. Its server and all clients live by one clock.

func tenMinutes() bloom.WindowConfig {
	return bloom.WindowConfig{Capacity: 1000, FPRate: 1e-6, Span: 10 * time.Minute}
}

const tenMinutePane = 605 * time.Second

// windowMirror makes a Mirror of a window, with a client of its own.
func windowMirror(t *testing.T, s *upstashtest.Server, clock *clock, w bloom.WindowConfig, cfg bloom.MirrorConfig,
	opts ...upstash.Option,
) (*bloom.Mirror, *timed) {
	t.Helper()
	c, wire := timedClient(t, s, clock, append([]upstash.Option{upstash.WithRetry(0)}, opts...)...)
	m := newMirror(t, window(t, c, w), cfg)
	m.SetClock(clock.Now)
	return m, wire
}

// A mirroredWindow is a window of ten minutes with one pane, and its Mirror with a client
// of its own, on one clock. It begins so long after the beginning of a pane.
type mirroredWindow struct {
	clock *clock
	s     *upstashtest.Server
	w     *bloom.Window
	m     *bloom.Mirror
	wire  *timed // of the Mirror
}

func newMirroredWindow(t *testing.T, after time.Duration, cfg bloom.MirrorConfig) mirroredWindow {
	t.Helper()
	x := mirroredWindow{clock: newServerClock(), s: upstashtest.NewServer(t)}
	toPane(x.clock, tenMinutePane, after)
	c, _ := timedClient(t, x.s, x.clock)
	x.w = window(t, c, tenMinutes())
	x.m, x.wire = windowMirror(t, x.s, x.clock, tenMinutes(), cfg)
	return x
}

// lose loses all further requests, or none.
func (w *timed) lose(all bool) {
	w.before, w.time = nil, nil
	if all {
		w.before, w.time = func(string) error { return errLost }, func() error { return errLost }
	}
}

// toPane lets the clock pass until so long after the beginning of a pane.
func toPane(clock *clock, pane, after time.Duration) {
	phase := time.Duration(clock.Now().Unix()%int64(pane/time.Second)) * time.Second
	clock.pass((pane+after-phase)%pane + pane)
}

// wantCopy checks what a look-up answers, without a request.
func wantCopy(t *testing.T, m *bloom.Mirror, wire *timed, item string, want bool) {
	t.Helper()
	wire.sent()
	found, err := m.Exists(t.Context(), item)
	if n := wire.sent(); found != want || err != nil || n != 0 {
		t.Errorf("Exists(%s) = %v, %v in %d requests, want %v from the copy", item, found, err, n, want)
	}
}

// Whatever happens, a fresh copy says what the window says.
func TestMirrorOfAWindowSaysWhatItSays(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		clock, s := newServerClock(), upstashtest.NewServer(t)
		cfg := bloom.WindowConfig{Capacity: 300, FPRate: 0.01, Span: 40 * time.Second, Panes: 1 + rng.IntN(4)}
		pane := (cfg.Span + 5*time.Second + time.Duration(cfg.Panes)*time.Second - 1) / time.Duration(cfg.Panes) /
			time.Second * time.Second
		c, _ := timedClient(t, s, clock)
		w := window(t, c, cfg)
		create(t, w, true)
		m, _ := windowMirror(t, s, clock, cfg, bloom.MirrorConfig{MaxStale: time.Second})
		items := make([]string, 60)
		for i := range items {
			items[i] = fmt.Sprint("item ", i)
		}
		for range 60 {
			switch rng.IntN(8) {
			case 0:
				clock.pass(time.Duration(rng.Int64N(int64(4*pane/time.Second))) * time.Second)
			case 1, 2, 3:
				clock.pass(time.Duration(rng.Int64N(int64(pane/time.Second))) * time.Second)
			}
			for range rng.IntN(4) {
				item := items[rng.IntN(len(items))]
				if rng.IntN(3) == 0 {
					noError(t, errorOf(m.AddThrough(t.Context(), item)))
				} else {
					noError(t, errorOf(w.Add(t.Context(), item)))
				}
			}
			noError(t, m.Refresh(t.Context()))
			want, err := w.ExistsAll(t.Context(), items)
			noError(t, err)
			got, err := m.ExistsAll(t.Context(), items)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("seed %d: the copy says %v, %v, and the window %v", seed, got, err, want)
			}
		}
		if s := m.Stats(); s.Asked > 100 {
			t.Errorf("seed %d: %d items were asked about, most should be answered by the copy", seed, s.Asked)
		}
	}
}

// In an outage the copy forgets by itself: an item no sooner than a Span after its
// Add, and no later than three panes.
func TestMirrorOfAWindowForgetsInAnOutage(t *testing.T) {
	x := newMirroredWindow(t, tenMinutePane-10*time.Second,
		bloom.MirrorConfig{MaxStale: time.Minute, StaleIfError: 100 * time.Hour})
	m, clock := x.m, x.clock
	add(t, x.w, "late in its pane", true)
	clock.pass(20 * time.Second)
	add(t, x.w, "early", true)
	noError(t, m.Refresh(t.Context()))
	x.wire.lose(true)
	clock.pass(9*time.Minute + 40*time.Second) // a Span after the first Add
	exists(t, m, "late in its pane", present)
	exists(t, m, "early", present)
	exists(t, m, "never added", absent)
	clock.pass(30 * time.Second)
	exists(t, m, "late in its pane", absent)
	exists(t, m, "early", present)
	clock.pass(tenMinutePane)
	exists(t, m, "early", absent)
	clock.pass(50 * tenMinutePane)
	exists(t, m, "early", absent)
	exists(t, m, "never added", absent)
	clock.pass(100 * time.Hour)
	if _, err := m.Exists(t.Context(), "never added"); err == nil {
		t.Error("a no counts for longer than StaleIfError")
	}
}

// The clocks of the process are wrong: a suspended one says no "no" too soon, and
// asks before it says "yes" for too long.
func TestMirrorOfAWindowOfAProcessWithWrongClocks(t *testing.T) {
	for name, tt := range map[string]struct {
		wall, monotonic time.Duration // what the clocks show of two panes
		requests        int           // a refresh learns the time: two
	}{
		"right":          {2 * tenMinutePane, 2 * tenMinutePane, 0},
		"suspended":      {2 * tenMinutePane, 0, 2},
		"jumped ahead":   {1000 * time.Hour, 2 * tenMinutePane, 0},
		"set back":       {-1000 * time.Hour, 2 * tenMinutePane, 0},
		"a wrong second": {2*tenMinutePane + time.Second, 2 * tenMinutePane, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server, s := newServerClock(), upstashtest.NewServer(t)
			toPane(server, tenMinutePane, time.Minute)
			wall, elapsed := server.Now(), time.Duration(0)
			c, wire := timedClient(t, s, server, upstash.WithRetry(0), door.WithClock(
				func() time.Time { return wall }, func() time.Duration { return elapsed }).(upstash.Option))
			w := window(t, c, tenMinutes())
			add(t, w, "a", true)
			m := newMirror(t, w, bloom.MirrorConfig{MaxStale: 9 * time.Minute})
			own := newClock()
			m.SetClock(own.Now)
			noError(t, m.Refresh(t.Context()))
			wantCopy(t, m, wire, "a", present)
			server.pass(2 * tenMinutePane)
			wall, elapsed = wall.Add(tt.wall), elapsed+tt.monotonic
			wire.sent()
			found, err := m.Exists(t.Context(), "a")
			if n := wire.sent(); found || err != nil || n != tt.requests {
				t.Errorf("Exists = %v, %v with %d requests, want false with %d", found, err, n, tt.requests)
			}
		})
	}
}

// A wall clock that jumps ahead makes no "no" in an outage.
func TestMirrorOfAWindowDoesNotForgetByTheWallClock(t *testing.T) {
	server, s := newServerClock(), upstashtest.NewServer(t)
	wall, elapsed := server.Now(), time.Duration(0)
	c, wire := timedClient(t, s, server, upstash.WithRetry(0), door.WithClock(
		func() time.Time { return wall }, func() time.Duration { return elapsed }).(upstash.Option))
	w := window(t, c, tenMinutes())
	add(t, w, "a", true)
	m := newMirror(t, w, bloom.MirrorConfig{MaxStale: time.Minute, StaleIfError: time.Hour})
	own := newClock()
	m.SetClock(own.Now)
	noError(t, m.Refresh(t.Context()))
	wire.lose(true)
	wall, elapsed = wall.Add(50*time.Hour), elapsed+2*time.Minute
	own.pass(2 * time.Minute)
	for range 2 {
		if found, err := m.Exists(t.Context(), "a"); !found || err != nil {
			t.Errorf("Exists = %v, %v, want true: the item is in its Span", found, err)
		}
	}
}

// An Add of a Window renews the item. The copy answers one only if the item is in
// the newest pane: then nothing would change.
func TestMirrorOfAWindowRenews(t *testing.T) {
	x := newMirroredWindow(t, time.Minute, bloom.MirrorConfig{MaxStale: time.Minute})
	m, wire, clock := x.m, x.wire, x.clock
	add(t, m, "a", true)
	wire.sent()
	add(t, m, "a", false)
	if n := wire.sent(); n != 0 {
		t.Errorf("%d requests of an Add that changes nothing, want 0", n)
	}
	clock.pass(tenMinutePane)
	noError(t, m.Refresh(t.Context())) // the copy is in time, and has the item in the older pane
	wantCopy(t, m, wire, "a", present)
	add(t, m, "a", false)
	if n := wire.sent(); n == 0 {
		t.Error("an Add that renews the item was not sent")
	}
	clock.pass(tenMinutePane - 2*time.Minute)
	exists(t, x.w, "a", true)
	wantError(t, m.Refresh(t.Context()), nil)
	wantCopy(t, m, wire, "a", present)
}

// A refresh reads the panes that changed, and no other.
func TestMirrorOfAWindowReadsWhatChanged(t *testing.T) {
	clock, s := newServerClock(), upstashtest.NewServer(t)
	toPane(clock, tenMinutePane, time.Minute)
	big := tenMinutes()
	big.Capacity, big.FPRate, big.Panes = 100_000, 0.01, 1
	c, _ := timedClient(t, s, clock)
	w := window(t, c, big)
	noError(t, errorOf(w.Add(t.Context(), "a")))
	m, wire := windowMirror(t, s, clock, big, bloom.MirrorConfig{MaxStale: time.Minute})
	pane := w.Geometry().Bits / 8
	refresh := func(what string, panes float64, requests int) {
		t.Helper()
		before := s.Stats()
		wire.sent()
		noError(t, m.Refresh(t.Context()))
		read := float64(s.Stats().BytesOut-before.BytesOut) / float64(pane)
		if n := wire.sent(); n != requests || read < 0.7*panes || read > panes+0.1 { // the string may lack its end
			t.Errorf("%s: %d requests, %.2f panes, want %d, %.0f", what, n, read, requests, panes)
		}
	}
	refresh("the first", 1, 2) // with TIME
	refresh("nothing new", 0, 1)
	noError(t, errorOf(w.Add(t.Context(), "b")))
	refresh("one pane changed", 1, 2)
	clock.pass(tenMinutePane)
	noError(t, errorOf(w.Add(t.Context(), "c")))
	refresh("the window has turned", 1, 3)
	wantCopy(t, m, wire, "a", present)
	wantCopy(t, m, wire, "c", present)
	clock.pass(tenMinutePane)
	noError(t, errorOf(w.Add(t.Context(), "d")))
	refresh("and again", 1, 3)
	wantCopy(t, m, wire, "a", absent)
}

// A window that turns, is made anew, goes back, or is gone.
func TestMirrorOfAWindowThatGoes(t *testing.T) {
	x := newMirroredWindow(t, 0, bloom.MirrorConfig{MaxStale: time.Minute})
	s, w, m, wire, clock := x.s, x.w, x.m, x.wire, x.clock
	add(t, w, "old", true)
	noError(t, m.Refresh(t.Context()))
	wantCopy(t, m, wire, "old", present)
	saved, _ := do(t, s, "GET", key).(string)
	clock.pass(2 * tenMinutePane)
	add(t, w, "new", true)
	noError(t, m.Refresh(t.Context()))
	wantCopy(t, m, wire, "old", absent)
	wantCopy(t, m, wire, "new", present)
	if saved != "" { // the database loses the last writes
		do(t, s, "SET", key, saved)
		clock.pass(time.Second)
		noError(t, m.Refresh(t.Context()))
		wantCopy(t, m, wire, "new", absent)
	}
	noError(t, errorOf(w.Delete(t.Context())))
	add(t, w, "other", true)
	clock.pass(61 * time.Second)
	wantLookUp(t, s, m, "new", absent, 2)
	wantCopy(t, m, wire, "other", present)
	noError(t, errorOf(w.Delete(t.Context())))
	wantError(t, m.Refresh(t.Context()), bloom.ErrNotFound)
}

// A turn in the midst of a refresh, and an answer from before it that comes after.
func TestMirrorOfAWindowThatTurnsMeanwhile(t *testing.T) {
	for _, at := range []int{1, 2} {
		x := newMirroredWindow(t, tenMinutePane-time.Minute, bloom.MirrorConfig{MaxStale: time.Minute})
		w, m, wire, clock := x.w, x.m, x.wire, x.clock
		add(t, w, "a", true)
		noError(t, m.Refresh(t.Context()))
		clock.pass(tenMinutePane + 50*time.Second)
		add(t, w, "b", true)
		evals := 0
		wire.before = func(body string) error {
			if strings.Contains(body, "EVAL") {
				if evals++; evals == at {
					clock.pass(20 * time.Second)
					add(t, w, "c", true)
				}
			}
			return nil
		}
		noError(t, m.Refresh(t.Context()))
		wire.before = nil
		wantCopy(t, m, wire, "a", absent)
		wantCopy(t, m, wire, "b", present)
		if at == 1 {
			wantCopy(t, m, wire, "c", present)
		}
	}
}

// To a token that may not run TIME the copy speaks as of the last turn, as the window
// does.
func TestMirrorOfAWindowWithoutTIME(t *testing.T) {
	x := newMirroredWindow(t, 0, bloom.MirrorConfig{MaxStale: time.Minute, StaleIfError: time.Hour})
	w, m, wire, clock := x.w, x.m, x.wire, x.clock
	add(t, w, "a", true)
	wire.refuseTime = true
	noError(t, m.Refresh(t.Context()))
	wantCopy(t, m, wire, "x", absent)
	wantCopy(t, m, wire, "a", present)
	clock.pass(10 * tenMinutePane)
	exists(t, m, "a", true)
	add(t, w, "b", true)
	noError(t, m.Refresh(t.Context()))
	wantCopy(t, m, wire, "a", absent)
	wire.before = func(string) error { return errLost }
	clock.pass(2 * time.Minute)
	exists(t, m, "b", true)
	exists(t, m, "a", false)
}

// An answer from before a turn comes after one from behind it. The copy takes of it
// what the turn left.
func TestMirrorOfAWindowTakesALateAnswer(t *testing.T) {
	x := newMirroredWindow(t, time.Minute, bloom.MirrorConfig{})
	w, m, wire, clock := x.w, x.m, x.wire, x.clock
	add(t, w, "cleared", true)
	clock.pass(tenMinutePane)
	add(t, w, "left", true)
	wire.after = func(string) error { // the first answer is under way
		wire.after = nil
		clock.pass(tenMinutePane)
		add(t, w, "turns", true)
		exists(t, m, "turns", true)
		return nil
	}
	if _, err := m.ExistsAll(t.Context(), []string{"cleared", "left"}); err != nil {
		t.Fatal(err)
	}
	wantCopy(t, m, wire, "left", present)
	exists(t, m, "cleared", false) // its pane is the spare now, and nothing old is in that
}

// A pane is read, and then cleared before the refresh is over.
func TestMirrorOfAWindowClearsADownload(t *testing.T) {
	clock, s := newServerClock(), upstashtest.NewServer(t)
	cfg := tenMinutes()
	cfg.Span, cfg.Panes = 20*time.Minute, 2
	const pane = 603 * time.Second
	toPane(clock, pane, time.Minute)
	for clock.Now().Unix()/603%4 != 0 {
		clock.pass(pane)
	}
	c, _ := timedClient(t, s, clock)
	w := window(t, c, cfg)
	create(t, w, true)
	m, wire := windowMirror(t, s, clock, cfg, bloom.MirrorConfig{MaxStale: time.Minute, StaleIfError: time.Hour})
	noError(t, m.Refresh(t.Context()))
	add(t, w, "a", true) // in pane 0
	clock.pass(2 * pane)
	add(t, w, "b", true) // in pane 2
	evals := 0
	wire.before = func(body string) error {
		if strings.Contains(body, "EVAL") {
			if evals++; evals == 3 { // the count, pane 0, and pane 2
				clock.pass(pane)
				add(t, w, "c", true)
			}
		}
		return nil
	}
	noError(t, m.Refresh(t.Context()))
	if evals != 3 {
		t.Fatalf("%d scripts, want 3", evals)
	}
	wire.lose(true)
	exists(t, m, "a", false)
	exists(t, m, "b", true)
}

// A look-up is answered, and the TIME beside it is not: that begins no outage, and
// the copy has learned of the answer. Late, what may count is a "yes".
func TestMirrorOfAWindowALostTIMEIsNoOutage(t *testing.T) {
	for _, patience := range []time.Duration{0, time.Hour} {
		x := newMirroredWindow(t, 0, bloom.MirrorConfig{StaleIfError: patience})
		m, wire := x.m, x.wire
		add(t, x.w, "a", true)
		wire.time = func() error { return errLost }
		found, err := m.Exists(t.Context(), "a")
		if found != (patience > 0) || (err == nil) != (patience > 0) {
			t.Errorf("StaleIfError %v: Exists = %v, %v", patience, found, err)
		}
		wantOutage(t, m, false)
		if n := m.Stats().SetBits; n == 0 {
			t.Error("the copy has not learned of the answer")
		}
		wire.time = nil
		exists(t, m, "a", true)
	}
}

// A pane was cleared since the last refresh, and has as many bits again. It is read.
func TestMirrorOfAWindowCountsOfAClearedPane(t *testing.T) {
	x := newMirroredWindow(t, time.Minute, bloom.MirrorConfig{MaxStale: time.Minute})
	w, m := x.w, x.m
	add(t, w, "a", true)
	noError(t, m.Refresh(t.Context()))
	before := m.Stats().SetBits
	x.clock.pass(3 * tenMinutePane) // the same pane
	add(t, w, "b", true)
	noError(t, m.Refresh(t.Context()))
	if n := m.Stats().SetBits; n != before {
		t.Fatalf("%d bits, and %d before: choose other items", n, before)
	}
	wantCopy(t, m, x.wire, "b", present)
	wantCopy(t, m, x.wire, "a", absent)
}

// Rule 3: a turn, or what sets a TTL, finds that the filter has gone since the answer
// to the Add. The Mirror's next look-up asks.
func TestMirrorHearsOfWhatFollowsAnAdd(t *testing.T) {
	clock, s := newServerClock(), upstashtest.NewServer(t)
	c, wire := timedClient(t, s, clock)
	goes := func(body string) error {
		if strings.HasPrefix(body, `["EVAL`) {
			do(t, s, "DEL", key)
		}
		return nil
	}
	for name, f := range map[string]bloom.Mirrorable{
		"TTL":  handle(t, c, expiring(time.Hour)),
		"turn": window(t, c, tenMinutes()),
	} {
		t.Run(name, func(t *testing.T) {
			do(t, s, "DEL", key)
			if name == "turn" {
				add(t, f.(*bloom.Window), "old", true)
				clock.pass(tenMinutePane)
			}
			m := newMirror(t, f, bloom.MirrorConfig{})
			m.SetClock(clock.Now)
			wire.before = goes
			defer func() { wire.before = nil }()
			if added, err := m.Add(t.Context(), "a"); !added || err != nil {
				t.Errorf("Add = %v, %v, want true", added, err)
			}
			_, err := m.Exists(t.Context(), "a")
			wantError(t, err, bloom.ErrNotFound)
		})
	}
}

// Rule 8: it is no outage if the turn after an Add that was answered gets no answer.
func TestMirrorOfAWindowALostTurnIsNoOutage(t *testing.T) {
	x := newMirroredWindow(t, 0, bloom.MirrorConfig{StaleIfError: time.Minute})
	m := x.m
	add(t, m, "old", true)
	x.clock.pass(tenMinutePane)
	x.wire.before = loseOnce(`["EVAL`)
	add(t, m, "a", true)
	wantOutage(t, m, false)
}
