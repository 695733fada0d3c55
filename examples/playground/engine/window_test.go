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

// says returns a check of what a call says, which returns what it shows.
func says(v WindowView, err error) func(t *testing.T, parts ...string) WindowView {
	return func(t *testing.T, parts ...string) WindowView {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		wantText(t, v.Text, parts...)
		return v
	}
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
	v := says(w.View(ctx))(t, "empty")
	if has(t, v, "now") != 0 || has(t, v, "spare") != 0 || v.Now != "day 1, 00:00" {
		t.Errorf("a new window: %s at %s, want empty panes at day 1, 00:00", states(v), v.Now)
	}
	v = says(w.Add(ctx, "ann"))(t, "“ann” is new", "Sent: 2 requests") // one is TIME
	bits := has(t, v, "now")
	if g := w.window.Geometry(); bits == 0 || bits > g.Hashes {
		t.Errorf("an item set %d bits of %v, want 1 to %d", bits, g, g.Hashes)
	}
	says(w.Add(ctx, "ann"))(t, "seen in the last 24 hours", "Sent: 1 request.")

	v = says(w.Later(ctx, 24*time.Hour))(t, "24 hours have passed. Nothing was sent.")
	if has(t, v, "now") != 0 || has(t, v, "counts") != bits {
		t.Errorf("a day later: %s, want %d bits in the pane that counts and none in the present one", states(v), bits)
	}
	v = says(w.Add(ctx, "bob"))(t, "it turned the window")
	// Two Adds and a TIME before it. Then a TIME, an Add, and what turned the window.
	if got, want := v.Facts[2], (Fact{"billed commands so far", "10"}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	says(w.Later(ctx, time.Hour))(t)
	if has(t, v, "spare") != 0 || has(t, v, "counts") != bits {
		t.Errorf("after the turn: %s, want a clear spare pane and %d bits in the one that counts", states(v), bits)
	}
	says(w.Ask(ctx, "ann"))(t, "Yes", "25 hours ago", "no longer counts")
	if !v.Items[0].Found {
		t.Error("Ask(ann): not found, want found: her pane counts")
	}

	v = says(w.Later(ctx, 24*time.Hour))(t)
	if has(t, v, "old") != bits {
		t.Errorf("two days later: %s, want %d bits in the old pane", states(v), bits)
	}
	says(w.Ask(ctx, "ann"))(t, "No", "is forgotten")
	says(w.Ask(ctx, "cid"))(t, "No: “cid” was not added")
	v = says(w.AddMade(ctx, 10))(t, "10 items", "turned the window")
	if has(t, v, "spare") != 0 {
		t.Errorf("after ten items: %s, want a clear spare pane", states(v))
	}
}

// After two epochs or more, the first call turns the window and says so, and
// the picture does not.
func TestWindowTurnsAfterALeap(t *testing.T) {
	ctx := context.Background()
	leap := func() *Window {
		w := newWindow(t, 1)
		says(w.Add(ctx, "ann"))(t)
		before := w.turns(ctx)
		v := says(w.Later(ctx, 49*time.Hour))(t)
		if w.turns(ctx) != before || v.Items[0].Found {
			t.Errorf("Later: the window turned or still finds her: %+v", v.Items)
		}
		return w
	}
	v := says(leap().Add(ctx, "bob"))(t, "“bob” is new", "turned the window", "Sent: 4 requests")
	if got, want := v.Facts[2], (Fact{"billed commands so far", "11"}); got != want {
		t.Errorf("Add: %v, want %v", got, want)
	}
	v = says(leap().Ask(ctx, "ann"))(t, "is forgotten", "turned the window", "Sent: 3 requests")
	if got, want := v.Facts[2], (Fact{"billed commands so far", "10"}); got != want {
		t.Errorf("Ask: %v, want %v", got, want)
	}
}

// A copy answers without a request until it is too old, lacks what was added since it
// was made, and forgets by itself.
func TestWindowCopy(t *testing.T) {
	ctx := context.Background()
	w := newWindow(t, 1)
	says(w.Add(ctx, "ann"))(t, "“ann” is new")
	says(w.AskCopy(ctx, "ann"))(t, "Yes, says the copy", "was missing", "Sent: 1 request.")
	says(w.AskCopy(ctx, "bob"))(t, "No, says the copy", "from the memory", "Sent: 0 requests.")
	says(w.Add(ctx, "bob"))(t, "“bob” is new")
	says(w.AskCopy(ctx, "bob"))(t, "No, says the copy", "after the copy was made", "just now", "Sent: 0 requests.")
	says(w.Later(ctx, 6*time.Hour))(t, "Nothing was sent")
	says(w.AskCopy(ctx, "bob"))(t, "No, says the copy", "after the copy was made", "6 hours ago", "Sent: 0 requests.")
	says(w.Later(ctx, 7*time.Hour))(t, "Nothing was sent")
	says(w.AskCopy(ctx, "bob"))(t, "Yes, says the copy", "older than 12 hours")
	says(w.Later(ctx, 11*time.Hour))(t, "Nothing was sent")
	says(w.AskCopy(ctx, "bob"))(t, "Yes, says the copy", "Sent: 0 requests.")
	says(w.Later(ctx, 72*time.Hour))(t, "Nothing was sent")
	says(w.AskCopy(ctx, "bob"))(t, "No, says the copy", "older than 12 hours")
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
