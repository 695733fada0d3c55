package bloom_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestSnapshotIsTheStoredString(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := middling(), inParts()
		f := handle(t, s.Client(), cfg)
		// The string of a filter that Add made ends with its last set bit.
		for i := range 3 {
			add(t, f, mail(i), true)
			l, err := f.Snapshot(t.Context(), parts)
			noError(t, err)
			want := withoutOwn(t, stored(t, s))
			got := withoutOwn(t, string(l.Bytes()))
			if strings.TrimRight(got, "\x00") != strings.TrimRight(want, "\x00") {
				t.Errorf("after %d items the strings differ", i+1)
			}
			if ownWords(t, string(l.Bytes())) != strings.Repeat("\x00", 8) {
				t.Error("the key's own words are in the Local")
			}
		}
	})
}

func TestSnapshotBare(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg, parts := bloom.Config{
		Bits: 95_851, Hashes: 7, Scheme: bloom.SchemeFNV1a, Layout: bloom.LayoutBare,
	}, inParts()
	f := handle(t, s.Client(), cfg)
	_, err := f.Snapshot(t.Context())
	_, statsErr := f.Stats(t.Context())
	for _, err := range []error{err, statsErr} { // Create does not make such a filter
		if !errors.Is(err, bloom.ErrNotFound) || strings.Contains(err.Error(), "Create") {
			t.Errorf("%v, want ErrNotFound, and no word of Create", err)
		}
	}
	add(t, f, "item", true)
	var l *bloom.Local
	bloomtest.Costs(t, s, "Snapshot", 1+6, 2+6, func() error {
		l, err = f.Snapshot(t.Context(), parts)
		return err
	})
	if !l.Exists("item") || l.Exists("another") {
		t.Errorf("the Local has item: %v, another: %v", l.Exists("item"), l.Exists("another"))
	}
	s.DenyFunc(func(command []string) bool { return command[0] == "BITFIELD" })
	for _, c := range []*upstash.Client{s.Client(), s.ReadOnlyClient()} {
		if l, err = handle(t, c, cfg).Snapshot(t.Context(), parts); err != nil || !l.Exists("item") {
			t.Errorf("without BITFIELD: %v, want the item", err)
		}
	}
	s.DenyFunc(nil)
	do(t, s, "SETRANGE", key, "95851", "x")
	wantError(t, errorOf(f.Snapshot(t.Context(), parts)), bloom.ErrNotFilter)
}

// inPieces has a small filter travel in several parts.
var inPieces = bloomtest.Parts(200, 1)

// A new client near a region that lags has no sync token yet. Its Snapshot has
// the items that were acknowledged before, whatever the layout.
func TestSnapshotBesideALaggingRegion(t *testing.T) {
	headed := bare()
	headed.Layout = bloom.LayoutHeaded
	for _, cfg := range []bloom.Config{bare(), headed} {
		for _, old := range []bool{false, true} { // the region has the filter
			s := upstashtest.NewServer(t, upstashtest.WithRegions(
				upstashtest.Region{Name: "eu", Lag: math.MaxInt}))
			writer := handle(t, s.Client(), cfg)
			if old {
				add(t, writer, "old", true)
				s.CatchUp()
			}
			add(t, writer, "new", true)
			l, err := handle(t, s.RegionClient("eu"), cfg).Snapshot(t.Context(), inPieces)
			noError(t, err)
			if !l.Exists("new") || l.Exists("old") != old {
				t.Errorf("%v: new: %v, want true; old: %v, want %v", cfg.Layout, l.Exists("new"), l.Exists("old"), old)
			}
		}
	}
}

// If the filter is replaced during a Snapshot, the error is ErrRecreated,
// because the parts would be of two filters.
func TestSnapshotNoticesAnotherFilter(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := middling(), inParts()
		writer := handle(t, s.Client(), cfg)
		add(t, writer, "item", true)
		again := afterCommand(s, "EVAL_RO", 3, func() {
			do(t, s, "DEL", key)
			add(t, writer, "item", true)
		})
		create(t, writer, false)
		full := handle(t, s.Client(), cfg)
		noError(t, errorOf(full.Load(t.Context(), mails(0, 1000))))
		wantError(t, errorOf(handle(t, again, cfg).Snapshot(t.Context(), parts)), bloom.ErrRecreated)
		noError(t, errorOf(full.Load(t.Context(), mails(0, 1000))))
		gone := afterCommand(s, "EVAL_RO", 3, func() { do(t, s, "DEL", key) })
		wantError(t, errorOf(handle(t, gone, cfg).Snapshot(t.Context(), parts)), bloom.ErrRecreated)
		wantError(t, errorOf(full.Snapshot(t.Context())), bloom.ErrNotFound)
	})
}

// A filter is renamed away and back during a Snapshot. It is the same before
// and after, but the parts in between are missing, or another filter's, which may
// have the same birth number.
func TestSnapshotOfAFilterThatLeavesAndReturns(t *testing.T) {
	for _, between := range []string{"nothing", "another filter", "a filter with the same birth number"} {
		s := upstashtest.NewServer(t)
		cfg, parts := middling(), inParts()
		noError(t, errorOf(handle(t, s.Client(), cfg).Load(t.Context(), mails(0, 1000))))
		attempts := 0
		c := impatient(s, upstash.WithObserver(func(context.Context, upstash.Event) {
			switch attempts++; attempts {
			case 3:
				do(t, s, "RENAME", key, "away")
				switch between {
				case "another filter":
					add(t, handle(t, s.Client(), middling()), "other", true)
				case "a filter with the same birth number":
					do(t, s, "SET", key, do(t, s, "GETRANGE", "away", "0", "30").(string))
				}
			case 6:
				do(t, s, "RENAME", "away", key)
			}
		}))
		l, err := handle(t, c, cfg).Snapshot(t.Context(), parts)
		if l != nil || !errors.Is(err, bloom.ErrRecreated) || attempts < 3 {
			t.Errorf("%s, after %d attempts: %v, %v, want ErrRecreated", between, attempts, l, err)
		}
	}
}

// A Snapshot leaves out what an Add of another geometry left behind the last
// cell.
func TestSnapshotLeavesOutWhatIsBehindTheCells(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := middling(), inParts()
		f := handle(t, s.Client(), cfg)
		add(t, f, "item", true)
		before, err := f.Snapshot(t.Context(), parts)
		noError(t, err)
		geo := f.Geometry()
		last := 8*(geo.Bytes(bloom.LayoutHeaded)-geo.Bytes(bloom.LayoutBare)) + geo.Bits
		do(t, s, "SETBIT", key, strconv.FormatUint(last, 10), "1") // in the last byte
		do(t, s, "SETBIT", key, strconv.FormatUint(last+100_000, 10), "1")
		after, err := f.Snapshot(t.Context(), parts)
		if err != nil || !bytes.Equal(after.Bytes(), before.Bytes()) {
			t.Errorf("bits behind the last cell are in the Snapshot: %v", err)
		}
	})
}

// With RESP2 a Snapshot receives hardly more bytes than the string has.
func TestSnapshotBytes(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), bloom.Config{Capacity: 1_000_000, FPRate: 0.01})
	noError(t, errorOf(f.Load(t.Context(), mails(0, 1000))))
	s.ResetStats()
	noError(t, errorOf(f.Snapshot(t.Context())))
	st := s.Stats()
	size := float64(f.Geometry().Bytes(bloom.LayoutHeaded))
	t.Logf("%d requests, %.5f of the string", st.Requests, float64(st.BytesOut)/size)
	if float64(st.BytesOut) > 1.02*size || st.Requests != 2 {
		t.Errorf("%d bytes in %d requests, want 2 for a string of %.0f", st.BytesOut, st.Requests, size)
	}
}

// noRESP2 stands for a server that refuses the RESP2 form.
type noRESP2 struct{ upstash.Transport }

func (n noRESP2) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	for _, h := range req.Header {
		if h.Name == "Upstash-Response-Format" {
			resp.StatusCode, resp.Body = 400, []byte(`{"error":"ERR unknown format"}`)
			return nil
		}
	}
	return n.Transport.RoundTrip(ctx, req, resp)
}

// A lagging region may have no filter yet, or the previous one. Snapshot
// takes the first part from the primary, and none of these as the others.
func TestSnapshotNearALaggingRegion(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithRegions(upstashtest.Region{Name: "far", Lag: math.MaxInt}))
	writer := handle(t, s.Client(), small())
	create(t, writer, true)
	add(t, writer, "first", true)
	blind := handle(t, s.RegionClient("far", upstash.WithoutSyncToken()), small())
	behind := func() {
		t.Helper()
		l, err := blind.Snapshot(t.Context(), inPieces)
		if !errors.Is(err, bloom.ErrRecreated) || !strings.HasSuffix(err.Error(), " upstash.WithoutSyncToken") {
			t.Errorf("%v, %v, want ErrRecreated, and what to do", l, err)
		}
		l, err = handle(t, s.RegionClient("far"), small()).Snapshot(t.Context(), inPieces)
		if err != nil || !l.Exists("first") {
			t.Errorf("with a sync token: %v, %v, want the first item", l, err)
		}
		if l, err = blind.Snapshot(t.Context()); err != nil || !l.Exists("first") {
			t.Errorf("in one part: %v, %v, want the first item", l, err)
		}
	}
	behind()
	s.CatchUp()
	if l, err := blind.Snapshot(t.Context(), inPieces); err != nil || !l.Exists("first") {
		t.Errorf("Snapshot = %v, %v, want one with the item first", l, err)
	}
	l := bloom.NewLocal(writer.Geometry())
	l.Add("first")
	noError(t, writer.Replace(t.Context(), l))
	behind()
}

// The late reply of an older write must not bring back the state before others
// wrote, between two requests of a Snapshot. The token of a refused first request, of
// the script or of the look at the state after it, names that state too.
func TestSnapshotBesideALateReply(t *testing.T) {
	scripts := func(cmd []string) bool { return cmd[0] == "EVAL" }
	reads := func(cmd []string) bool { return cmd[0] == "EVAL" || cmd[0] == "BITFIELD" && cmd[2] == "GET" }
	for _, c := range []struct {
		cfg  bloom.Config
		deny func(cmd []string) bool
	}{{small(), nil}, {bare(), nil}, {small(), scripts}, {small(), reads}} {
		s := upstashtest.NewServer(t, upstashtest.WithRegions(upstashtest.Region{Name: "far", Lag: 2}))
		writer := handle(t, s.Client(), c.cfg)
		add(t, writer, "first", true)
		held, through := holdReply(t, 1)
		var adding sync.WaitGroup
		var once sync.Once
		client := s.RegionClient("far", through, upstash.WithObserver(
			func(_ context.Context, e upstash.Event) {
				if e.Label == "bloom.Snapshot" {
					once.Do(func() {
						held.Free <- nil
						adding.Wait()
					})
				}
			}))
		f := handle(t, client, c.cfg)
		adding.Go(func() { add(t, f, "older", true) })
		<-held.Here
		add(t, writer, "newer", true)
		add(t, writer, "newest", true)
		s.DenyFunc(c.deny)
		l, err := f.Snapshot(t.Context(), inPieces)
		if err != nil || !l.Exists("newest") {
			t.Errorf("%v, refused: %t: %v, want a copy with what was added before the call",
				c.cfg.Layout, c.deny != nil, err)
		}
	}
}

// An observer may use its context for a client of another database, whose sync
// tokens say nothing of this one.
func TestSnapshotWithAnObserver(t *testing.T) {
	other := upstashtest.NewServer(t).Client()
	s := upstashtest.NewServer(t, upstashtest.WithRegions(upstashtest.Region{Name: "far", Lag: math.MaxInt}))
	add(t, handle(t, s.Client(), small()), "a", true)
	c := s.RegionClient("far", upstash.WithObserver(func(ctx context.Context, e upstash.Event) {
		if _, err := other.Do(ctx, upstash.Cmd("EXISTS", e.Label)); err != nil {
			t.Error(err)
		}
	}))
	l, err := handle(t, c, small()).Snapshot(t.Context(), bloomtest.Parts(20, 1))
	if err != nil || !l.Exists("a") {
		t.Errorf("%v, want a copy with what was added before the call", err)
	}
}

// While processes move from one filter to another, those at neighbouring steps
// run side by side. Whichever of them adds an item first: it is new once.
func TestMoveStepByStep(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for name, m := range moves(t, s.Client()) {
			last := len(m.steps) - 1
			for i := range last {
				for j, order := range [][2]int{{i, i + 1}, {i + 1, i}} {
					item := fmt.Sprint(name, i, j)
					if n := m.timesNew(t, item, order, 0, 0, 1, 1); n != 1 {
						t.Errorf("%s: an item was new %d times, added at steps %v", name, n, order)
					}
				}
			}
			// Why there is a step between the two.
			if n := m.timesNew(t, name+" skipped", [2]int{last, 1}, 0, 0, 1, 1); n != 2 {
				t.Errorf("%s: new %d times with a step left out, want 2", name, n)
			}
		}
	})
}

// If processes at neighbouring steps add an item at the same moment, it is new to one
// of them, and to both only in the moves of which MIGRATING.md says so.
func TestMoveAtTheSameMoment(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for name, m := range moves(t, s.Client()) {
			twice := false
			for i := range len(m.steps) - 1 {
				for _, turns := range [][]int{
					{0, 0, 1, 1}, {0, 1, 0, 1}, {0, 1, 1, 0}, {1, 0, 0, 1}, {1, 0, 1, 0}, {1, 1, 0, 0},
				} {
					n := m.timesNew(t, fmt.Sprint(name, i, turns), [2]int{i, i + 1}, turns...)
					if n == 0 || n > 1 && !m.twice {
						t.Errorf("%s: in the order %v of steps %d and %d the item is new %d times", name, turns, i, i+1, n)
					}
					twice = twice || n > 1
				}
			}
			if twice != m.twice {
				t.Errorf("%s: an item is new twice: %t, want %t", name, twice, m.twice)
			}
		}
	})
}

type addFunc func(item string) (bool, error)

// A move is the steps of MIGRATING.md, from the old filter, or the keys, alone to the
// new filter alone. If twice, two processes that add an item at the same moment may
// both be told that it is new.
type move struct {
	steps []step
	twice bool
}

// A step is what a process does with an item: it calls each of these in turn. The
// first decides whether the item is new, or if last, the last one. If onlyNew, what
// is not new to one is not added to the next.
type step struct {
	calls         []addFunc
	onlyNew, last bool
}

// timesNew returns to how many of two processes, at these steps, an item is new. They
// take turns, a call each; one that has no more passes.
func (m move) timesNew(t *testing.T, item string, steps [2]int, turns ...int) (n int) {
	t.Helper()
	var called [2]int
	var told [2]bool
	for _, process := range turns {
		s, i := m.steps[steps[process]], called[process]
		if i == len(s.calls) || i > 0 && s.onlyNew && !told[process] {
			continue
		}
		isNew, err := s.calls[i](item)
		noError(t, err)
		if i == 0 || s.last {
			told[process] = isNew
		}
		called[process]++
	}
	for _, isNew := range told {
		if isNew {
			n++
		}
	}
	return n
}

// moves returns the moves of MIGRATING.md, and of its Examples.
func moves(t *testing.T, c *upstash.Client) map[string]move {
	addTo := func(f bloomtest.Set) addFunc {
		return func(item string) (bool, error) { return f.Add(t.Context(), item) }
	}
	in := func(filters ...bloom.AnyFilter) addFunc {
		return func(item string) (bool, error) {
			answers, err := bloom.AddIn(t.Context(), item, filters...)
			return err == nil && answers[0].Yes, err
		}
	}
	in1, in2 := handleAt(t, c, "old", small()), handleAt(t, c, "larger", sparse())
	before, after := addTo(in1), addTo(in2)
	seen := windowAt(t, c, "seen", bloom.WindowConfig{Capacity: 100, FPRate: 0.001, Span: time.Hour})
	window := addTo(seen)
	set := func(id string, more ...string) (bool, error) {
		reply, err := c.Do(t.Context(), upstash.Cmd("SET", append([]string{"seen:" + id, "1", "EX", "3600"}, more...)...))
		return err == nil && !reply.IsNil(), err
	}
	setNX := func(id string) (bool, error) { return set(id, "NX") }
	// Look first: what is found is not worked on, and after the work both know it.
	hasKey := func(id string) (bool, error) {
		reply, err := c.Do(t.Context(), upstash.Cmd("GET", "seen:"+id))
		return err == nil && !reply.IsNil(), err
	}
	inWindow := func(id string) (bool, error) { return seen.Exists(t.Context(), id) }
	setKey := func(id string) (bool, error) { return set(id) }
	work := func(look addFunc, learn ...addFunc) addFunc {
		return func(id string) (bool, error) {
			found, err := look(id)
			for _, f := range learn {
				if err == nil && !found {
					_, err = f(id)
				}
			}
			return !found, err
		}
	}
	inTurn := func(calls ...addFunc) step { return step{calls: calls} }
	return map[string]move{
		"both": {
			twice: true,
			steps: []step{inTurn(before), inTurn(before, after), inTurn(after, before), inTurn(after)},
		},
		"both, in one request": {
			steps: []step{inTurn(before), inTurn(in(in1, in2)), inTurn(in(in2, in1)), inTurn(after)},
		},
		"both, and Add decides": {steps: []step{
			inTurn(before), inTurn(before, after),
			{calls: []addFunc{before, after}, onlyNew: true},
			{calls: []addFunc{before, after}, onlyNew: true, last: true},
			inTurn(after),
		}},
		"SET key NX": {steps: []step{
			inTurn(setNX),
			{calls: []addFunc{setNX, window}, onlyNew: true},
			{calls: []addFunc{setNX, window}, onlyNew: true, last: true},
			inTurn(window),
		}},
		"GET, work, SET": {steps: []step{
			inTurn(work(hasKey, setKey)), inTurn(work(hasKey, setKey, window)),
			inTurn(work(inWindow, window, setKey)), inTurn(work(inWindow, window)),
		}},
	}
}

// movesTo are the calls that make a filter out of an upload.
func movesTo(t *testing.T, opts ...bloom.MoveOption) map[string]func(f *bloom.Filter) error {
	return map[string]func(*bloom.Filter) error{
		"Load":    func(f *bloom.Filter) error { return errorOf(f.Load(t.Context(), mails(0, 9), opts...)) },
		"Replace": func(f *bloom.Filter) error { return f.Replace(t.Context(), localOf(f, 0, 9), opts...) },
	}
}

// wantUnsafeAndGone checks the error of a call whose repetition finds no filter.
func wantUnsafeAndGone(t *testing.T, s *upstashtest.Server, name string, err error) {
	t.Helper()
	if err == nil || upstash.SafeToRetry(err) {
		t.Errorf("%s: %v, want one that is not safe to retry", name, err)
	}
	if n := do(t, s, "EXISTS", key); n != int64(0) {
		t.Errorf("%s brought back what was deleted", name)
	}
}

// If the server runs a late attempt at a part, the part is back after the
// script took it. A late attempt at the script must then not take it again, and
// leaves the mark that says so, whether the part is back or not.
func TestPartThatComesBackLate(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, comesBack := range []bool{true, false} {
			for name, call := range movesTo(t) {
				other := handle(t, s.Client(), small())
				var late []string
				c := impatient(s, upstash.WithObserver(func(_ context.Context, e upstash.Event) {
					switch {
					case e.Command == "SETEX":
						keys := do(t, s, "KEYS", "*:load:*").([]any)
						late = []string{"SETEX", keys[0].(string), "3600", storedAt(t, s, keys[0].(string))}
					case strings.HasPrefix(e.Command, "EVAL") && late != nil:
						if deleted, err := other.Delete(t.Context()); !deleted {
							t.Errorf("the first attempt made no filter: %v", err)
						}
						if comesBack {
							do(t, s, late...)
						}
						late = nil
					}
				}))
				lose := map[string]bool{"SETEX": true, "EVAL": true}
				s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
					if !lose[r.Commands[0]] {
						return upstashtest.Fault{}
					}
					delete(lose, r.Commands[0])
					return upstashtest.Drop(upstashtest.AfterExec)
				})
				wantUnsafeAndGone(t, s, name, call(handle(t, c, small())))
				wantNoScratch(t, s, 1) // the mark
				wantScratchExpires(t, s)
				do(t, s, "FLUSHALL")
			}
		}
	})
}

// After Replace the filter holds exactly what the Local holds. The TTL stays,
// the birth number changes.
func TestReplaceIsTheLocal(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := middling(), inParts()
		cfg.TTL = time.Hour
		f := handle(t, s.Client(), cfg)
		add(t, f, "old", true)
		noError(t, errorOf(f.Expire(t.Context(), 20*time.Minute)))
		before := stored(t, s)
		l := localOf(f, 0, 1000)
		noError(t, f.Replace(t.Context(), l, parts))
		after := stored(t, s)
		if withoutOwn(t, after) != withoutOwn(t, string(l.Bytes())) {
			t.Error("the stored string is not the Local's")
		}
		if birthOf(t, after) == birthOf(t, before) || !isSettled(t, after) {
			t.Errorf("the second word was %x and is %x", ownWords(t, before), ownWords(t, after))
		}
		wantTTL(t, s, 20*time.Minute)
		wantNoScratch(t, s, 1)

		noError(t, errorOf(f.Persist(t.Context())))
		noError(t, f.Replace(t.Context(), l, parts))
		wantNoTTL(t, s)

		do(t, s, "DEL", key)
		noError(t, f.Replace(t.Context(), l, parts))
		wantTTL(t, s, time.Hour)
		if !isSettled(t, stored(t, s)) {
			t.Error("a filter that Replace made is not settled")
		}

		// A handle without a TTL leaves it as it was, settled or not.
		plain := handle(t, s.Client(), middling())
		noError(t, plain.Replace(t.Context(), l, parts))
		wantTTL(t, s, time.Hour)
		if !isSettled(t, stored(t, s)) {
			t.Error("a filter whose TTL was settled is not")
		}
		do(t, s, "DEL", key)
		noError(t, plain.Replace(t.Context(), l, parts))
		wantNoTTL(t, s)
		if isSettled(t, stored(t, s)) {
			t.Error("a filter without a TTL is settled")
		}
		// So does one with a TTL, of that which somebody else has set.
		do(t, s, "EXPIRE", key, "600")
		noError(t, f.Replace(t.Context(), l, parts))
		wantTTL(t, s, 10*time.Minute)
	})
}

// The filter of another geometry, which a Replace was about to take the place of, has
// given way to one of its own.
func TestReplaceOfAFilterThatCameBack(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), small())
	add(t, handle(t, s.Client(), sparse()), "theirs", true)
	do(t, s, "RENAME", key, "theirs")
	add(t, f, "ours", true)
	do(t, s, "RENAME", key, "ours")
	do(t, s, "RENAME", "theirs", key)
	during(s, 4, func() { do(t, s, "RENAME", "ours", key) }) // after the part, a script and a look
	noError(t, handle(t, s.Client(), small()).Replace(t.Context(), localOf(f, 0, 9)))
	wantMails(t, f, 0, 9)
	exists(t, f, "ours", false)
}

// A Replace brings the Capacity of the Local, if that knows one.
func TestReplaceKeepsTheCapacity(t *testing.T) {
	s := upstashtest.NewServer(t)
	capacity := func() uint64 {
		f, err := bloom.Open(t.Context(), s.Client(), key)
		noError(t, err)
		st, err := f.Stats(t.Context())
		noError(t, err)
		return st.Capacity
	}
	f := handle(t, s.Client(), bloom.Config{Capacity: 5000, FPRate: 0.01})
	// The Local knows none, and the handle has it from its Config.
	noError(t, f.Replace(t.Context(), localOf(f, 0, 100)))
	want := capacity()
	if want < 4950 || want > 5050 {
		t.Fatalf("Capacity %d, want 5,000", want)
	}
	// The handle knows none, and the Local has it from the string.
	l, err := f.Snapshot(t.Context())
	noError(t, err)
	if got := l.Stats().Capacity; got != want {
		t.Errorf("the Snapshot's Capacity: %d, want %d", got, want)
	}
	g := f.Geometry()
	explicit := handle(t, s.Client(), bloom.Config{Bits: g.Bits, Hashes: g.Hashes})
	noError(t, explicit.Replace(t.Context(), l))
	if got := capacity(); got != want {
		t.Errorf("after a Replace: Capacity %d, want %d", got, want)
	}
	// A Merge keeps what the string says, or brings what the handle knows.
	noError(t, errorOf(explicit.Merge(t.Context(), localOf(f, 0, 200))))
	if got := capacity(); got != want {
		t.Errorf("after a Merge: Capacity %d, want %d", got, want)
	}
	do(t, s, "DEL", key)
	noError(t, errorOf(explicit.Merge(t.Context(), l)))
	if got := capacity(); got != 0 {
		t.Errorf("made by a Merge: Capacity %d, want none", got)
	}
}

func TestReplaceLeavesOtherDataAlone(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := middling(), inParts()
		f := handle(t, s.Client(), cfg)
		shard := "\xa8\x08" + strings.Repeat("\x00", 30) // kind 1
		own := string(bloom.NewLocal(f.Geometry()).Bytes())
		own = own[:7] + "\x01" + own[8:]                                        // its own header, and bit 63
		tail := "\x88\x08\x00\x00\x00\x00\x1f\xff" + strings.Repeat("\x00", 30) // bits 53 to 63 are set
		for _, data := range []string{
			"plain text that is long enough", strings.Repeat("\x00", 40), shard, tail, own,
			"\x88" + strings.Repeat("\x00", 31),                      // k and m are 0
			"\x8b\x00\x00\x00\x07\x00\x00\x00two numbers and a text", // little-endian
			spoilt(117),
		} {
			do(t, s, "SET", key, data)
			err := f.Replace(t.Context(), localOf(f, 0, 9), parts)
			var mismatch *bloom.MismatchError
			if !errors.Is(err, bloom.ErrNotFilter) && !errors.As(err, &mismatch) {
				t.Errorf("%.40q: %v, want ErrNotFilter or a MismatchError", data, err)
			}
			if stored(t, s) != data {
				t.Errorf("%.40q has become %.40q", data, stored(t, s))
			}
		}
		do(t, s, "DEL", key)
		names := cuckoo(t, s.Client(), bloom.CuckooConfig{Capacity: 1000, FPRate: 0.01})
		noError(t, errorOf(names.Add(t.Context(), "ann")))
		var table *bloom.MismatchError
		err := f.Replace(t.Context(), localOf(f, 0, 9), parts)
		if !errors.As(err, &table) || !upstash.SafeToRetry(err) {
			t.Errorf("a Cuckoo: %v, want a MismatchError that is safe to retry", err)
		}
		exists(t, names, "ann", true)
		var config *bloom.ConfigError
		bare := handle(t, s.Client(), bloom.Config{
			Bits: 1000, Hashes: 7, Scheme: bloom.SchemeFNV1a, Layout: bloom.LayoutBare,
		})
		err = bare.Replace(t.Context(), localOf(bare, 0, 9))
		if !errors.As(err, &config) || !upstash.SafeToRetry(err) {
			t.Errorf("%v, want a ConfigError that is safe to retry", err)
		}
		other := localOf(handle(t, s.Client(), small()), 0, 9)
		wantMismatch(t, f.Replace(t.Context(), other))
		if err := f.Replace(t.Context(), nil); err == nil {
			t.Error("a nil Local is accepted")
		}
	})
}

// What a Local, a client or a seed makes impossible is refused without a request.
func TestMovesRefuse(t *testing.T) {
	s := upstashtest.NewServer(t)
	c := s.Client()
	f := handle(t, c, small())
	seeded := small()
	seeded.Seed = 7
	withSeed := handle(t, c, seeded)
	larger := small()
	larger.Capacity *= 2
	l := bloom.NewLocal(f.Geometry())
	s.ResetStats()
	for says, tt := range map[string]struct {
		f *bloom.Filter
		l *bloom.Local
	}{
		"the Local is nil":                {f, nil},
		"both must be of the same Config": {f, bloom.NewLocal(handle(t, c, larger).Geometry())},
		"another seed":                    {f, bloom.NewLocal(withSeed.Geometry())},
		"but no seed: leave the seed out": {withSeed, l},
		"the client is read-only":         {handle(t, s.ReadOnlyClient(), small()), l},
	} {
		_, merging := tt.f.Merge(t.Context(), tt.l)
		for name, err := range map[string]error{"Merge": merging, "Replace": tt.f.Replace(t.Context(), tt.l)} {
			if err == nil || !strings.Contains(err.Error(), says) || !upstash.SafeToRetry(err) {
				t.Errorf("%s: %v, want an error that says %q and is safe to retry", name, err, says)
			}
		}
	}
	wantRequests(t, s, 0)
}
