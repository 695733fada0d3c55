package engine

import (
	"strings"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
)

// A View is a Table as the page shows it.
type View struct {
	Text    string   `json:"text"`    // what happened, in a sentence or two
	Request string   `json:"request"` // the body of the same call, or ""
	Items   []string `json:"items"`
	Blocked Picture  `json:"blocked"`
	Classic Picture  `json:"classic"`
}

// A Picture is one filter, and one item in it.
type Picture struct {
	Bits  string   `json:"bits"` // "0" or "1" for each cell
	Item  []uint64 `json:"item"` // the cells of the item
	Text  string   `json:"text"`
	Facts []Fact   `json:"facts"`
}

// A Fact is a line of a table.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Show shows an item that was added before.
func (t *Table) Show(item string) View {
	return t.view(quoted(item)+" is in: its bits are marked.", item)
}

// view shows the filters as they are, with the cells of an item, or of none.
func (t *Table) view(text, item string) View {
	v := View{Text: text, Items: t.items, Blocked: t.blocked.picture(), Classic: t.classic.picture()}
	if item != "" {
		for s, p := range map[*side]*Picture{t.blocked: &v.Blocked, t.classic: &v.Classic} {
			p.Item = unique(s.local.Geometry().Positions(nil, item))
			p.Text = s.cost(item, t.member[item])
		}
	}
	stats := t.blocked.local.Stats()
	v.Blocked.Facts = append([]Fact{
		{"items", human.Count(uint64(len(t.items))) + " of " + human.Count(t.capacity)},
		{"items, estimated", human.Count(stats.Items)},
	}, v.Blocked.Facts...)
	return v
}

// View shows a table to which nothing has happened yet.
func (t *Table) View() View {
	return t.view("The filter is empty. Add something.", "")
}

func (s *side) picture() Picture {
	stats := s.local.Stats()
	g := stats.Geometry
	header := g.Bytes(bloom.LayoutHeaded) - g.Bytes(bloom.LayoutBare)
	return Picture{
		Bits: bitsOf(s.local.Bytes()[header:], g.Bits),
		Item: []uint64{},
		Facts: []Fact{
			{"bits set", human.Count(stats.SetBits) + " of " + human.Count(g.Bits)},
			{"fill", percent(stats.Fill)},
			{"false positives", oneIn(stats.LiveFPRate)},
		},
	}
}

// cost describes what a look-up of an item reads, and its answer.
func (s *side) cost(item string, member bool) string {
	answer := "no"
	switch found := s.local.Exists(item); {
	case found && member:
		answer = "yes"
	case found:
		answer = "yes, wrongly"
	}
	reads, writes := operations(s.local.Geometry())
	return quoted(item) + ": " + answer + ". " + counted(reads, "read") + " ask for it, " +
		counted(writes, "write") + " add it."
}

// operations returns the number of operations in the command of a look-up and
// of an Add.
func operations(g bloom.Geometry) (reads, writes int) {
	if g.Scheme == bloom.SchemeBlocked {
		return g.Hashes / 2, g.Hashes
	}
	return g.Hashes, g.Hashes
}

// bitsOf writes the first bits of a string as text.
func bitsOf(data []byte, n uint64) string {
	var b strings.Builder
	for i := range n {
		b.WriteByte('0' + data[i/8]>>(7-i%8)&1)
	}
	return b.String()
}
