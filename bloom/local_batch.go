package bloom

import (
	"encoding/binary"
	"iter"
	"math/bits"

	"github.com/upbloom/upbloom/bloom/internal/cells"
)

// AddAll adds items and reports for each whether it was new, as if they had
// been added one after another: of equal ones only the first can be new.
// Without items it returns nil.
//
// In a blocked filter of more than 2 MiB, AddAll is up to twice as fast as
// [Local.Add] for each item: it finds the words of many items before it reads
// the first, and the processor fetches them together. It allocates the answers,
// a byte an item; [Local.AddSeq] does not.
func (l *Local) AddAll(items []string) (added []bool) {
	if len(items) == 0 {
		return nil
	}
	added = make([]bool, len(items))
	if !l.isLarge() {
		for i, item := range items {
			added[i] = l.Add(item)
		}
		return added
	}
	l.addAhead(items, added)
	return added
}

// ExistsAll reports for each item whether it is in the filter, as
// [Local.Exists] does. Without items it returns nil. It is faster than Exists
// when AddAll is faster than Add, and allocates as much.
func (l *Local) ExistsAll(items []string) (found []bool) {
	if len(items) == 0 {
		return nil
	}
	found = make([]bool, len(items))
	if !l.isLarge() {
		for i, item := range items {
			found[i] = l.Exists(item)
		}
		return found
	}
	l.existAhead(items, found)
	return found
}

// AddSeq adds the items of a sequence of any length, nearly as fast as AddAll
// does. It holds at most 64 items at once, and allocates nothing for an item.
func (l *Local) AddSeq(items iter.Seq[string]) AddResult {
	g := newGatherer(l)
	for item := range items {
		g.add(item)
	}
	return g.flush()
}

// largeBytes is the size above which finding words ahead pays. A processor's
// own cache is about as large: at 1.3 MB, words found ahead cost 5% more time,
// at 4 MB a third less.
const largeBytes = 2 << 20

// isLarge reports whether batches find the words of many items ahead. Other
// schemes do not: the cells of one item are enough for the processor to fetch.
func (l *Local) isLarge() bool { return l.words != 0 && l.size > largeBytes }

// ahead is how many words are found before the first of them is read.
const ahead = 64

// A place is where an item's two bits are in the string: in the eight bytes
// from a byte on, as a little-endian number.
type place struct{ at, bits uint64 }

// group returns how many items have so many words.
func (l *Local) group() int { return ahead / (l.geo.Hashes / 2) }

// find finds the words of at most a group of items. It returns those of the
// first item, then those of the second, and so on.
func (l *Local) find(room *[ahead]place, items []string) []place {
	z, n := uint64(l.geo.Hashes)/2, uint(0)
	for _, item := range items {
		x, y := cells.Digest(item, l.geo.Seed)
		for i := uint64(0); i < z; {
			bit, pair := wordAt(x, l.words, l.inverse, l.shift, l.pairs)
			room[n%ahead] = place{bit / 8, bits.ReverseBytes64(pair >> (bit % 8))}
			n++
			i++
			x += y
			y += i
		}
	}
	return room[:n]
}

// addAhead is AddAll for a large filter.
func (l *Local) addAhead(items []string, added []bool) {
	var room [ahead]place
	for len(items) > 0 {
		n := min(l.group(), len(items))
		l.addGroup(&room, items[:n], added[:n])
		items, added = items[n:], added[n:]
	}
}

// addGroup adds at most a group of items, and returns how many were new. It
// says which, unless added is nil.
func (l *Local) addGroup(room *[ahead]place, items []string, added []bool) (isNew uint64) {
	all, buf := l.find(room, items), l.buf
	for i := range all {
		p := &all[i]
		at := buf[p.at : p.at+8]
		word := binary.LittleEndian.Uint64(at)
		binary.LittleEndian.PutUint64(at, word|p.bits)
		p.bits &^= word
	}
	for i := range items {
		missing := l.takeBits(&all) != 0
		if missing {
			isNew++
		}
		if added != nil {
			added[i] = missing
		}
	}
	return isNew
}

// existAhead is ExistsAll for a large filter.
func (l *Local) existAhead(items []string, found []bool) {
	var room [ahead]place
	buf := l.buf
	for len(items) > 0 {
		n := min(l.group(), len(items))
		all := l.find(&room, items[:n])
		for i := range all {
			p := &all[i]
			p.bits &^= binary.LittleEndian.Uint64(buf[p.at : p.at+8])
		}
		for i := range n {
			found[i] = l.takeBits(&all) == 0
		}
		items, found = items[n:], found[n:]
	}
}

// takeBits returns the bits that are left of the first item, and removes its
// places.
func (l *Local) takeBits(all *[]place) (left uint64) {
	z := l.geo.Hashes / 2
	for _, p := range (*all)[:z] {
		left |= p.bits
	}
	*all = (*all)[z:]
	return left
}

// A gatherer adds items to a Local, a group at once if that pays.
type gatherer struct {
	l      *Local
	group  int // 0: each item by itself
	n      int // how many items wait
	items  [ahead]string
	room   [ahead]place
	result AddResult
}

func newGatherer(l *Local) *gatherer {
	g := &gatherer{l: l}
	if l.isLarge() {
		g.group = l.group()
	}
	return g
}

// add adds an item now or later.
func (g *gatherer) add(item string) {
	g.result.Items++
	if g.group == 0 {
		if g.l.Add(item) {
			g.result.New++
		}
		return
	}
	g.items[g.n] = item
	if g.n++; g.n == g.group {
		g.flush()
	}
}

// flush adds the items that wait, and returns what was done in all.
func (g *gatherer) flush() AddResult {
	g.result.New += g.l.addGroup(&g.room, g.items[:g.n], nil)
	g.n = 0
	return g.result
}
