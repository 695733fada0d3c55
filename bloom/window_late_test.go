package bloom_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Histories in which commands or their answers wait for as long as a pane. Epoch
// 0 is the one in which a test begins.

// A lateWindow is a window of a day, whose clients share a clock.
type lateWindow struct {
	t     *testing.T
	s     *upstashtest.Server
	clock *clock
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

// An attempt is one command of an Add, on its way to the server and back.
type attempt struct {
	there []theirs // the epochs that end on the way to the server
	then  theirs   // what another client adds after it ran
	back  []theirs // the epochs that end on the way back
	drop  bool     // it does not arrive
	lost  bool     // its answer does not
}

// theirs is what another client adds in an epoch, or nothing, and its answer.
type theirs struct {
	item string
	want bool
}

// isAdd reports whether a request is a command of an Add.
func isAdd(body string) bool { return strings.Contains(body, "INCRBY") }

// play has the Adds of a client go as the attempts say, of which the last stands
// for all further ones.
func (l lateWindow) play(wire *timed, attempts []attempt) {
	n := -1
	add := func(x theirs) {
		if x.item != "" {
			l.add(x.item, x.want)
		}
	}
	pass := func(epochs []theirs) {
		for _, x := range epochs {
			l.nextEpoch()
			add(x)
		}
	}
	failed := func(is bool) error {
		if is {
			return errLost
		}
		return nil
	}
	wire.before = func(body string) error {
		if !isAdd(body) {
			return nil
		}
		n = min(n+1, len(attempts)-1)
		pass(attempts[n].there)
		return failed(attempts[n].drop)
	}
	wire.after = func(body string) error {
		if !isAdd(body) {
			return nil
		}
		add(attempts[n].then)
		pass(attempts[n].back)
		return failed(attempts[n].lost)
	}
}

// Nobody adds in these epochs.
var nobody = make([]theirs, 7)

// What an Add answers whose commands, or their answers, are late or lost. An
// answer counts if nobody else may have been told otherwise; in doubt it is
// ErrUncertain. In all cases the item is in the window for its Span.
func TestWindowLateAnswers(t *testing.T) {
	for _, tt := range []struct {
		name     string
		item     string
		idle     int // epochs since the last Add of anybody
		attempts []attempt
		isNew    bool
		err      error
	}{
		// If an attempt did not arrive, a bit was left at 0.
		{"never arrived", "b", 0, []attempt{{drop: true}, {}}, isNew, nil},
		// After a lost answer "seen" is uncertain, whatever other panes say: a client
		// found the bits of the lost attempt, was told "seen", and set bits elsewhere.
		{"answer lost", "b", 0, []attempt{{lost: true}, {}}, isSeen, bloom.ErrUncertain},
		{"answer lost, seen now", "now", 0, []attempt{{lost: true}, {}}, isSeen, bloom.ErrUncertain},
		{"answer lost, seen before", "old", 0, []attempt{{lost: true}, {}}, isSeen, bloom.ErrUncertain},
		{
			"answer lost, and another is told seen in the next epoch", "b", 0,
			[]attempt{{back: []theirs{{"b", isSeen}}, lost: true}, {}},
			isSeen, bloom.ErrUncertain,
		},
		// The turn to epoch 2 clears the pane of the attempt. Its repetition finds the
		// other client's bits. It must not say "seen": nobody was told "new".
		{
			"answer lost, seen by another, and cleared by a third", "b", 0,
			[]attempt{{back: []theirs{{"b", isSeen}, {"tick", isNew}}, lost: true}, {}},
			isSeen, bloom.ErrUncertain,
		},
		// The command is aimed at epoch 0 and runs in epoch 2, before anybody has
		// turned the window from 1 to 2. Its bits are in the pane that this turn clears,
		// and do not count for those who add the item now. So its "new" decides nothing.
		{
			"a late new", "b", 0,
			[]attempt{{there: []theirs{{"tick", isNew}, {}}, then: theirs{"b", isNew}}, {}},
			isSeen, bloom.ErrUncertain,
		},
		// The process was frozen while its command was under way. In the meantime
		// others may have found the item.
		{"frozen into the next epoch", "b", 0, []attempt{{back: nobody[:1]}, {}}, isSeen, bloom.ErrUncertain},
		// The repeated Add is the first write after a long pause, and turns the panes.
		{"frozen for panes", "b", 0, []attempt{{back: nobody[:3]}, {}}, isNew, nil},
		// After a long pause a turn will clear the bits of the first command, and nobody
		// counts them. What it finds after the turn is another client's, and certain.
		{"seen after a lost command", "b", 7, []attempt{{then: theirs{"b", isNew}}, {}}, isSeen, nil},
		// The first answer does not count. The Add after the turn loses an attempt.
		{"lost after a turn", "b", 7, []attempt{{}, {lost: true}, {}}, isSeen, bloom.ErrUncertain},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachLate(t, func(t *testing.T, l lateWindow) {
				l.add("old", isNew)
				l.nextEpoch()
				l.add("now", isNew)
				l.clock.pass(time.Duration(tt.idle) * dayPane)
				w, wire := l.client()
				l.play(wire, tt.attempts)
				added, err := w.Add(t.Context(), tt.item)
				if added != tt.isNew || !errors.Is(err, tt.err) || err != nil && !bloom.InFilter(err) {
					t.Errorf("Add = %v, %v, want %v, %v", added, err, tt.isNew, tt.err)
				}
				exists(t, w, tt.item, true)
				l.add("c", isNew)
				l.clock.pass(24 * time.Hour)
				exists(t, w, tt.item, true)
			})
		})
	}
}

// The first attempt of a command runs in time, and another client finds its bits.
// Then the window goes away, and a writer that was late makes it anew, in an old
// epoch: there the second attempt is lost. What the next command finds may be new
// there, but this Add is why the other client was told "seen".
func TestWindowMadeAnewBetweenAttempts(t *testing.T) {
	eachLate(t, func(t *testing.T, l lateWindow) {
		l.add("begin", isNew)
		writer, late := l.client()
		var command []string
		late.before = func(body string) error {
			if !isAdd(body) {
				return nil
			}
			noError(t, json.Unmarshal([]byte(strings.ReplaceAll(body, ",1,", `,"1",`)), &command))
			return errLost
		}
		_, _ = writer.Add(t.Context(), "late")
		l.nextEpoch()
		l.nextEpoch()
		l.add("now", isNew)

		w, wire := l.client()
		first := true
		wire.after = func(body string) error {
			if isAdd(body) && first {
				first = false
				l.add("b", isSeen)
				do(t, l.s, "DEL", key)
				do(t, l.s, command...)
				return errLost
			}
			if strings.Contains(body, "SETRANGE") { // the turn
				l.add("b", isNew)
			}
			return nil
		}
		added, err := w.Add(t.Context(), "b")
		if added || err != bloom.ErrUncertain {
			t.Errorf("Add = %v, %v, want ErrUncertain", added, err)
		}
	})
}

// If an Add is uncertain and its repetition in a later epoch fails, the error
// says both. The item is in, but may be forgotten early.
func TestWindowUncertainAndNotRepeated(t *testing.T) {
	for _, attempts := range [][]attempt{
		{{back: nobody[:1]}, {drop: true}},
		{{lost: true}, {back: nobody[:1]}, {lost: true}},
	} {
		eachLate(t, func(t *testing.T, l lateWindow) {
			l.add("now", isNew)
			w, wire := l.client()
			l.play(wire, attempts)
			added, err := w.Add(t.Context(), "b")
			if added || !errors.Is(err, bloom.ErrUncertain) || !errors.Is(err, errLost) || !bloom.InFilter(err) ||
				upstash.SafeToRetry(err) {
				t.Errorf("Add = %v, %v, want ErrUncertain and the loss, not safe to retry", added, err)
			}
			exists(t, w, "b", true)
		})
	}
}

// If such an Add has made the window, it sets the TTL all the same, or says that it
// could not.
func TestWindowNotRepeatedHasItsTTL(t *testing.T) {
	for _, isSet := range []bool{true, false} {
		eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
			l := lateWindow{t, s, newServerClock()}
			c, wire := timedClient(t, s, l.clock)
			cfg := day()
			cfg.ExpireIdle = true
			l.play(wire, []attempt{{back: nobody[:1]}, {drop: true}})
			isLost := wire.before
			wire.before = func(body string) error {
				if !isSet && strings.Contains(body, "PEXPIRE") {
					return errLost
				}
				return isLost(body)
			}
			_, err := window(t, c, cfg).Add(t.Context(), "b")
			if !errors.Is(err, bloom.ErrUncertain) || errors.Is(err, bloom.ErrNoTTL) == isSet || !bloom.InFilter(err) {
				t.Errorf("Add: %v, want ErrUncertain, and ErrNoTTL: %t", err, !isSet)
			}
			if isSet {
				wantTTL(t, s, 4*dayPane)
			} else {
				wantNoTTL(t, s)
			}
		})
	}
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
		wire.before = func(string) error {
			switch attempts++; attempts {
			case 1:
				return errTooMany
			case 2:
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

// The clock of a process is wrong by an hour, and agrees with the window's last
// turn. A look-up does not believe it: old items are not found.
func TestWindowReaderWithAWrongClock(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		cfg := bloom.WindowConfig{Capacity: 1000, FPRate: 1e-6, Span: 10 * time.Minute}
		c, _ := timedClient(t, s, clock)
		add(t, window(t, c, cfg), "a", true)
		turned := clock.Now()
		clock.pass(time.Hour)
		wrong, wire := timedClient(t, s, clock, door.WithClock(
			func() time.Time { return turned }, func() time.Duration { return 0 }).(upstash.Option))
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
			left := dayPane - time.Duration(l.clock.Now().Unix()%int64(dayPane/time.Second))*time.Second
			l.clock.pass(left - time.Second) // one second before the end
			l.add("a", isNew)
			w, wire := l.client()
			wire.after = nth(1, func() error { l.clock.pass(late); return nil })
			added, err := w.Add(t.Context(), "b")
			sent := 0
			for _, body := range wire.requests {
				if isAdd(body) {
					sent++
				}
			}
			if certain := err == nil && added; sent != want || certain != (want == 1) {
				t.Errorf("an answer %v after the end of its epoch: %d commands, %v, %v, want %d",
					late-time.Second, sent, added, err, want)
			}
		})
	}
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
		l.play(wire, []attempt{{drop: true}, {}})
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
	for state, lost := range map[bloom.ItemState]bool{bloom.ItemUncertain: false, bloom.ItemUnknown: true} {
		eachLate(t, func(t *testing.T, l lateWindow) {
			l.add("begin", isNew)
			client, wire := timedClient(t, l.s, l.clock)
			cfg := day()
			// an item a part
			w := batched(window(t, client, cfg), 1, 1)
			l.play(wire, []attempt{{}, {back: nobody[:1]}, {lost: lost}})
			added, err := w.AddAll(t.Context(), []string{"first", "second"})
			var b *bloom.BatchError
			if !errors.As(err, &b) || !slices.Equal(b.Items, []bloom.ItemState{bloom.ItemDone, state}) ||
				!added[0] || added[1] || !errors.Is(err, bloom.ErrUncertain) || upstash.SafeToRetry(err) ||
				bloom.InFilter(err) == lost {
				t.Errorf("AddAll = %v, %v, want new and %v", added, err, state)
			}
		})
	}
}

// nth runs do when the n-th Add is sent or answered.
func nth(n int, do func() error) func(string) error {
	return func(body string) error {
		if isAdd(body) {
			if n--; n == 0 {
				return do()
			}
		}
		return nil
	}
}

// If an answer does not count, the turn clears its bits. If nothing follows it,
// the items of a batch are not in.
func TestWindowBatchNotRepeated(t *testing.T) {
	eachLate(t, func(t *testing.T, l lateWindow) {
		l.add("a", isNew)
		l.clock.pass(7 * dayPane)
		w, wire := l.client()
		l.play(wire, []attempt{{}, {drop: true}})
		_, err := w.AddAll(t.Context(), []string{"b", "c"})
		if b, is := errors.AsType[*bloom.BatchError](err); !is || b.Count(bloom.ItemUnknown) != 2 {
			t.Errorf("AddAll: %v, want two unknown items", err)
		}
	})
}

// Without EVAL a token cannot turn a window after a pause. An Add gives up if
// every answer comes panes too late. Neither answer says anything of the item.
func TestWindowCannotBeTurned(t *testing.T) {
	eachLate(t, func(t *testing.T, l lateWindow) {
		l.add("a", isNew)
		w, wire := l.client()
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
		l.clock.pass(7 * dayPane)
		bloomtest.StrikeAll(l.s, upstashtest.NoPermission("EVAL"))
		wire.sent()
		fails("refused", upstash.ErrNoPermission)
		if n := wire.sent(); n != 3 { // TIME, the Add and a turn
			t.Errorf("%d requests, want 3", n)
		}
		l.s.InjectFunc(nil)
		l.play(wire, []attempt{{back: nobody}})
		wire.sent()
		fails("too late each time", nil)
		if n := wire.sent(); n != 27 { // 9 commands, each with a turn and TIME
			t.Errorf("%d requests, want 27", n)
		}
		wire.before, wire.after = nil, nil
		add(t, w, "b", isNew)
	})
}

// A command that is sent again is aimed at the window's epoch, if a client whose clock
// is two seconds ahead has turned it to one that has not begun by this client's clock.
func TestWindowResentForTheWindowsEpoch(t *testing.T) {
	const pane = 43_203 * time.Second
	s, clock, ahead := upstashtest.NewServer(t), newServerClock(), newServerClock()
	pass := func(d time.Duration) {
		clock.pass(d)
		ahead.pass(d)
	}
	toPane(clock, pane, 0)
	ahead.pass(clock.Now().Sub(ahead.Now()) + 2*time.Second)
	cfg := day()
	cfg.Panes = 2
	c, wire := timedClient(t, s, clock)
	other, _ := timedClient(t, s, ahead)
	ours, theirs := window(t, c, cfg), window(t, other, cfg)
	add(t, ours, "old", isNew)
	wire.before = func(string) error {
		wire.before = nil
		pass(2*pane - time.Second)
		add(t, theirs, "tick", isNew)
		return nil
	}
	wantError(t, errorOf(ours.Add(t.Context(), "a")), bloom.ErrUncertain)
	for i := range 2 {
		pass(pane + time.Second)
		add(t, theirs, fmt.Sprint("tick ", i), isNew)
	}
	exists(t, ours, "a", present)
}

// One turn at a time follows the answers to a handle's Adds, and although the caller
// has left.
func TestWindowTurnsOnce(t *testing.T) {
	s, clock := upstashtest.NewServer(t), newServerClock()
	c, wire := timedClient(t, s, clock)
	w := window(t, c, day())
	add(t, w, "old", isNew)
	clock.pass(dayPane)
	ctx, leave := context.WithCancel(t.Context())
	turns, turning, free := 0, make(chan bool), make(chan bool)
	wire.before = func(body string) error {
		if strings.HasPrefix(body, `["EVAL`) {
			if turns++; turns == 1 {
				close(turning)
				<-free
			}
		}
		return nil
	}
	wire.after = func(string) error {
		leave()
		return nil
	}
	added := make(chan error, 1)
	go func() { added <- errorOf(w.Add(ctx, "a")) }()
	select {
	case <-turning:
	case err := <-added:
		t.Fatalf("no turn followed the Add of a caller who left, %v", err)
	}
	add(t, w, "b", isNew)
	close(free)
	noError(t, <-added)
	if turns != 1 {
		t.Errorf("%d turns, want 1", turns)
	}
}

// A window that is deleted before its last turn is not missing to an Add, which
// would have made it.
func TestWindowDeletedBeforeATurn(t *testing.T) {
	eachLate(t, func(t *testing.T, l lateWindow) {
		w, wire := l.client()
		l.play(wire, []attempt{{back: nobody}})
		late := wire.before
		wire.before = func(body string) error {
			if strings.Contains(body, "EVAL") {
				do(t, l.s, "DEL", key)
			}
			return late(body)
		}
		_, err := w.Add(t.Context(), "a")
		if err == nil || errors.Is(err, bloom.ErrNotFound) || upstash.SafeToRetry(err) {
			t.Errorf("Add = %v, want an error that does not call the window missing", err)
		}
	})
}

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

// A late or repeated turn changes nothing: the window's word is no longer the
// one its caller saw.
func TestWindowLateTurn(t *testing.T) {
	eachLate(t, func(t *testing.T, l lateWindow) {
		w, wire := l.client()
		add(t, w, "a", isNew)
		l.nextEpoch()
		turn := ""
		wire.before = func(body string) error {
			if strings.Contains(body, "EVAL") {
				turn = body
				return errLost // it is on its way, and slow
			}
			return nil
		}
		add(t, w, "b", isNew) // the answer counts without the turn
		wire.before = nil
		add(t, w, "c", isNew) // turns
		l.nextEpoch()
		add(t, w, "d", isNew)
		before := stored(t, l.s)
		if turn == "" {
			t.Fatal("no turn was sent")
		}
		var resp upstash.Response
		req := &upstash.Request{URL: l.s.URL + "/", Body: []byte(turn), MaxResponse: 1 << 20}
		req.Header = append(req.Header, upstash.Header{Name: "Authorization", Value: "Bearer " + l.s.Token})
		if err := wire.next.RoundTrip(t.Context(), req, &resp); err != nil || resp.StatusCode != 200 {
			t.Fatalf("the late turn: %v, status %d, %s", err, resp.StatusCode, resp.Body)
		}
		if stored(t, l.s) != before {
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

// The nearest region, which answers a client that only reads, forgets by the
// server's clock, as the primary does.
func TestWindowForgetsInARegion(t *testing.T) {
	clock, s := newServerClock(), upstashtest.NewServer(t)
	c, _ := timedClient(t, s, clock)
	add(t, window(t, c, day()), "a", true)
	turns := 0
	s.InjectFunc(func(_ int64, q upstashtest.RequestInfo) upstashtest.Fault {
		if strings.HasPrefix(q.Commands[0], "EVAL") {
			turns++
		}
		return upstashtest.Fault{}
	})
	reader, _ := timedClient(t, s, clock, upstash.WithReadOnly())
	w := window(t, reader, day())
	exists(t, w, "a", true)
	clock.pass(4 * dayPane)
	other, _ := timedClient(t, s, clock, upstash.WithReadOnly()) // it does not know the server's time yet
	exists(t, w, "a", false)
	exists(t, window(t, other, day()), "a", false)
	if turns != 0 {
		t.Errorf("%d turns, want none: what a region says of the window's epoch may be old", turns)
	}
}
