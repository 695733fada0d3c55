package proof

import (
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
	w := Windows{Span: 10 * time.Second, Panes: 1}
	checkAll(t, &w, []sample{
		{"found for a span", true, "add a: new; 11-11.5 exists a: yes; 40-41 exists a: no"},
		{"forgotten too early", false, "add a: new; 11-11.5 exists a: no"},
		{"found for too long", false, "5-6 add a: new; 41-42 exists a: yes"},
		{"found, and added late", true, "5-16 add a: new; 51-52 exists a: yes"},
		{"a reader without a clock", false, "5-6 add a: new; 41-42 exists a: yes !Timed"},
		{"a reader without TIME", true, "5-6 add a: new; 41-42 exists a: yes NoTime"},
		{"two are new", false, "1-3 add a: new; 2-4 add a: new"},
		{"two are new, after panes", false, "1-30 add a: new; 35-36 add a: new"},
		{"one is new", true, "1-3 add a: new; 2-4 add a: seen"},
		{"nobody is new", false, "1-3 add a: seen; 2-4 add a: seen"},
		{"seen by itself", false, "add a: seen Maybe=1"},
		{"seen of an unknown one", true, "add a: unknown; 30-31 add a: seen"},
		{"seen of one that did not run", false, "add a: refused; add a: seen"},
		{"uncertain is in", false, "add a: uncertain Maybe=1; exists a: no"},
		{"uncertain for no reason", false, "6-7 add a: uncertain"},
		{"uncertain, and late", true, "6-17 add a: uncertain"},
		{"deleted", true, "add a: new; delete: did; exists a: no"},
		{"found after a delete", false, "add a: new; delete: did; exists a: yes"},
		{"gone", false, "add a: new; exists a: missing"},
		{"made twice", false, "add a: new; create: made"},
		{"opened", true, "add a: new; open: fits"},
		{"opened, and gone", false, "add a: new; open: missing"},
		{"opened, and not made", false, "3-4 open: fits"},
		{"opened in another shape", false, "add a: new; open: differs"},
		{"opened, and overwritten", false, "add a: new; overwrite: yes; open: fits"},
		{"frozen after its answer", true, "1-9 add a: new Sent=7s; 13-14 exists a: no"},
		{"a part of a batch", false, "addall a b: partly new seen done undone; exists a: no"},
	})
	losses, saved, must := w, w, w
	losses.Losses = true
	checkAll(t, &losses, []sample{
		{"an older state is back", true, "add a: new; revert: did; exists a: no"},
		{"back, and added again", false, "revert: did; add a: new; exists a: no"},
		{"deleted, and back", true, "add a: new; delete: did; 4-5 revert: did; exists a: yes"},
	})
	saved.Backups = new(Backups)
	checkAll(t, &saved, []sample{
		{"restored", true, "add a: new; takebackup: yes; delete: did; restorebackup: did; exists a: yes"},
		{"restored, and forgotten", false, "add a: new; takebackup: yes; delete: did; restorebackup: did; " +
			"exists a: no"},
		{"added after the Backup", true, "takebackup: yes; add a: new; delete: did; restorebackup: did; " +
			"exists a: no"},
		{"restored over a window", false, "add a: new; takebackup: yes; 7-8 restorebackup: did"},
	})
	must.MustExist = true
	checkAll(t, &must, []sample{
		{"made by an Add, and must exist", false, "add a: new Tried=2"},
		{"made by a Create, and must exist", true, "create: made; add a: new Tried=2"},
		{"its first command ran, and the window was deleted", true, "create: made; " +
			"3-9 add a: missing Tried=2 !Safe; 4-5 exists a: yes; 6-7 delete: did"},
		{"no command ran, and the window was deleted", false, "create: made; 3-9 add a: missing Tried=2; " +
			"4-5 exists a: yes; 6-7 delete: did"},
		{"deleted, opened, and must exist", false, "create: made; delete: did; open: fits Tried=2"},
	})
}

// TestCheckSharedCells checks histories of a window of 10 s in panes of 15 s. An item
// is in a pane if two others are.
func TestCheckSharedCells(t *testing.T) {
	shared := []string{"one", "other", "both"}
	checkAll(t, &Windows{Span: 10 * time.Second, Panes: 1, Shared: shared}, []sample{
		{"added in one pane", true, "5-6 add one: new; add other: new; exists both: yes"},
		{"added in two panes", false, "5-6 add one: new; 20-21 add other: new; exists both: yes"},
		{"near the end of one", true, "5-6 add one: new; 17-18 add other: new; exists both: yes"},
		{"one alone", false, "5-6 add one: new; 9-10 exists both: yes"},
		{"one of them is old", false, "5-6 add one: new; add other: new; 45-46 exists both: yes"},
	})
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
	stale := Staleness{MaxStale: 3 * time.Second, StaleIfError: 5 * time.Second, Outages: true}
	stale.limit()
	w := Windows{Span: 10 * time.Second, Panes: 1, Staleness: stale}
	checkAll(t, &w, []sample{
		{"a no that is stale", true, "y>add a: new; 4.5-4.6 mirror.exists a: no"},
		{"a no that is too stale", false, "y>add a: new; 6-6.1 mirror.exists a: no"},
		{"a no in an outage", true, "y>add a: new; 6-6.1 mirror.exists a: no silent"},
		{"a no of an earlier outage", false, "y>add a: new; 2.5-3 mirror.exists a: no silent; " +
			"3.5-4 mirror.refresh: asked; 8-8.1 mirror.exists a: no"},
		{"its own Add is forgotten", false, "mirror.addthrough a: new asked; 2.5-2.6 mirror.exists a: no"},
		{"what a refresh has read is forgotten", false, "y>add a: new; 2.5-3 mirror.refresh: asked; " +
			"3.5-3.6 mirror.exists a: no"},
		{"found in a window that has gone", true, "y>add a: new; delete: did; 5-5.1 mirror.exists a: yes"},
		{"found in a window that went long ago", false, "y>add a: new; delete: did; " +
			"8-8.1 mirror.exists a: yes"},
		{"found in a window that it knew to be gone", false, "y>add a: new; delete: did; " +
			"4.5-4.6 mirror.refresh: missing asked; 5-5.1 mirror.exists a: yes"},
		{"found for too long", false, "5-6 y>add a: new; 42-42.1 mirror.exists a: yes silent"},
		{"found by a process that was frozen", true, "5-6 y>add a: new; " +
			"42-42.1 mirror.exists a: yes silent Stood=10s"},
		{"found at the server by a process that was frozen", true, "5-6 y>add a: new; " +
			"132-132.1 mirror.exists a: yes asked LostTime Stood=100s"},
		{"found in a copy of then", true, "5-6 y>add a: new; 131-131.1 mirror.exists a: yes asked LostTime Stood=100s; " +
			"132-132.1 mirror.exists a: yes silent Stood=100s"},
		{"found in the copy of a process that was frozen", false, "5-6 y>add a: new; " +
			"132-132.1 mirror.exists a: yes silent Stood=100s"},
		{"found by a process that is frozen no more", false, "5-6 y>add a: new; " +
			"42-42.1 mirror.exists a: yes asked Stood=10s"},
		{"asked, and need not", false, "y>add a: new; 2.5-3 mirror.refresh: asked; " +
			"3.5-3.6 mirror.exists a: yes asked"},
		{"asked whether it still counts", true, "y>add a: new; 14.5-15 mirror.refresh: asked; " +
			"16-16.1 mirror.exists a: yes asked"},
		{"the outage that another began", true, "1-1.5 mirror.addthrough a: unknown silent Maybe=0; " +
			"2-2.1 mirror.stats: yes"},
		{"an outage that nobody began", false, "y>add a: new; 2.5-2.6 mirror.stats: yes"},
		{"an outage, and perhaps of a Mirror that was just opened", true, "y>add a: new; " +
			"1-1.5 mirror.addthrough a: unknown silent; 1.2-4 open: fits; 2-2.1 mirror.stats: yes"},
		{"an outage that began before an answer", false, "1-5 mirror.addthrough a: unknown silent; " +
			"3-3.1 mirror.refresh: asked; 6-6.1 mirror.stats: yes"},
		{"and the clock stood meanwhile", true, "1-5 mirror.addthrough a: unknown silent Stood=4s; " +
			"3-3.1 mirror.refresh: asked Stood=2s; 6-6.1 mirror.stats: yes Stood=4s"},
		{"a copy, and no answer of it", false, "1-2 mirror.addthrough a: new asked; " +
			"5.5-6 mirror.exists a: refused silent Safe Err=lost"},
		{"its clocks jumped while it learned", true, "1-2 mirror.addthrough a: new asked Leapt; " +
			"5.5-6 mirror.exists a: refused silent Safe Err=lost"},
		{"a batch sent after the copy has answered", true, "mirror.addthrough a: new; " +
			"3-9 mirror.addall a b: seen seen asked; 1-2 y>add b: new; 14-14.5 exists a: no"},
		{"a batch across a removal", false, "1-9 addall a b: new new; 4-5 delete: did; " +
			"10-10.5 exists b: yes; 11-11.5 exists a: no"},
		{"a batch that was removed", true, "1-9 addall a b: new new; 4-5 delete: did; 10-10.5 exists b: no; " +
			"11-11.5 exists a: no"},
		{"uncertain without the time", true, "6-7 add a: uncertain Early Err=TIME:_lost"},
		{"uncertain although another learned the time", false, "6-7 add a: uncertain Early Err=lost"},
	})
	loses := w
	loses.Losses = true
	checkAll(t, &loses, []sample{
		{"a no behind equal counts", true, "keep; 2.1-2.2 y>add b: new; 2.3-2.4 mirror.refresh: asked; 2.5-2.6 revert; " +
			"2.7-2.8 y>add a: new; 6-6.1 mirror.exists a: no asked"},
		{"its own Add is forgotten after a loss", false, "keep; 2.1-2.2 revert; " +
			"2.7-2.8 mirror.addthrough a: new asked; 6-6.1 mirror.exists a: no asked"},
	})
	near := w
	near.Lag = true
	checkAll(t, &near, []sample{
		{"opened near a region that knows nothing yet", true, "y>add a: new; open: missing Refused"},
		{"opened near a region, and never made", false, "3-4 open: fits Refused"},
	})
}
