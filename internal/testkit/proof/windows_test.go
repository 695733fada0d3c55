package proof

import (
	"slices"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
)

// TestItemsApart proves a fact the model relies on: no item's cells are all
// among those of others, so there are no false positives.
func TestItemsApart(t *testing.T) {
	items := []string{"item-0", "item-1", "item-2", "item-at-last"}
	for n := range 8 {
		w := Windows{Common: Common{Seed: uint64(n%2) * secretSeed}, Span: time.Hour, Panes: 1 + n/2}
		g, err := w.config(plain).Geometry()
		if err != nil {
			t.Fatal(err)
		}
		isApart(t, g, items, items)
	}
}

// TestCheckWindow checks histories of a window of 10 s in panes of 15 s.
func TestCheckWindow(t *testing.T) {
	const added, seen, found, missed = "added", "seen", "found", "missed"
	at := func(from, to float64, what string) *called {
		c := &called{
			client: "x", call: Call{Verb: Add, Items: []string{"a"}}, from: int64(10 * from), to: int64(10 * to),
			began: time.Duration(from * 1e9), ended: time.Duration(to * 1e9),
		}
		c.result = Result{End: Answered, Yes: []bool{what == added || what == found}, Timed: true}
		if what == found || what == missed {
			c.call.Verb = Exists
		}
		return c
	}
	with := func(c *called, change func(*called)) *called { change(c); return c }
	end := func(e End, maybe int) func(*called) {
		return func(c *called) { c.result.End, c.result.Maybe = e, maybe }
	}
	verb := func(v Verb) func(*called) { return func(c *called) { c.call.Verb = v } }
	const mustExists = "a handle with MustExist"
	mustExist := func(c *called) { c.session, c.result.Tried = mustExists, 2 }
	for name, h := range map[string]struct {
		ok    bool
		calls []*called
	}{
		"found for a span":         {true, []*called{at(1, 2, added), at(11, 11.5, found), at(40, 41, missed)}},
		"forgotten too early":      {false, []*called{at(1, 2, added), at(11, 11.5, missed)}},
		"found for too long":       {false, []*called{at(5, 6, added), at(41, 42, found)}},
		"found, and added late":    {true, []*called{at(5, 16, added), at(51, 52, found)}},
		"a reader without a clock": {false, []*called{at(5, 6, added), with(at(41, 42, found), func(c *called) { c.result.Timed = false })}},
		"a reader without TIME":    {true, []*called{at(5, 6, added), with(at(41, 42, found), func(c *called) { c.result.NoTime = true })}},
		"two are new":              {false, []*called{at(1, 3, added), at(2, 4, added)}},
		"two are new, after panes": {false, []*called{at(1, 30, added), at(35, 36, added)}},
		"one is new":               {true, []*called{at(1, 3, added), at(2, 4, seen)}},
		"nobody is new":            {false, []*called{at(1, 3, seen), at(2, 4, seen)}},
		"seen by itself":           {false, []*called{with(at(1, 2, seen), end(Answered, 1))}},
		"seen of an unknown one":   {true, []*called{with(at(1, 2, seen), end(Unknown, 1)), at(30, 31, seen)}},
		"seen of one that did not run": {false, []*called{
			with(at(1, 2, seen), end(NotRun, 0)), at(3, 4, seen),
		}},
		"uncertain is in":         {false, []*called{with(at(1, 2, seen), end(Uncertain, 1)), at(3, 4, missed)}},
		"uncertain for no reason": {false, []*called{with(at(6, 7, seen), end(Uncertain, 0))}},
		"uncertain, and late":     {true, []*called{with(at(6, 17, seen), end(Uncertain, 0))}},
		"deleted":                 {true, []*called{at(1, 2, added), with(at(3, 4, found), verb(Delete)), at(5, 6, missed)}},
		"found after a delete":    {false, []*called{at(1, 2, added), with(at(3, 4, found), verb(Delete)), at(5, 6, found)}},
		"gone":                    {false, []*called{at(1, 2, added), with(at(3, 4, missed), end(Missing, 0))}},
		"made twice":              {false, []*called{at(1, 2, added), with(at(3, 4, added), verb(Create))}},
		"an older state is back":  {true, []*called{at(1, 2, added), with(at(3, 4, found), verb(Revert)), at(5, 6, missed)}},
		"back, and added again": {false, []*called{
			with(at(1, 2, found), verb(Revert)), at(3, 4, added), at(5, 6, missed),
		}},
		"deleted, and back": {true, []*called{
			at(1, 2, added), with(at(3, 4, found), verb(Delete)), with(at(4, 5, found), verb(Revert)), at(6, 7, found),
		}},
		"restored": {true, []*called{
			at(1, 2, added), with(at(3, 4, found), verb(TakeBackup)), with(at(5, 6, found), verb(Delete)),
			with(at(7, 8, found), verb(RestoreBackup)), at(9, 10, found),
		}},
		"restored, and forgotten": {false, []*called{
			at(1, 2, added), with(at(3, 4, found), verb(TakeBackup)), with(at(5, 6, found), verb(Delete)),
			with(at(7, 8, found), verb(RestoreBackup)), at(9, 10, missed),
		}},
		"added after the Backup": {true, []*called{
			with(at(1, 2, found), verb(TakeBackup)), at(3, 4, added), with(at(5, 6, found), verb(Delete)),
			with(at(7, 8, found), verb(RestoreBackup)), at(9, 10, missed),
		}},
		"restored over a window": {false, []*called{
			at(1, 2, added), with(at(3, 4, found), verb(TakeBackup)), with(at(7, 8, found), verb(RestoreBackup)),
		}},
		"opened":                  {true, []*called{at(1, 2, added), with(at(3, 4, found), verb(Open))}},
		"opened, and gone":        {false, []*called{at(1, 2, added), with(with(at(3, 4, missed), verb(Open)), end(Missing, 0))}},
		"opened, and not made":    {false, []*called{with(at(3, 4, found), verb(Open))}},
		"opened in another shape": {false, []*called{at(1, 2, added), with(at(3, 4, missed), verb(Open))}},
		"opened, and overwritten": {false, []*called{
			at(1, 2, added), with(at(3, 4, found), verb(Overwrite)), with(at(5, 6, found), verb(Open)),
		}},
		"frozen after its answer": {true, []*called{
			with(at(1, 9, added), func(c *called) { c.result.Sent = 7 * time.Second }), at(13, 14, missed),
		}},
		"a part of a batch": {false, []*called{with(at(1, 2, added), func(c *called) {
			c.call.Verb, c.call.Items = AddAll, []string{"a", "b"}
			c.result = Result{
				End: Partly, Yes: []bool{true, false},
				States: []bloom.ItemState{bloom.ItemDone, bloom.ItemNotDone},
			}
		}), at(3, 4, missed)}},
		"made by an Add, and must exist": {false, []*called{with(at(1, 2, added), mustExist)}},
		"made by a Create, and must exist": {true, []*called{
			with(at(1, 2, added), verb(Create)), with(at(3, 4, added), mustExist),
		}},
		"its first command ran, and the window was deleted": {true, []*called{
			with(at(1, 2, added), verb(Create)), with(with(at(3, 9, seen), end(Missing, 0)), mustExist),
			at(4, 5, found), with(at(6, 7, found), verb(Delete)),
		}},
		"no command ran, and the window was deleted": {false, []*called{
			with(at(1, 2, added), verb(Create)),
			with(with(with(at(3, 9, seen), end(Missing, 0)), mustExist), func(c *called) { c.result.Safe = true }),
			at(4, 5, found), with(at(6, 7, found), verb(Delete)),
		}},
		"deleted, opened, and must exist": {false, []*called{
			with(at(1, 2, added), verb(Create)), with(at(3, 4, added), verb(Delete)),
			with(with(at(5, 6, found), verb(Open)), mustExist),
		}},
	} {
		must := slices.ContainsFunc(h.calls, func(c *called) bool { return c.session == mustExists })
		losses := slices.ContainsFunc(h.calls, func(c *called) bool { return c.call.Verb == Revert })
		w := &Windows{Common: Common{MustExist: must, Losses: losses}, Span: 10 * time.Second, Panes: 1}
		if slices.ContainsFunc(h.calls, func(c *called) bool { return c.call.Verb == TakeBackup }) {
			w.Backups = new(Backups)
		}
		history := NewHistory(w)
		history.begin, history.calls = time.Unix(15e6, 0), h.calls // an epoch begins
		if err := history.Check(); (err == nil) != h.ok {
			t.Errorf("%s: Check() = %v, want it right: %v", name, err, h.ok)
		}
	}
}

// TestCheckSharedCells checks histories of a window of 10 s in panes of 15 s. An item
// is in a pane if two others are.
func TestCheckSharedCells(t *testing.T) {
	at := func(from, to float64, v Verb, item string) *called {
		return &called{
			client: "x", call: Call{Verb: v, Items: []string{item}}, from: int64(10 * from), to: int64(10 * to),
			began: time.Duration(from * 1e9), ended: time.Duration(to * 1e9),
			result: Result{End: Answered, Yes: []bool{true}, Timed: true},
		}
	}
	const one, other, both = "one", "other", "both"
	for name, h := range map[string]struct {
		ok    bool
		calls []*called
	}{
		"added in one pane":   {true, []*called{at(5, 6, Add, one), at(7, 8, Add, other), at(9, 10, Exists, both)}},
		"added in two panes":  {false, []*called{at(5, 6, Add, one), at(20, 21, Add, other), at(22, 23, Exists, both)}},
		"near the end of one": {true, []*called{at(5, 6, Add, one), at(17, 18, Add, other), at(19, 20, Exists, both)}},
		"one alone":           {false, []*called{at(5, 6, Add, one), at(9, 10, Exists, both)}},
		"one of them is old":  {false, []*called{at(5, 6, Add, one), at(7, 8, Add, other), at(45, 46, Exists, both)}},
	} {
		history := NewHistory(&Windows{Span: 10 * time.Second, Panes: 1, Shared: []string{one, other, both}})
		history.begin, history.calls = time.Unix(15e6, 0), h.calls // an epoch begins
		if err := history.Check(); (err == nil) != h.ok {
			t.Errorf("%s: Check() = %v, want it right: %v", name, err, h.ok)
		}
	}
}

// TestShare proves what the model says of the items that share cells: the last has
// the cells of the two others, and of no one of them. Nothing else is found.
func TestShare(t *testing.T) {
	for n := range 8 {
		w := &Windows{Common: Common{Seed: uint64(n%2) * secretSeed}, Span: time.Hour, Panes: 1 + n/2}
		w.share()
		g, err := w.config(plain).Geometry()
		if err != nil {
			t.Fatal(err)
		}
		one, other, both := bloom.NewLocal(g), bloom.NewLocal(g), bloom.NewLocal(g)
		one.Add(w.Shared[0])
		other.Add(w.Shared[1])
		both.Add(w.Shared[0])
		both.Add(w.Shared[1])
		switch {
		case one.Exists(w.Shared[1]), one.Exists(w.Shared[2]), other.Exists(w.Shared[0]), other.Exists(w.Shared[2]):
			t.Errorf("%v: an item is found because of another", w.Shared)
		case !both.Exists(w.Shared[2]), both.Exists(itemAtLast), both.Exists("item-other"):
			t.Errorf("%v: wrong items are found because of two others", w.Shared)
		}
	}
}

// TestCheckMirrorOfAWindow checks histories of a window of 10 s in a pane of 15 s, and
// of a Mirror whose answers count for 3 s, and in an outage for 5 s more.
func TestCheckMirrorOfAWindow(t *testing.T) {
	const yes, no, own = true, false, "own"
	stale := Staleness{MaxStale: 3 * time.Second, StaleIfError: 5 * time.Second, Outages: true}
	stale.limit()
	epoch := time.Unix(15e6, 0)
	secs := func(s float64) time.Duration { return time.Duration(s * 1e9) }
	at := func(from, to float64, v Verb, answer bool, items ...string) *called {
		return &called{
			client: "x", call: Call{Verb: v, Items: items}, from: int64(10 * from), to: int64(10 * to),
			began: secs(from), ended: secs(to), session: own,
			result: Result{End: Answered, Yes: slices.Repeat([]bool{answer}, max(1, len(items))), Timed: true},
		}
	}
	by := func(session string, c *called) *called { c.session = session; return c }
	asked := func(c *called, answered bool) *called {
		q := Question{Asked: epoch.Add(c.began), Sent: epoch.Add(c.began), Ended: epoch.Add(c.ended), Answered: answered}
		c.result.Questions, c.result.Tried = []Question{q}, 1
		return c
	}
	with := func(c *called, change func(*called)) *called { change(c); return c }
	frozen := func(c *called) { c.result.Stood = 10 * time.Second }
	missing := func(c *called) { c.result.End = Missing }
	uncertain := func(err string) func(*called) {
		return func(c *called) { c.result.End, c.result.Early, c.result.Err = Uncertain, true, err }
	}
	region := func(c *called) { c.result.Refused = true }
	look := func(from, to float64, answer bool) *called { return at(from, to, MirrorExists, answer, "a") }
	added, old := by("another", at(1, 2, Add, true, "a")), by("another", at(5, 6, Add, true, "a"))
	for _, tt := range []struct {
		name  string
		right bool
		calls []*called
	}{
		{"a no that is stale", true, []*called{added, look(4.5, 4.6, no)}},
		{"a no that is too stale", false, []*called{added, look(6, 6.1, no)}},
		{"a no in an outage", true, []*called{added, asked(look(6, 6.1, no), false)}},
		{"a no of an earlier outage", false, []*called{
			added, asked(look(2.5, 3, no), false), asked(at(3.5, 4, Refresh, yes), true), look(8, 8.1, no),
		}},
		{"its own Add is forgotten", false, []*called{
			asked(at(1, 2, MirrorThrough, true, "a"), true), look(2.5, 2.6, no),
		}},
		{"what a refresh has read is forgotten", false, []*called{
			added, asked(at(2.5, 3, Refresh, yes), true), look(3.5, 3.6, no),
		}},
		{"found in a window that has gone", true, []*called{added, at(3, 4, Delete, yes), look(5, 5.1, yes)}},
		{"found in a window that went long ago", false, []*called{added, at(3, 4, Delete, yes), look(8, 8.1, yes)}},
		{"found in a window that it knew to be gone", false, []*called{
			added, at(3, 4, Delete, yes), asked(with(at(4.5, 4.6, Refresh, yes), missing), true), look(5, 5.1, yes),
		}},
		{"found for too long", false, []*called{old, asked(look(42, 42.1, yes), false)}},
		{"found by a process that was frozen", true, []*called{old, with(asked(look(42, 42.1, yes), false), frozen)}},
		{"found by a process that is frozen no more", false, []*called{old, with(asked(look(42, 42.1, yes), true), frozen)}},
		{"asked, and need not", false, []*called{
			added, asked(at(2.5, 3, Refresh, yes), true), asked(look(3.5, 3.6, yes), true),
		}},
		{"asked whether it still counts", true, []*called{
			added, asked(at(14.5, 15, Refresh, yes), true), asked(look(16, 16.1, yes), true),
		}},
		{"the outage that another began", true, []*called{
			asked(with(at(1, 1.5, MirrorThrough, true, "a"), func(c *called) { c.result.End = Unknown }), false),
			at(2, 2.1, MirrorStats, yes),
		}},
		{"an outage that nobody began", false, []*called{added, at(2.5, 2.6, MirrorStats, yes)}},
		{"a batch sent after the copy has answered", true, []*called{
			at(1, 2, MirrorThrough, true, "a"), asked(at(3, 9, MirrorAddAll, false, "a", "b"), true),
			by("another", at(1, 2, Add, true, "b")), at(14, 14.5, Exists, no, "a"),
		}},
		{"a batch across a removal", false, []*called{
			at(1, 9, AddAll, true, "a", "b"), at(4, 5, Delete, yes), at(10, 10.5, Exists, yes, "b"), at(11, 11.5, Exists, no, "a"),
		}},
		{"a batch that was removed", true, []*called{
			at(1, 9, AddAll, true, "a", "b"), at(4, 5, Delete, yes), at(10, 10.5, Exists, no, "b"), at(11, 11.5, Exists, no, "a"),
		}},
		{"uncertain without the time", true, []*called{with(at(6, 7, Add, true, "a"), uncertain("TIME: lost"))}},
		{"uncertain although another learned the time", false, []*called{with(at(6, 7, Add, true, "a"), uncertain("lost"))}},
		{"opened near a region that knows nothing yet", true, []*called{
			added, with(with(at(3, 4, Open, yes), missing), region),
		}},
		{"opened near a region, and never made", false, []*called{with(at(3, 4, Open, yes), region)}},
	} {
		w := &Windows{Span: 10 * time.Second, Panes: 1, Staleness: stale}
		w.Lag = slices.ContainsFunc(tt.calls, func(c *called) bool { return c.result.Refused })
		history := NewHistory(w)
		history.begin, history.calls = epoch, tt.calls
		if err := history.Check(); (err == nil) != tt.right {
			t.Errorf("%s: Check() = %v, want it right: %v", tt.name, err, tt.right)
		}
	}
}
