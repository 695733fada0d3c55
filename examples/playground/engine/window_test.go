package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
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
				t.Errorf("two panes are %s: %s", state, states(v))
			}
			n = strings.Count(p.Bits, "1")
		}
	}
	if n < 0 {
		t.Fatalf("no pane is %s: %s", state, states(v))
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
		t.Errorf("a new window: %s at %s", states(v), v.Now)
	}
	v = check(w.Add(ctx, "ann"))
	wantText(t, v.Text, "“ann” is new", "Sent: 2 requests") // one is TIME
	bits := has(t, v, "now")
	if g := w.window.Geometry(); bits == 0 || bits > g.Hashes {
		t.Errorf("an item set %d bits of %v", bits, g)
	}
	wantText(t, check(w.Add(ctx, "ann")).Text, "seen in the last 24 hours", "Sent: 1 request.")

	v = check(w.Later(ctx, 25*time.Hour))
	wantText(t, v.Text, "25 hours have passed. Nothing was sent.")
	if has(t, v, "now") != 0 || has(t, v, "counts") != bits {
		t.Errorf("a day later: %s", states(v))
	}
	v = check(w.Add(ctx, "bob"))
	wantText(t, v.Text, "it turned the window")
	if has(t, v, "spare") != 0 || has(t, v, "counts") != bits {
		t.Errorf("after the turn: %s", states(v))
	}
	wantText(t, check(w.Ask(ctx, "ann")).Text, "Yes", "25 hours ago", "no longer counts")
	if !v.Items[0].Found {
		t.Error("ann is not found, in a pane that counts")
	}

	v = check(w.Later(ctx, 24*time.Hour))
	if has(t, v, "old") != bits {
		t.Errorf("two days later: %s", states(v))
	}
	wantText(t, check(w.Ask(ctx, "ann")).Text, "No", "is forgotten")
	wantText(t, check(w.Ask(ctx, "cid")).Text, "No: “cid” was not added")
	v = check(w.AddMade(ctx, 10))
	wantText(t, v.Text, "10 items", "turned the window")
	if has(t, v, "spare") != 0 {
		t.Errorf("ann's pane was not cleared: %s", states(v))
	}
}

func TestWindowPanes(t *testing.T) {
	for _, panes := range []int{1, 2} {
		v, err := newWindow(t, panes).View(context.Background())
		if err != nil || len(v.Panes) != panes+2 {
			t.Errorf("%d panes of %d, %v", len(v.Panes), panes, err)
		}
	}
	if w, err := NewWindow(context.Background(), 9); err == nil {
		w.Close()
		t.Error("a window of nine panes is no error")
	}
}
