package engine

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func newTable(t *testing.T, rate float64) *Table {
	t.Helper()
	table, err := NewTable(rate)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func wantText(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("%q does not say %q", got, part)
		}
	}
}

// The picture has a row for each word, and shows the item's bits.
func TestTableShowsTheItemsBits(t *testing.T) {
	table := newTable(t, 0.01)
	v := table.Add("ann")
	wantText(t, v.Text, "“ann” was new", "4 bits", "all were 0")
	if len(v.Blocked.Bits) != tableRows*wordBits || len(v.Classic.Bits) != tableRows*wordBits {
		t.Fatalf("%d and %d cells, want %d", len(v.Blocked.Bits), len(v.Classic.Bits), tableRows*wordBits)
	}
	for _, p := range []Picture{v.Blocked, v.Classic} {
		if n := strings.Count(p.Bits, "1"); n != len(p.Item) {
			t.Errorf("%d bits are set by the first item, which owns %d", n, len(p.Item))
		}
		for _, cell := range p.Item {
			if p.Bits[cell] != '1' {
				t.Errorf("cell %d of the item is not set", cell)
			}
		}
	}
	wantText(t, v.Blocked.Text, "yes", "2 reads", "4 writes")
	wantText(t, v.Classic.Text, "yes", "7 reads", "7 writes")
	wantText(t, v.Request, `["BITFIELD","filter","OVERFLOW","FAIL"`)
	if n := strings.Count(v.Request, `"SET","u1"`); n != 4 {
		t.Errorf("the request of an Add has %d writes: %s", n, v.Request)
	}
}

func TestTableAnswers(t *testing.T) {
	table := newTable(t, 0.01)
	wantText(t, table.View().Text, "empty")
	wantText(t, table.FindFalse().Text, "empty, and finds nothing")
	wantText(t, table.AddAll(" \n").Text, "nothing to add")
	wantText(t, table.AddAll("ann\n\n bob \nann").Text, "3 items: 2 new, 1 in already")
	wantText(t, table.Add("ann").Text, "was seen")
	wantText(t, table.Ask("bob").Text, "Yes: all 4 bits")
	wantText(t, table.Ask("cid").Text, "No: “cid” was never added", "which is 0")
	wantText(t, table.Show("bob").Text, "“bob” is in")
	if v := table.Ask("bob"); len(v.Items) != 2 || !strings.Contains(v.Request, `"GET","u53"`) {
		t.Errorf("items %q, request %s", v.Items, v.Request)
	}
}

// The found item was never added, and others set all of its bits.
func TestFindFalse(t *testing.T) {
	table := newTable(t, 0.1)
	table.AddMade(int(table.capacity))
	v := table.FindFalse()
	wantText(t, v.Text, "Yes, and that is wrong", "was never added", "set by “visitor-", "is to be expected")
	guess := strings.SplitN(strings.SplitN(v.Text, "“", 2)[1], "”", 2)[0]
	if !table.blocked.local.Exists(guess) || table.member[guess] {
		t.Errorf("%s is no false positive", guess)
	}
	wantText(t, table.Add(guess).Text, "called seen", "a false positive")
	if again := table.FindFalse(); again.Text == v.Text {
		t.Error("the same guess was found again")
	}
}

// In an almost empty filter a false positive would take too many guesses.
func TestFindFalseGivesUp(t *testing.T) {
	table := newTable(t, 0.001)
	table.Add("ann")
	wantText(t, table.FindFalse().Text, "Of 200,000 guesses none was found")
}

func TestTableSizes(t *testing.T) {
	for _, rate := range []float64{0.1, 0.01, 0.001} {
		table := newTable(t, rate)
		g := table.blocked.local.Geometry()
		if g.Bits != tableRows*wordBits || table.classic.local.Geometry().Bits != g.Bits {
			t.Errorf("rate %v: %v and %v", rate, g, table.classic.local.Geometry())
		}
		if got := g.FalsePositiveRate(table.capacity); got > rate || got < 0.9*rate {
			t.Errorf("rate %v: %v at %d items", rate, got, table.capacity)
		}
	}
	if _, err := NewTable(0); err == nil {
		t.Error("a rate of 0 is no error")
	}
}

// Measured rates follow the formula, within four standard deviations of the
// sample and 5% for the filter itself.
func TestOverfill(t *testing.T) {
	o, err := NewOverfill()
	if err != nil {
		t.Fatal(err)
	}
	var v OverView
	for range overSteps {
		v = o.Step()
	}
	if !v.Done || len(v.Lines[0].Measured) != overSteps {
		t.Fatalf("done %v after %d points", v.Done, len(v.Lines[0].Measured))
	}
	for _, line := range v.Lines {
		for i, m := range line.Measured {
			want := line.Formula[i+1].Y
			spread := 100 * 4 * math.Sqrt(want/100/overStrangers)
			if math.Abs(m.Y-want) > spread+0.05*want {
				t.Errorf("%s at %v: %v%%, formula %v%%", line.Name, m.X, m.Y, want)
			}
		}
	}
	wantText(t, v.Text, "6,000 items, 3.0 times", "Of 50,000 strangers")
	if again := o.Step(); len(again.Lines[0].Measured) != overSteps {
		t.Error("it goes on after the end")
	}
}

func TestPlan(t *testing.T) {
	prices := DocumentedPrices()
	wish := Wish{
		Items: 1_000_000, OneIn: 100, Adds: 1e6, Lookups: 10e6,
		Commands: prices.Commands, Storage: prices.Storage,
	}
	p, err := wish.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if p.Total != "$660.00" || p.Bill[0].Value != "330,000,000" {
		t.Errorf("%s for %s commands", p.Total, p.Bill[0].Value)
	}
	for _, row := range []Row{
		{"memory", "1.3 MiB", "1.1 MiB"},
		{"reads to ask", "2", "7"},
		{"wrong, full", "1 in 100", "1 in 100"},
	} {
		if !strings.Contains(fmt.Sprint(p.Rows), fmt.Sprint(row)) {
			t.Errorf("%v is not in %v", row, p.Rows)
		}
	}
	wantText(t, p.Text, "1,000,000 items", "$660.00")
	wish.Items, wish.OneIn, wish.Filters, wish.Storage = 1e8, 1e6, 1000, 100
	if p, err = wish.Plan(); err != nil {
		t.Fatal(err)
	}
	wantText(t, fmt.Sprint(p), "under 1 in 10⁹", "1 in 2,127", "375.3 GiB", "$40,200.65", "$40,860.65")
	if s := oneIn(1.0 / 123_456_789); s != "1 in 123 million" {
		t.Error(s)
	}
	wish.OneIn = 0.5
	if _, err := wish.Plan(); err == nil {
		t.Error("a rate above 1 is no error")
	}
}

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

func TestQuotedIsShort(t *testing.T) {
	long := quoted(strings.Repeat("é", 100))
	if long != "“"+strings.Repeat("é", 40)+"…”" {
		t.Error(long)
	}
	table := newTable(t, 0.01)
	v := table.AddMade(50)
	if len(v.Request) == 0 || len(v.Request) > 610 || !strings.HasSuffix(v.Request, " …") {
		t.Errorf("a request of %d bytes", len(v.Request))
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{
		0: "0.00%", 0.5: "50%", 0.0776: "7.8%", 0.00959: "0.96%", 0.00001: "0.0010%", 1: "100%",
	} {
		if got := percent(share); got != want {
			t.Errorf("%v is %s, want %s", share, got, want)
		}
	}
}
