package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	_ "github.com/upbloom/upbloom/internal/testkit/testenv" // its clients are patient
)

func newWindow(t *testing.T, panes int) *Window {
	t.Helper()
	w, err := NewWindow(context.Background(), panes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// states returns the states of the panes, and how many bits each has.
func states(v WindowView) string {
	var list []string
	for _, p := range v.Panes {
		list = append(list, fmt.Sprint(p.State, " ", strings.Count(p.Bits, "1")))
	}
	return strings.Join(list, ", ")
}

// has returns the number of bits in the only pane in a state.
func has(t *testing.T, v WindowView, state string) int {
	t.Helper()
	n := -1
	for _, p := range v.Panes {
		if p.State == state {
			if n >= 0 {
				t.Errorf("two panes are %s, want one: %s", state, states(v))
			}
			n = strings.Count(p.Bits, "1")
		}
	}
	if n < 0 {
		t.Fatalf("no pane is %s, want one: %s", state, states(v))
	}
	return n
}

// An item lives through the day, in the pane of its epoch; the first Add of a
// later epoch clears what is oldest.
func TestWindowTurns(t *testing.T) {
	ctx := context.Background()
	w := newWindow(t, 1)
	check := func(v WindowView, err error) WindowView {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := check(w.View(ctx))
	if has(t, v, "now") != 0 || has(t, v, "spare") != 0 || v.Now != "day 1, 00:00" {
		t.Errorf("a new window: %s at %s, want empty panes at day 1, 00:00", states(v), v.Now)
	}
	v = check(w.Add(ctx, "ann"))
	wantText(t, v.Text, "“ann” is new", "Sent: 2 requests") // one is TIME
	bits := has(t, v, "now")
	if g := w.window.Geometry(); bits == 0 || bits > g.Hashes {
		t.Errorf("an item set %d bits of %v, want 1 to %d", bits, g, g.Hashes)
	}
	wantText(t, check(w.Add(ctx, "ann")).Text, "seen in the last 24 hours", "Sent: 1 request.")

	v = check(w.Later(ctx, 24*time.Hour))
	wantText(t, v.Text, "24 hours have passed. Nothing was sent.")
	if has(t, v, "now") != 0 || has(t, v, "counts") != bits {
		t.Errorf("a day later: %s, want %d bits in the pane that counts and none in the present one", states(v), bits)
	}
	v = check(w.Add(ctx, "bob"))
	wantText(t, v.Text, "it turned the window")
	// Two Adds and a TIME before it. Then a TIME, an Add, and what turned the window.
	if got, want := v.Facts[2], (Fact{"billed commands so far", "10"}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	check(w.Later(ctx, time.Hour))
	if has(t, v, "spare") != 0 || has(t, v, "counts") != bits {
		t.Errorf("after the turn: %s, want a clear spare pane and %d bits in the one that counts", states(v), bits)
	}
	wantText(t, check(w.Ask(ctx, "ann")).Text, "Yes", "25 hours ago", "no longer counts")
	if !v.Items[0].Found {
		t.Error("Ask(ann): not found, want found: her pane counts")
	}

	v = check(w.Later(ctx, 24*time.Hour))
	if has(t, v, "old") != bits {
		t.Errorf("two days later: %s, want %d bits in the old pane", states(v), bits)
	}
	wantText(t, check(w.Ask(ctx, "ann")).Text, "No", "is forgotten")
	wantText(t, check(w.Ask(ctx, "cid")).Text, "No: “cid” was not added")
	v = check(w.AddMade(ctx, 10))
	wantText(t, v.Text, "10 items", "turned the window")
	if has(t, v, "spare") != 0 {
		t.Errorf("after ten items: %s, want a clear spare pane", states(v))
	}
}

// After two epochs or more, the first call turns the window and says so, and
// the picture does not.
func TestWindowTurnsAfterALeap(t *testing.T) {
	ctx := context.Background()
	for _, call := range []struct {
		name   string
		by     func(w *Window) (WindowView, error)
		billed string
		says   []string
	}{
		{
			"Add", func(w *Window) (WindowView, error) { return w.Add(ctx, "bob") }, "11",
			[]string{"“bob” is new", "turned the window", "Sent: 4 requests"},
		},
		{
			"Ask", func(w *Window) (WindowView, error) { return w.Ask(ctx, "ann") }, "10",
			[]string{"is forgotten", "turned the window", "Sent: 3 requests"},
		},
	} {
		w := newWindow(t, 1)
		if _, err := w.Add(ctx, "ann"); err != nil {
			t.Fatal(err)
		}
		before := w.turns(ctx)
		v, err := w.Later(ctx, 49*time.Hour)
		if err != nil || w.turns(ctx) != before || v.Items[0].Found {
			t.Errorf("Later: %v, and the window turned or still finds her: %+v", err, v.Items)
		}
		if v, err = call.by(w); err != nil {
			t.Fatal(err)
		}
		wantText(t, v.Text, call.says...)
		if got, want := v.Facts[2], (Fact{"billed commands so far", call.billed}); got != want {
			t.Errorf("%s: %v, want %v", call.name, got, want)
		}
	}
}

// A copy answers without a request until it is too old, lacks what was added since it
// was made, and forgets by itself.
func TestWindowCopy(t *testing.T) {
	ctx := context.Background()
	w := newWindow(t, 1)
	says := func(v WindowView, err error, parts ...string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		wantText(t, v.Text, parts...)
	}
	ask := func(item string, parts ...string) {
		t.Helper()
		v, err := w.AskCopy(ctx, item)
		says(v, err, parts...)
	}
	later := func(d time.Duration) {
		t.Helper()
		v, err := w.Later(ctx, d)
		says(v, err, "Nothing was sent")
	}
	v, err := w.Add(ctx, "ann")
	says(v, err, "“ann” is new")
	ask("ann", "Yes, says the copy", "was missing", "Sent: 1 request.")
	ask("bob", "No, says the copy", "from the memory", "Sent: 0 requests.")
	v, err = w.Add(ctx, "bob")
	says(v, err, "“bob” is new")
	ask("bob", "No, says the copy", "after the copy was made", "just now", "Sent: 0 requests.")
	later(6 * time.Hour)
	ask("bob", "No, says the copy", "after the copy was made", "6 hours ago", "Sent: 0 requests.")
	later(7 * time.Hour)
	ask("bob", "Yes, says the copy", "older than 12 hours")
	later(11 * time.Hour)
	ask("bob", "Yes, says the copy", "Sent: 0 requests.")
	later(72 * time.Hour)
	ask("bob", "No, says the copy", "older than 12 hours")
}

// Made-up items are listed by name, and can be asked for, as typed ones can.
func TestWindowMadeItems(t *testing.T) {
	ctx := context.Background()
	w := newWindow(t, 1)
	listed := func(v WindowView, err error, want string) {
		t.Helper()
		var got []string
		for _, item := range v.Items {
			got = append(got, fmt.Sprint(item.Item, " ", item.Added, " ", item.Found))
		}
		if text := strings.Join(got, ", "); err != nil || text != want {
			t.Errorf("listed: %s, %v, want %s", text, err, want)
		}
	}
	v, err := w.AddMade(ctx, 20)
	listed(v, err, "“event-1” just now true, “event-20” just now true")
	wantText(t, v.Text, "20 items were added", "“event-1” to “event-20”")
	v, err = w.Ask(ctx, "event-7") // one that is not listed
	wantText(t, v.Text, "Yes: “event-7” was added just now")
	listed(v, err, "“event-1” just now true, “event-20” just now true")
	v, err = w.Add(ctx, "event-1") // now it is the reader's
	listed(v, err, "“event-1” just now true, “event-20” just now true")
	v, err = w.Later(ctx, 49*time.Hour)
	listed(v, err, "“event-1” 49 hours ago false, “event-20” 49 hours ago false")
	for range 3 {
		v, err = w.AddMade(ctx, 2)
	}
	listed(v, err, "“event-1” 49 hours ago false, “event-23” just now true, “event-24” just now true,"+
		" “event-25” just now true, “event-26” just now true")
}

func TestWindowPanes(t *testing.T) {
	// The page says how long an epoch lasts.
	for panes, epoch := range map[int]time.Duration{1: 24*time.Hour + 5*time.Second, 2: 12*time.Hour + 3*time.Second} {
		w := newWindow(t, panes)
		v, err := w.View(context.Background())
		if err != nil || len(v.Panes) != panes+2 {
			t.Errorf("a window of %d panes: View has %d, %v, want two more", panes, len(v.Panes), err)
		}
		if w.epoch != epoch {
			t.Errorf("a window of %d panes: an epoch lasts %v, want %v", panes, w.epoch, epoch)
		}
	}
	if w, err := NewWindow(context.Background(), 9); err == nil {
		w.Close()
		t.Error("NewWindow of nine panes: no error, want one")
	}
}
