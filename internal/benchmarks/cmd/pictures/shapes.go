package main

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// shapes is what the library reports about a filter and a window. All offsets
// are in bits.
type shapes struct {
	word, body int   // a word, and where the first one begins
	filter     shape // for one item
	window     shape
	item       []uint64 // the item's cells, in their order
}

// A shape is one Redis string.
type shape struct {
	geometry bloom.Geometry
	header   []bool // whether a word begins at bits 0, 64 and 128
	starts   []int  // of the areas
	length   int
}

const shapeItem = "evt_1"

// askShapes adds an item to a filter and to a window, and looks at the strings.
func askShapes() (s shapes, err error) {
	server, err := upstashtest.Start()
	if err != nil {
		return s, err
	}
	defer server.Close()
	client, err := upstash.New(server.URL, server.Token)
	if err != nil {
		return s, err
	}
	defer client.Close()
	ctx := context.Background()
	f, err := bloom.New(client, "filter", bloom.Config{Capacity: 1, FPRate: 0.01})
	if err != nil {
		return s, err
	}
	w, err := bloom.NewWindow(client, "window", bloom.WindowConfig{
		Capacity: 1, FPRate: 0.01, Span: 24 * time.Hour,
	})
	if err != nil {
		return s, err
	}
	for _, create := range []func(context.Context) (bool, error){f.Create, w.Create} {
		if _, err := create(ctx); err != nil {
			return s, err
		}
	}
	for _, add := range []func(context.Context, string) (bool, error){f.Add, w.Add} {
		if _, err := add(ctx, shapeItem); err != nil {
			return s, err
		}
	}
	g := f.Geometry()
	s.body = 8 * int(g.Bytes(bloom.LayoutHeaded)-g.Bytes(bloom.LayoutBare))
	s.item = g.Positions(nil, shapeItem)
	slices.Sort(s.item)
	if s.word, err = wordBits(); err != nil {
		return s, err
	}
	if s.filter, err = look(ctx, client, "filter", g, s.body); err != nil {
		return s, err
	}
	s.window, err = look(ctx, client, "window", w.Geometry(), s.body)
	return s, err
}

// wordBits returns the number of which all sizes of blocked filters are
// multiples.
func wordBits() (int, error) {
	common := uint64(0)
	for n := range uint64(64) {
		g, err := bloom.Config{Capacity: 1000 + 97*n, FPRate: 0.01}.Geometry()
		if err != nil {
			return 0, err
		}
		for b := g.Bits; b != 0; {
			common, b = b, common%b
		}
	}
	return int(common), nil
}

// look reads a string.
func look(
	ctx context.Context, client *upstash.Client, key string, g bloom.Geometry, body int,
) (s shape, err error) {
	reply, err := client.Do(ctx, upstash.Cmd("GET", key).Binary())
	if err != nil {
		return s, err
	}
	data, err := reply.Bytes()
	if err != nil {
		return s, err
	}
	s.geometry, s.length = g, 8*len(data)
	for at := 0; at < body; at += 64 {
		s.header = append(s.header, data[at/8]&0x80 != 0)
	}
	area := 8 * int(g.Bytes(bloom.LayoutBare))
	total, touched := 0, 0
	for at := body; at < s.length; at += area {
		n := 0
		for _, b := range data[at/8 : (at+area)/8] {
			n += bits.OnesCount8(b)
		}
		s.starts = append(s.starts, at)
		total += n
		touched += min(n, 1)
	}
	if total != g.Hashes || touched != 1 || s.starts[len(s.starts)-1]+area != s.length {
		return s, fmt.Errorf("%s: the item set %d bits of %v, areas at %v of %d bits", key, total, g, s.starts,
			s.length)
	}
	return s, nil
}

// Where the strings lie in the picture.
const (
	shapesWidth, shapesHeight = 860, 380

	shapesLeft  = 16
	shapesRight = shapesWidth - shapesLeft
	headerWidth = 3 * 118.0
	bodyLeft    = shapesLeft + headerWidth
)

func drawShapes(ink inks, all shapes) string {
	s := newSheet(ink, shapesWidth, shapesHeight, "The string of a filter and of a window")
	drawFilter(s, all)
	drawWindow(s, all)
	return s.end()
}

// drawHeader draws the three words before the body.
func drawHeader(s *sheet, y float64, of shape) {
	const wide = headerWidth / 3
	names := []string{"header", "birth number", "the kind's word"}
	for i, used := range of.header {
		x, fill, name := shapesLeft+float64(i)*wide, s.pale, names[i]
		if !used {
			fill, name = "none", "0"
		}
		s.box(x, y, wide, 40, fill, s.soft)
		s.words(x+wide/2, y+25, "middle", s.text, name)
		s.words(x, y-8, "start", s.soft, fmt.Sprint(64*i))
	}
}

// drawFilter draws the words of a filter, and those of one item in large.
func drawFilter(s *sheet, all shapes) {
	s.words(shapesLeft, 20, "start", s.text, "*A filter")
	s.words(shapesLeft+70, 20, "start", s.soft, fmt.Sprintf(
		"the smallest one for 1 in 100: %d words of %d bits, %d bytes", int(all.filter.geometry.Bits)/all.word,
		all.word, all.filter.length/8))
	drawHeader(s, 56, all.filter)
	s.box(bodyLeft, 56, shapesRight-bodyLeft, 40, "none", s.soft)
	s.words(bodyLeft, 48, "start", s.text, fmt.Sprintf("*bit %d", all.body))
	s.words(shapesRight, 48, "end", s.soft, fmt.Sprint(all.filter.length))
	words := int(all.filter.geometry.Bits) / all.word
	wordAt := func(w int) float64 { return bodyLeft + (shapesRight-bodyLeft)*float64(w)/float64(words) }
	for w := 1; w < words; w++ {
		s.rule(wordAt(w), 56, wordAt(w), 96, s.line, "")
	}
	wide := float64(shapesRight-shapesLeft-40) / float64(all.filter.geometry.Hashes/2)
	for i := 0; i < len(all.item); i += 2 {
		w := int(all.item[i]) / all.word
		x := shapesLeft + float64(i/2)*(wide+40)
		s.box(wordAt(w), 56, wordAt(w+1)-wordAt(w), 40, s.accent, s.accent)
		s.rule(wordAt(w), 97, x, 136, s.accent, "2 3")
		s.rule(wordAt(w+1), 97, x+wide, 136, s.accent, "2 3")
		drawWord(s, all, w, x, wide, all.item[i:i+2])
	}
	s.words(shapesLeft, 196, "start", s.soft, fmt.Sprintf(
		"The item %q owns two bits in each of %d words. Word w is the number that GET u%d %d + %d w answers.",
		shapeItem, all.filter.geometry.Hashes/2, all.word, all.body, all.word))
}

// drawWindow draws the panes of a window.
func drawWindow(s *sheet, all shapes) {
	s.words(shapesLeft, 246, "start", s.text, "*A window")
	s.words(shapesLeft+78, 246, "start", s.soft, fmt.Sprintf(
		"with %d panes, each a filter by itself; the word at bit 128 holds the epoch", len(all.window.starts)))
	drawHeader(s, 282, all.window)
	wide := (shapesRight - bodyLeft) / float64(len(all.window.starts))
	for i, start := range all.window.starts {
		x, fill := bodyLeft+float64(i)*wide, "none"
		if i == 1 { // for instance: the time says which it is
			fill = s.accent
		}
		s.box(x, 282, wide, 40, "none", s.soft)
		s.box(x+6, 312, wide-12, 5, fill, s.soft)
		s.words(x+wide/2, 303, "middle", s.text, fmt.Sprintf("pane %d", i))
		ink, weight := s.soft, ""
		if i == 0 {
			ink, weight = s.text, "*bit "
		}
		s.words(x, 274, "start", ink, weight+fmt.Sprint(start))
	}
	s.words(shapesRight, 274, "end", s.soft, fmt.Sprint(all.window.length))
	s.words(shapesLeft, 346, "start", s.soft,
		"An Add sets bits in the pane of its epoch, number epoch mod panes, and reads the others.")
	s.words(shapesLeft, 366, "start", s.soft, "The first Add of an epoch clears the oldest pane.")
}

// drawWord draws the bits of a word, with two of them marked.
func drawWord(s *sheet, all shapes, w int, x, wide float64, cells []uint64) {
	bit := wide / float64(all.word)
	for b := range all.word {
		fill := "none"
		if uint64(w*all.word+b) == cells[0] || uint64(w*all.word+b) == cells[1] {
			fill = s.accent
		}
		s.box(x+float64(b)*bit, 136, bit, 16, fill, s.line)
	}
	first, second := min(cells[0], cells[1])%uint64(all.word), max(cells[0], cells[1])%uint64(all.word)
	s.words(x, 169, "start", s.soft, fmt.Sprintf("word %d, bits %d and %d", w, first, second))
}
