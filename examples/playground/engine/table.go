// Package engine computes the contents of the playground's page. Packages bloom
// and upstash do the work. This package adds the bookkeeping, such as who set a
// bit, and the sentences.
package engine

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
)

// The picture has a row for each word of the blocked scheme, and a filter has
// at least 32 words.
const (
	wordBits  = 53
	tableRows = 32
)

// maxGuesses bounds the search for a false positive.
const maxGuesses = 200_000

// A Table is two filters of the same size with the same items: a blocked one,
// this module's default, and a classic one.
type Table struct {
	capacity         uint64
	blocked, classic *side
	request          *requests
	items            []string
	member           map[string]bool
	made, guessed    int
}

// A side is one of the filters, and who set each of its bits first.
type side struct {
	local *bloom.Local
	owner map[uint64]string
}

// NewTable makes both filters for a false positive rate, and for as many items
// as fit into 32 words of the blocked scheme.
func NewTable(rate float64) (*Table, error) {
	capacity := uint64(1)
	for next := capacity + 1; ; next++ {
		g, err := bloom.Config{Capacity: next, FPRate: rate}.Geometry()
		if err != nil {
			return nil, err
		}
		if g.Bits > tableRows*wordBits {
			break
		}
		capacity = next
	}
	blocked := bloom.Config{Capacity: capacity, FPRate: rate}
	b, err := blocked.Geometry()
	if err != nil {
		return nil, err
	}
	c, err := bloom.Config{
		Bits: b.Bits, Hashes: bloom.OptimalHashes(b.Bits, capacity), Scheme: bloom.SchemeXXH3,
	}.Geometry()
	if err != nil {
		return nil, err
	}
	r, err := newRequests(blocked)
	if err != nil {
		return nil, err
	}
	return &Table{
		capacity: capacity, blocked: newSide(b), classic: newSide(c), request: r,
		items: []string{}, member: map[string]bool{},
	}, nil
}

func newSide(g bloom.Geometry) *side {
	return &side{local: bloom.NewLocal(g), owner: map[uint64]string{}}
}

func (s *side) add(item string) (added bool) {
	for _, p := range s.local.Geometry().Positions(nil, item) {
		if _, taken := s.owner[p]; !taken {
			s.owner[p] = item
		}
	}
	return s.local.Add(item)
}

// add adds an item to both filters, and reports whether it was new to the
// blocked one.
func (t *Table) add(item string) (added bool) {
	added = t.blocked.add(item)
	t.classic.add(item)
	if !t.member[item] {
		t.member[item] = true
		t.items = append(t.items, item)
	}
	return added
}

// Add adds an item.
func (t *Table) Add(item string) View {
	g, was := t.blocked.local.Geometry(), t.member[item]
	before := t.blocked.local.Stats().SetBits
	cells := unique(g.Positions(nil, item))
	owners := t.blocked.owners(cells)
	added := t.add(item)
	text := ""
	switch set := t.blocked.local.Stats().SetBits - before; {
	case added:
		text = fmt.Sprintf("%s was new. Its %s lie in %s; %s 0 until now.", quoted(item),
			counted(len(cells), "bit"), rows(cells), wereThem(int(set), len(cells)))
	case was:
		text = fmt.Sprintf("%s was seen: it is in already, and an Add changes nothing.", quoted(item))
	default:
		text = fmt.Sprintf("%s was called seen, and yet it is new: a false positive. Its %s were set by %s.",
			quoted(item), counted(len(cells), "bit"), listed(owners))
	}
	v := t.view(text, item)
	v.Request = t.request.add(item)
	return v
}

// AddAll adds the lines of a text.
func (t *Table) AddAll(text string) View {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return t.addAll(lines)
}

// AddMade adds n items made up by the page.
func (t *Table) AddMade(n int) View {
	items := make([]string, n)
	for i := range items {
		t.made++
		items[i] = fmt.Sprintf("visitor-%d@example.com", t.made)
	}
	return t.addAll(items)
}

func (t *Table) addAll(items []string) View {
	isNew, again, wrong := 0, 0, 0
	for _, item := range items {
		was := t.member[item]
		switch added := t.add(item); {
		case added:
			isNew++
		case was:
			again++
		default:
			wrong++
		}
	}
	if len(items) == 0 {
		return t.view("There is nothing to add: write an item on each line.", "")
	}
	text := counted(len(items), "item") + ": " + human.Count(uint64(isNew)) + " new"
	if again > 0 {
		text += ", " + human.Count(uint64(again)) + " in already"
	}
	if wrong > 0 {
		text += ", " + human.Count(uint64(wrong)) + " called seen by mistake"
	}
	v := t.view(text+".", "")
	v.Request = t.request.addAll(items)
	return v
}

// Ask looks an item up.
func (t *Table) Ask(item string) View {
	v := t.view(t.blocked.answer(item, t.member[item]), item)
	v.Request = t.request.exists(item)
	return v
}

// answer says whether an item is in, and why.
func (s *side) answer(item string, member bool) string {
	cells := unique(s.local.Geometry().Positions(nil, item))
	if !s.local.Exists(item) {
		clear := slices.IndexFunc(cells, func(p uint64) bool { _, set := s.owner[p]; return !set })
		return fmt.Sprintf("No: %s was never added. An Add would have set bit %d of word %d, which is 0.",
			quoted(item), cells[clear]%wordBits, cells[clear]/wordBits)
	}
	if member {
		return fmt.Sprintf("Yes: all %s of %s are set.", counted(len(cells), "bit"), quoted(item))
	}
	return fmt.Sprintf("Yes, and that is wrong: %s was never added. Its %s were set by %s.", quoted(item),
		counted(len(cells), "bit"), listed(s.owners(cells)))
}

// FindFalse guesses items until the blocked filter finds one that was never
// added.
func (t *Table) FindFalse() View {
	rate := t.blocked.local.Stats().LiveFPRate
	if len(t.items) == 0 {
		return t.view("The filter is empty, and finds nothing. Add some items first.", "")
	}
	for n := 1; n <= maxGuesses; n++ {
		t.guessed++
		guess := fmt.Sprintf("guess-%d", t.guessed)
		if !t.blocked.local.Exists(guess) || t.member[guess] {
			continue
		}
		v := t.Ask(guess)
		v.Text += fmt.Sprintf(" It took %s; %s is to be expected.", counted(n, "guess"), oneIn(rate))
		return v
	}
	return t.view(fmt.Sprintf("Of %s guesses none was found. At this fill %s is to be expected: add more items"+
		" first.",
		human.Count(maxGuesses), oneIn(rate)), "")
}

// owners returns which items set these bits first.
func (s *side) owners(cells []uint64) []string {
	var names []string
	for _, p := range cells {
		if name, ok := s.owner[p]; ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func unique(cells []uint64) []uint64 {
	cells = slices.Clone(cells)
	slices.Sort(cells)
	return slices.Compact(cells)
}

// rows names the words of some cells.
func rows(cells []uint64) string {
	var words []string
	for _, p := range cells {
		if w := fmt.Sprint(p / wordBits); !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	if len(words) == 1 {
		return "word " + words[0]
	}
	return "words " + joined(words)
}

func wereThem(n, of int) string {
	switch {
	case n == of:
		return "all were"
	case n == 1:
		return "1 of them was"
	}
	return fmt.Sprintf("%d of them were", n)
}

func listed(items []string) string {
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = quoted(item)
	}
	return joined(names)
}

func joined(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// quoted shortens an item if it would fill the page.
func quoted(item string) string {
	const most = 40
	if utf8.RuneCountInString(item) > most {
		item = string([]rune(item)[:most]) + "…"
	}
	return "“" + item + "”"
}

func counted(n int, thing string) string { return human.Counted(uint64(n), thing) }

func percent(share float64) string {
	digits := 2
	if share > 0 {
		digits = min(max(1-int(math.Floor(math.Log10(100*share))), 0), 6)
	}
	return fmt.Sprintf("%.*f%%", digits, 100*share)
}
