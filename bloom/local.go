package bloom

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"math/bits"
	"sync"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/format"
)

// A Local is a Bloom filter in memory, with the bytes of the Redis string.
//
// Any number of goroutines may read a Local at once. [Local.Add],
// [Local.AddAll], [Local.AddSeq] and [Local.Merge] must be the only call at the
// time: guard all calls with a sync.RWMutex. A Local must not be copied: use
// [Local.Clone]. The zero value has no cells: it finds nothing, and Add panics.
type Local struct {
	geo     Geometry
	rate    uint64 // the code in the string that this was read from; 0 if there was none
	words   uint64 // blocked: in the body; 0 for the others
	inverse uint64 // reciprocal(words), with shift
	shift   uint64
	pairs   *pairTable
	size    int    // of the string, in bytes
	buf     []byte // the string and some zero bytes: see padded
}

// NewLocal makes an empty filter of a geometry from [Config.Geometry] or
// [Filter.Geometry], with all its memory. It panics if no filter can have the
// geometry.
func NewLocal(g Geometry) *Local {
	if wrong := g.impossible(); wrong != "" {
		panic("bloom: NewLocal: no filter has " + wrong +
			": take the Geometry from Config.Geometry or Filter.Geometry")
	}
	return newLocal(g)
}

// newLocal is NewLocal for a checked geometry.
func newLocal(g Geometry) *Local {
	size := int(g.Bytes(LayoutHeaded))
	return localOf(g, 0, size, make([]byte, format.Padded(size)))
}

// localOf makes a Local of a padded buffer, and writes its header.
func localOf(g Geometry, rate uint64, size int, buf []byte) *Local {
	l := &Local{geo: g, rate: rate, size: size, buf: buf}
	if g.Scheme == SchemeBlocked {
		l.words = g.Bits / wordBits
		l.inverse, l.shift = reciprocal(l.words)
		l.pairs = sharedPairs()
	}
	format.SetWords(buf, g.header(KindFilter), 0)
	return l
}

// Add adds an item and reports whether it was new: false if it was added
// before, or is a false positive. It allocates nothing.
func (l *Local) Add(item string) (added bool) {
	if l.words == 0 {
		return l.addBits(item)
	}
	x, y := cells.Digest(item, l.geo.Seed) // in the steps of cells.AppendBlocked
	words, inverse, shift, pairs := l.words, l.inverse, l.shift, l.pairs
	bit, pair := wordAt(x, words, inverse, shift, pairs)
	z := uint64(l.geo.Hashes) / 2
	if z == 1 {
		return setPair(l.buf, bit, pair) != 0
	}
	// Two words without a loop: most filters have no more.
	x += y
	bit2, pair2 := wordAt(x, words, inverse, shift, pairs)
	missing := setPair(l.buf, bit, pair) | setPair(l.buf, bit2, pair2)
	for i := uint64(2); i < z; i++ {
		y += i - 1
		x += y
		bit, pair = wordAt(x, words, inverse, shift, pairs)
		missing |= setPair(l.buf, bit, pair)
	}
	return missing != 0
}

// Exists reports whether the item is in the filter: it was added, or is a false
// positive. It allocates nothing.
func (l *Local) Exists(item string) bool {
	if l.words == 0 {
		return l.hasBits(item)
	}
	x, y := cells.Digest(item, l.geo.Seed) // in the steps of cells.AppendBlocked
	words, inverse, shift, pairs, buf := l.words, l.inverse, l.shift, l.pairs, l.buf
	for i, z := uint64(0), uint64(l.geo.Hashes)/2; i < z; {
		bit, pair := wordAt(x, words, inverse, shift, pairs)
		if pair&^(load(buf, bit/8)<<(bit%8)) != 0 {
			return false
		}
		i++
		x += y
		y += i
	}
	return true
}

// Merge adds all items of the other filter, and keeps the Capacity. Another
// geometry or seed is a [*MismatchError], and nothing is changed.
func (l *Local) Merge(other *Local) error {
	if l.geo != other.geo {
		return localMismatch(l.geo, other.geo)
	}
	orInto(l.buf, other.buf)
	return nil
}

// Cardinality estimates how many distinct items were added, in about 0.1 ms a
// megabyte. Its error is [ErrSaturated].
func (l *Local) Cardinality() (uint64, error) {
	s := l.Stats()
	if s.Saturated {
		return 0, ErrSaturated
	}
	return s.Items, nil
}

// Stats returns the state of the filter. A [Filter.Snapshot] and a stream may
// know their Capacity; a new Local has none.
func (l *Local) Stats() Stats {
	if l.size == 0 {
		return Stats{}
	}
	s := statsOf(KindFilter, l.geo, l.geo.holds(l.rate, 1), l.setBits())
	s.Bytes = uint64(l.size)
	return s
}

// setBits returns how many cells are set.
func (l *Local) setBits() uint64 { return onesIn(l.buf[min(format.HeaderBytes, len(l.buf)):]) }

// onesIn returns how many bits are 1.
func onesIn(b []byte) (n uint64) {
	for ; len(b) >= 8; b = b[8:] {
		n += uint64(bits.OnesCount64(binary.LittleEndian.Uint64(b)))
	}
	for _, b := range b {
		n += uint64(bits.OnesCount8(b))
	}
	return n
}

// Clone returns a filter with the same items and Capacity, and memory of its own.
func (l *Local) Clone() *Local {
	twin := *l
	twin.buf = bytes.Clone(l.buf)
	return &twin
}

// Bytes returns a copy of the Redis string, with zeros at bits 64 to 191. It
// does not show a missing end: to keep a filter, use [Local.WriteTo].
func (l *Local) Bytes() []byte { return bytes.Clone(l.raw()) }

// raw is the Redis string itself.
func (l *Local) raw() []byte { return l.buf[:l.size:l.size] }

// Geometry returns the filter's geometry with its seed.
func (l *Local) Geometry() Geometry { return l.geo }

// WriteTo writes a stream for [ReadLocal] and [ReadBackup], 32 bytes longer
// than the string. It holds the Capacity, if it is known, and no seed, key or TTL.
// An error of w is wrapped.
func (l *Local) WriteTo(w io.Writer) (n int64, err error) {
	if l.size == 0 {
		return 0, errors.New("bloom: a zero Local has nothing to write: make it with NewLocal")
	}
	words := [format.HeaderBytes]byte(l.buf)
	format.SetWords(words[:], l.geo.header(KindFilter), l.rate)
	return format.WriteFrame(w, words[:], l.raw()[format.HeaderBytes:])
}

func (l *Local) Format(s fmt.State, _ rune) { _, _ = fmt.Fprintf(s, "bloom.Local(%v)", l.geo) }

// learnWord sets the bits of one word of the body, as GET u53 answered it.
func (l *Local) learnWord(index uint64, word int64) {
	bit := format.HeaderBits + wordBits*index
	at := bit / 8
	store(l.buf, at, load(l.buf, at)|uint64(word)<<(64-wordBits)>>(bit%8))
}

// orBytes sets the bits of a part of a Redis string, which starts at the byte
// offset. It leaves out the header, and what is behind the last cell.
func (l *Local) orBytes(offset int, part []byte) {
	offset, part = l.clip(offset, part)
	if len(part) == 0 {
		return
	}
	orInto(l.buf[offset:], part)
	l.buf[l.size-1] &= 0xff << (-l.geo.Bits & 7)
}

// clip returns what of a part of a Redis string has cells, and its offset.
func (l *Local) clip(offset int, part []byte) (int, []byte) {
	if skip := format.HeaderBytes - offset; skip > 0 {
		offset, part = format.HeaderBytes, part[min(skip, len(part)):]
	}
	return offset, part[:max(0, min(len(part), l.size-offset))]
}

// orInto sets the bits of src in dst, which is as long or longer.
func orInto(dst, src []byte) {
	for len(src) >= 8 {
		word := binary.LittleEndian.Uint64(dst) | binary.LittleEndian.Uint64(src)
		binary.LittleEndian.PutUint64(dst, word)
		dst, src = dst[8:], src[8:]
	}
	for i, b := range src {
		dst[i] |= b
	}
}

// How a Local reaches its cells. A word of 53 bits starts at any bit of a byte,
// and 7+53 bits are within eight bytes: one load, unaligned, in the order of a
// Redis string.
//
// Cells of 64 bits, set by atomic operations, would let Adds run beside each
// other and beside look-ups. But such an Add takes twice the time in a filter
// of a million items, and no look-up is faster. A lock without contention costs
// 2 ns of a look-up and 10 of an Add: callers lock instead.

func load(buf []byte, at uint64) uint64     { return binary.BigEndian.Uint64(buf[at : at+8]) }
func store(buf []byte, at uint64, v uint64) { binary.BigEndian.PutUint64(buf[at:at+8], v) }

// wordAt returns the bit of the string at which the word chosen by x begins,
// and the item's two bits in it, the word's bit 0 being the topmost. They are
// those of cells.BlockedBits. inverse and shift are reciprocal(words).
//
// A look-up in a large filter mostly waits for memory. Meanwhile the processor
// goes on to the next items, for some 500 instructions or up to a branch that
// it guessed wrongly. Both must be few: so there is a multiplication instead of
// a division, a table of the pairs, and no call.
func wordAt(x, words, inverse, shift uint64, pairs *pairTable) (bit, pair uint64) {
	q, _ := bits.Mul64(x, inverse)
	q >>= shift & 63 // shift is below 64: the compiler need not check
	w := x - q*words
	if w >= words { // q was one too low, which is rare
		w -= words
		q++
	}
	return format.HeaderBits + wordBits*w, pairs[q%pairCount]
}

// reciprocal returns 2^(64+shift)/words, rounded down, with the largest shift at
// which this has 64 bits. Then x times inverse, without its last 64+shift bits,
// is x/words, or one less: of all x in less than 2/words of them.
func reciprocal(words uint64) (inverse, shift uint64) {
	shift = uint64(bits.Len64(words) - 1)
	inverse, _ = bits.Div64(1<<shift-1, math.MaxUint64, words)
	return inverse, shift
}

// setPair sets two bits of the word that begins at a bit of the string, both
// from wordAt. It returns 0 if they were set before.
func setPair(buf []byte, bit, pair uint64) (missing uint64) {
	mask := bits.ReverseBytes64(pair >> (bit % 8))
	at := buf[bit/8 : bit/8+8]
	word := binary.LittleEndian.Uint64(at)
	binary.LittleEndian.PutUint64(at, word|mask)
	return mask &^ word
}

const pairCount = wordBits * (wordBits - 1)

// A pairTable has the two bits of a word for each remainder of q by pairCount,
// which decides both. It takes 22 KB.
type pairTable [pairCount]uint64

// sharedPairs returns the one table of all Locals.
var sharedPairs = sync.OnceValue(func() *pairTable {
	var t pairTable
	for q := range t {
		_, a, b := cells.BlockedBits(uint64(q), 1)
		t[q] = 1<<63>>a | 1<<63>>b
	}
	return &t
})

// addBits is Add for independent bits.
func (l *Local) addBits(item string) (added bool) {
	if l.size == 0 {
		panic("bloom: Add to a zero Local, which has no cells: make it with NewLocal")
	}
	if l.geo.Scheme == SchemeFNV1a {
		pos, step := cells.FNV1aStep(item, l.geo.Bits)
		for range l.geo.Hashes {
			added = l.setCell(pos) || added
			pos = cells.AddMod(pos, step, l.geo.Bits)
		}
		return added
	}
	x, y := cells.Digest(item, l.geo.Seed) // in the steps of cells.AppendEnhanced
	m := l.geo.Bits
	for i := range uint64(l.geo.Hashes) {
		added = l.setCell(x%m) || added
		x += y
		y += i + 1
	}
	return added
}

// hasBits is Exists for independent bits.
func (l *Local) hasBits(item string) bool {
	if l.size == 0 {
		return false
	}
	if l.geo.Scheme == SchemeFNV1a {
		pos, step := cells.FNV1aStep(item, l.geo.Bits)
		for range l.geo.Hashes {
			if !l.hasCell(pos) {
				return false
			}
			pos = cells.AddMod(pos, step, l.geo.Bits)
		}
		return true
	}
	x, y := cells.Digest(item, l.geo.Seed) // in the steps of cells.AppendEnhanced
	m := l.geo.Bits
	for i := range uint64(l.geo.Hashes) {
		if !l.hasCell(x % m) {
			return false
		}
		x += y
		y += i + 1
	}
	return true
}

// setCell sets a cell and reports whether it was 0.
func (l *Local) setCell(pos uint64) bool {
	b, bit := &l.buf[format.HeaderBytes+pos/8], byte(0x80)>>(pos%8)
	old := *b
	*b = old | bit
	return old&bit == 0
}

func (l *Local) hasCell(pos uint64) bool {
	return l.buf[format.HeaderBytes+pos/8]&(0x80>>(pos%8)) != 0
}

// AddAll adds items and reports for each whether it was new. In a large blocked
// filter it is up to twice as fast as Add.
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

// ExistsAll is [Local.Exists] for many items, as fast as [Local.AddAll].
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

// AddSeq adds the items of a sequence, nearly as fast as [Local.AddAll], and
// allocates nothing for them.
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
		x, y := cells.Digest(item, l.geo.Seed) // in the steps of cells.AppendBlocked
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
	g.n++
	if g.n == g.group {
		g.flush()
	}
}

// flush adds the items that wait, and returns what was done in all.
func (g *gatherer) flush() AddResult {
	g.result.New += g.l.addGroup(&g.room, g.items[:g.n], nil)
	g.n = 0
	return g.result
}
