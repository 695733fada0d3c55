package bloom

import (
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
)

// If a process was suspended, only the wall clock shows the time. If the clock
// was set back, the age is below 0.
func TestAge(t *testing.T) {
	then := time.Now()
	for name, c := range map[string]struct {
		now  time.Time
		want time.Duration
	}{
		"at once": {then, 0},
		"later":   {then.Add(time.Second), time.Second},
		"frozen":  {then.Round(0).Add(time.Hour), time.Hour},
		"back":    {then.Round(0).Add(-time.Hour), -time.Hour},
	} {
		if got := age(c.now, then); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if got := within(c.now, then, time.Second); got != (c.want >= 0 && c.want <= time.Second) {
			t.Errorf("%s: within a second is %v", name, got)
		}
	}
	if within(then, time.Time{}, math.MaxInt64) {
		t.Error("never was an hour ago")
	}
	for _, d := range []time.Duration{time.Minute, -time.Minute} { // one clock goes on, the other was set back
		if got := age(testenv.TwoClocks(then.Add(d), time.Hour-d), testenv.TwoClocks(then, time.Hour)); got != -time.Minute {
			t.Errorf("the wall clock shows %v more, and the other %v: %v, want -1m", d, -d, got)
		}
	}
}

// Rule 2: an answer of the instant at which a call began may be from before it. In a
// frozen process that instant may have been long ago.
func TestViewTakes(t *testing.T) {
	began := time.Now()
	v := view{began: began, now: func() time.Time { return began }}
	for sent, want := range map[time.Duration]bool{-time.Minute: true, -time.Minute - 1: false, 0: true} {
		if got := v.allows(began.Add(sent), time.Minute); got != want {
			t.Errorf("sent %v after the call began: %t, want %t", sent, got, want)
		}
	}
	frozen := testenv.TwoClocks(began.Add(-time.Hour), 0)
	v.began = testenv.TwoClocks(began, 0)
	v.now = func() time.Time { return v.began }
	if v.allows(frozen, time.Minute) {
		t.Error("an answer from before the process was frozen for an hour counts")
	}
}

// Rule 3: answers about an earlier or a later filter, in any order, do not mix with
// the present one.
func TestMirrorCopyMeetsAnswersInAnyOrder(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	c := mirrorCopy{kind: oneArea{}, bits: newCopied(1, Geometry{Bits: 530, Hashes: 2})}
	type state struct {
		birth   int64
		proved  int // seconds after start, 0 if nothing is proved
		hasBits bool
	}
	type answer struct {
		of         int64 // the birth number
		sent, came int   // in seconds after start
		made       bool
		after      bool // it was asked after the last answer had come
	}
	saw := func(a answer, want state) {
		t.Helper()
		before, known := c.bits, c.birth
		n := news{birth: a.of, made: a.made, sent: at(a.sent), after: c.answers - 1}
		if a.after {
			n.after = c.answers
		}
		c.saw(n, at(a.came))
		got := state{birth: c.birth, hasBits: c.bits.areas[0].setBits() > 0}
		if !c.verifiedAt.IsZero() {
			got.proved = int(c.verifiedAt.Sub(start) / time.Second)
		}
		if got != want {
			t.Errorf("%+v: %+v, want %+v", a, got, want)
		}
		// Who knew nothing has nothing to forget, unless two answers crossed.
		forgets := !want.hasBits && (known != 0 || want.birth == 0)
		if dropped := c.bits != before; dropped != forgets {
			t.Errorf("%+v: the copy was dropped: %t", a, dropped)
		}
		c.take(a.of, 0, at(a.sent), func(areas []*area) { areas[0].Add("an item") })
	}
	saw(answer{of: 7, sent: 10, came: 11}, state{birth: 7, proved: 10})
	saw(answer{of: 7, sent: 5, came: 12}, state{birth: 7, proved: 10, hasBits: true}) // an older proof
	saw(answer{of: 7, sent: 20, came: 22}, state{birth: 7, proved: 20, hasBits: true})
	saw(answer{of: 8, sent: 22, came: 23, after: true}, state{birth: 8, proved: 22}) // the clock is coarse
	saw(answer{of: 7, sent: 15, came: 24}, state{})                                  // it crossed: of the later filter?
	saw(answer{of: 7, sent: 16, came: 25}, state{})                                  // so did this one
	saw(answer{of: 8, sent: 23, came: 26}, state{})
	saw(answer{of: 8, sent: 25, came: 27}, state{birth: 8, proved: 25})
	saw(answer{of: noFilter, sent: 26, came: 28}, state{})
	saw(answer{of: 8, sent: 24, came: 29}, state{})
	saw(answer{of: noFilter, sent: 28, came: 30}, state{}) // in one instant: did it cross?
	saw(answer{of: noFilter, sent: 28, came: 30, after: true}, state{birth: noFilter})
	saw(answer{of: 8, sent: 1, came: 34, made: true}, state{birth: 8, proved: 1}) // an Add that took its time
	saw(answer{of: 0, sent: 35, came: 36}, state{})                               // of another program's filter
	saw(answer{of: 9, sent: 1000, came: 1001}, state{birth: 9, proved: 1000})
	saw(answer{of: 9, sent: 50, came: 51}, state{birth: 9, proved: 50, hasBits: true}) // the clock was set back
	saw(answer{of: 9, sent: 2000, came: 2001}, state{birth: 9, proved: 2000, hasBits: true})
	saw(answer{of: 8, sent: 60, came: 61}, state{birth: 8, proved: 60}) // again
}

// What the script of a refresh counted: the bits of the gaps, all, and each area but
// the last, or no area if all is as it was.
func TestTallyCount(t *testing.T) {
	have := []uint64{1, 2, 3}
	for _, tt := range []struct {
		counted []int64
		gaps    int
		want    []uint64 // nil is an error
	}{
		{[]int64{0, 0, 6}, 2, have},
		{[]int64{6}, 0, have},
		{[]int64{0, 0, 60, 10, 20}, 2, []uint64{10, 20, 30}},
		{[]int64{7, 1, 60, 10, 20}, 2, []uint64{10, 20, 26}},
		{[]int64{60, 10, 20}, 0, []uint64{10, 20, 30}},
		{[]int64{0, 0, 60, 10}, 2, nil},
		{[]int64{0, 0, 60, 10, 20, 30}, 2, nil},
		{[]int64{0, 0, 60, 40, 30}, 2, nil},
		{[]int64{0, 0, 60, -1, 30}, 2, nil},
		{nil, 0, nil},
		{[]int64{0}, 2, nil},
	} {
		got := make([]uint64, len(have))
		err := tally{bits: have}.split(got, tt.counted, tt.gaps)
		if (err == nil) != (tt.want != nil) || err == nil && !slices.Equal(got, tt.want) {
			t.Errorf("%v behind %d gaps: %v, %v, want %v", tt.counted, tt.gaps, got, err, tt.want)
		}
	}
	one := make([]uint64, 1)
	if err := (tally{bits: []uint64{1}}).split(one, []int64{5}, 0); err != nil || one[0] != 5 {
		t.Errorf("of one area: %v, %v", one, err)
	}
}

// Rule 13: an answer of an earlier epoch leaves the copy where it is. If it was asked
// after the last one, the window went back.
func TestMirrorCopyOfAWindowMeetsAnswersInAnyOrder(t *testing.T) {
	s := &windowShape{geo: Geometry{Bits: 530, Hashes: 2}, areas: format.PaneAreas(530, 3), seconds: 15}
	c := mirrorCopy{kind: &paneAreas{windowShape: s}, bits: newCopied(3, s.geo)}
	start := time.Now()
	saw := func(epoch uint64, sent, came time.Duration, after bool) {
		n := news{birth: 7, word: s.wordAt(epoch), sent: start.Add(sent), after: c.answers - 1}
		if after {
			n.after = c.answers
		}
		c.saw(n, start.Add(came))
		c.take(7, n.word, n.sent, func(areas []*area) {
			for _, a := range areas {
				if a != nil {
					a.Add("an item")
				}
			}
		})
	}
	want := func(epoch uint64, full ...bool) {
		t.Helper()
		if got := format.EpochOf(c.word); got != epoch {
			t.Errorf("the copy is of epoch %d, want %d", got, epoch)
		}
		for i, want := range full {
			if got := c.bits.areas[i].setBits() > 0; got != want {
				t.Errorf("pane %d has bits: %t, want %t", i, got, want)
			}
		}
	}
	empty, far := c.bits, s.cycle()/2 // later than epoch 0, or earlier?
	saw(far, 1, 2, true)
	if c.bits != empty {
		t.Error("the first answer dropped a copy that knew nothing")
	}
	c.drop()
	saw(30, 1, 2, true)
	want(30, true, true, true)
	saw(31, 3, 6, true) // clears pane 32, and has bits of it again
	want(31, true, true, true)
	saw(30, 4, 7, false) // it crossed
	want(31, true, true, true)
	saw(32, 8, 9, true)
	c.bits.areas[0] = c.bits.areas[0].emptied() // the spare pane has none
	saw(31, 5, 10, false)
	want(32, false, true, true)
	c.next = &copied{make([]*area, 3)} // a download of other areas
	saw(33, 11, 12, true)
	want(33, true, true, true)
	saw(30, 13, 14, true) // lost writes
	want(30, true, true, true)
}

// Rule 8, of clocks that stand still or are set back.
func TestOutage(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	lost := &upstash.CallError{Attempts: 1, Err: io.EOF}
	var o outage
	o.answered(at(1000), at(1001))
	o.answered(at(0), at(1)) // the clock was set back
	o.unanswered(t.Context(), lost, at(2), at(3))
	o.unanswered(t.Context(), lost, at(4), at(5))
	if got := o.began(); got != at(3) {
		t.Errorf("an outage since %v, want %v, when the first answer did not come", got, at(3))
	}
}

// A look-up waits for no more than 64 KiB of a count or a download: the lock is free
// between the first half of twice as many bytes and the second.
func TestMirrorHoldsItsLockForAPiece(t *testing.T) {
	const piece, first = 64 << 10, format.HeaderBytes
	for name, isFree := range map[string]func(m *Mirror, buf []byte) bool{
		"counting": func(m *Mirror, buf []byte) bool {
			counted := make(chan uint64, 1)
			go func() { counted <- m.Stats().SetBits }()
			for i := 0; i < piece && len(counted) == 0; i++ {
				m.copy.mu.Lock()
				buf[first+i], buf[first+2*piece-1-i] = 1, 1
				runtime.Gosched() // the count waits for the lock now
				m.copy.mu.Unlock()
			}
			return <-counted%2 == 1 // one more was set meanwhile
		},
		"a part": func(m *Mirror, buf []byte) bool {
			m.copy.mu.RLock()
			over := make(chan bool)
			go func() {
				m.copy.put(m.copy.bits.areas[0], first, slices.Repeat([]byte{1}, 2*piece))
				close(over)
			}()
			for m.copy.mu.TryRLock() { // it does not wait for the lock yet
				m.copy.mu.RUnlock()
				runtime.Gosched()
			}
			m.copy.mu.RUnlock()
			m.copy.mu.RLock()
			half := buf[first] == 1 && buf[first+2*piece-1] == 0
			m.copy.mu.RUnlock()
			<-over
			return half
		},
	} {
		free := false
		for i := 0; i < 1000 && !free; i++ { // once is enough: a scheduler may let it run through
			m := &Mirror{now: time.Now}
			m.copy.bits = newCopied(1, Geometry{Bits: 16 * piece, Hashes: 2})
			free = isFree(m, m.copy.bits.areas[0].buf)
		}
		if !free {
			t.Errorf("%s: the lock was never free", name)
		}
	}
}

// panics is a transport that panics.
type panics struct{}

func (panics) RoundTrip(context.Context, *upstash.Request, *upstash.Response) error {
	panic("transport")
}

// Refresh takes no result of a refresh that began before it, nor that of a caller who
// gave up. After a panic in one the next can begin.
func TestRefreshOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err1 := upstash.New("https://db.example.com", "token", upstash.WithTransport(panics{}))
		f, err2 := New(c, "key", Config{Bits: 530, Hashes: 2})
		m, err3 := NewMirror(f, MirrorConfig{})
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		earlier, later := &task{done: make(chan struct{})}, &task{done: make(chan struct{}), err: io.EOF, gaveUp: true}
		follows := func(over, next *task) {
			m.refreshing.mu.Lock()
			m.refreshing.under = next
			close(over.done)
			m.refreshing.mu.Unlock()
			synctest.Wait()
		}
		m.refreshing.under = earlier
		returned, panicked := false, false
		go func() {
			defer func() { returned, panicked = true, recover() != nil }()
			_ = m.Refresh(t.Context())
		}()
		synctest.Wait()
		follows(earlier, later)
		if returned {
			t.Error("Refresh took the result of one that began before it")
		}
		follows(later, nil)
		if !panicked {
			t.Error("Refresh made none of its own after one that was given up")
		}
		if _, mine := m.refreshing.begin(); !mine {
			t.Error("no refresh can begin after one that panicked")
		}
		// A call that finds the copy fresh after all leaves another's refresh alone.
		m.cfg.MaxStale, m.copy.no, m.copy.refreshedAt, m.refreshing.under = time.Hour, time.Hour, time.Now(), later
		ended, end := context.WithCancel(t.Context())
		end()
		m.refreshFor(ended, &mirrorCall{m: m, began: time.Now(), items: []string{"a"}})
		if m.refreshing.under != later {
			t.Error("a call has ended another's refresh")
		}
	})
}

// A timeServer answers each TIME with the second 1000000, or not at all.
type timeServer struct{ refuses, silent bool }

func (s *timeServer) RoundTrip(_ context.Context, _ *upstash.Request, resp *upstash.Response) error {
	switch {
	case s.silent:
		return errors.New("the connection broke")
	case s.refuses:
		resp.StatusCode, resp.Body = 400, []byte(`{"error":"NOPERM this user has no permissions to run the 'time' command"}`)
	default:
		resp.StatusCode, resp.Body = 200, []byte(`{"result":["1000000","0"]}`)
	}
	return nil
}

// Rule 14: neither clock of the process may make the earliest time too late, or the
// latest too early. A TIME that is refused says so, and one that is lost nothing.
func TestServerTimes(t *testing.T) {
	const hour = time.Hour
	for name, tt := range map[string]struct {
		wall, monotonic  time.Duration // what the clocks show of some time
		earliest, latest time.Duration
	}{
		"at once":                {0, 0, 0, 0},
		"right":                  {hour, hour, hour - hour/1000, hour + hour/1000},
		"the wall clock ahead":   {50 * hour, hour, hour - hour/1000, 50*hour + hour/20},
		"the wall clock back":    {-50 * hour, hour, hour - hour/1000, hour + hour/1000},
		"frozen, a clock stands": {hour, 0, 0, hour + hour/1000},
		"frozen, and set back":   {-hour, 0, 0, 0},
		"long after ten minutes": {1000 * hour, 1000 * hour, 999 * hour, 1001 * hour},
	} {
		t.Run(name, func(t *testing.T) {
			wall, elapsed := time.Unix(5, 0), time.Duration(0)
			server := new(timeServer)
			c, err := upstash.New("https://db.example.com", "token", upstash.WithTransport(server), upstash.WithRetry(0),
				door.WithClock(func() time.Time { return wall }, func() time.Duration { return elapsed }).(upstash.Option))
			if err != nil {
				t.Fatal(err)
			}
			p := paneAreas{client: c}
			learn := func(refuses, silent, known, denied bool) {
				t.Helper()
				server.refuses, server.silent = refuses, silent
				p.learnTime(t.Context())
				if _, _, ok := door.ServerTimeBounds(c); ok != known || p.denied.Load() != denied {
					t.Errorf("known: %t, refused: %t, want %t, %t", ok, p.denied.Load(), known, denied)
				}
			}
			learn(false, true, false, false)
			learn(true, false, false, true)
			learn(false, true, false, true) // it is lost: the token may have run it since, or not
			learn(false, false, true, false)
			wall, elapsed = wall.Add(tt.wall), elapsed+tt.monotonic
			earliest, latest, _ := door.ServerTimeBounds(c)
			learned := time.Unix(1_000_000, 0)
			if earliest.Sub(learned) != tt.earliest || latest.Sub(learned) != tt.latest {
				t.Errorf("from %v to %v after it was learned, want %v to %v",
					earliest.Sub(learned), latest.Sub(learned), tt.earliest, tt.latest)
			}
			if tt.wall != tt.monotonic {
				learn(true, false, true, true) // what was learned counts
			}
		})
	}
}
