package engine

import (
	"strings"
	"testing"
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
			t.Errorf("the first item set %d bits, want its own %d", n, len(p.Item))
		}
		for _, cell := range p.Item {
			if p.Bits[cell] != '1' {
				t.Errorf("cell %d of the item is not set, want it set", cell)
			}
		}
	}
	wantText(t, v.Blocked.Text, "yes", "2 reads", "4 writes")
	wantText(t, v.Classic.Text, "yes", "7 reads", "7 writes")
	wantText(t, v.Request, `["BITFIELD","filter","OVERFLOW","FAIL"`)
	if n := strings.Count(v.Request, `"SET","u1"`); n != 4 {
		t.Errorf("the request of an Add has %d writes, want 4: %s", n, v.Request)
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
		t.Errorf("Ask(bob): items %q, request %s, want two items and GET u53", v.Items, v.Request)
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
		t.Errorf("FindFalse found %s, want a stranger that the filter finds", guess)
	}
	wantText(t, table.Add(guess).Text, "called seen", "a false positive")
	if again := table.FindFalse(); again.Text == v.Text {
		t.Error("FindFalse found the same guess again, want another")
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
			t.Errorf("rate %v: %v and %v, want the table's size, twice", rate, g, table.classic.local.Geometry())
		}
		if got := g.FalsePositiveRate(table.capacity); got > rate || got < 0.9*rate {
			t.Errorf("rate %v: %v at %d items, want 0.9 to 1 times the rate", rate, got, table.capacity)
		}
	}
	if _, err := NewTable(0); err == nil {
		t.Error("NewTable(0): no error, want one")
	}
}

func TestQuotedIsShort(t *testing.T) {
	long := quoted(strings.Repeat("é", 100))
	if long != "“"+strings.Repeat("é", 40)+"…”" {
		t.Errorf("quoted(100 letters) = %s, want 40 of them and …", long)
	}
	table := newTable(t, 0.01)
	v := table.AddMade(50)
	if len(v.Request) == 0 || len(v.Request) > 610 || !strings.HasSuffix(v.Request, " …") {
		t.Errorf("the shown request has %d bytes, want 1 to 610 and … at its end", len(v.Request))
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
