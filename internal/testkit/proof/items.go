package proof

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/upbloom/upbloom/bloom"
)

// itemCount is the number of items to choose from. It is small, so calls share
// items.
const itemCount = 6

func itemName(n int) string { return "item-" + strconv.Itoa(n) }

// The session of the last calls, and the item of their Add.
const (
	atLast     = "at last"
	itemAtLast = "item-at-last"
)

// lastItems are the items of the last Adds to a Scalable.
var lastItems = []string{itemAtLast, itemAtLast + "-2", itemAtLast + "-3"}

// ownItems are items that share no cells in the types for which a test proves it.
var ownItems = append(allItems(itemCount), lastItems...)

// allItems returns the first n items.
func allItems(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = itemName(i)
	}
	return all
}

const (
	// longBits makes three parts of partBytes, which is as small as a part can
	// be.
	longBits, longHashes = 53 * 400, 4
	partBytes            = 1 << 10
	// fromNowhere is a cell of the model that no item has.
	fromNowhere = MaxBits - 1
)

// longCellsOf returns the cells of an item in the model.
func longCellsOf(item string) (b bits) {
	for i := range longHashes {
		b.set(uint64(slices.Index(ownItems, item)*longHashes + i))
	}
	return b
}

// longCells returns the cells of the model for those of a string. A cell that no
// item has is fromNowhere.
func longCells(g bloom.Geometry, isSet func(uint64) bool) (b bits) {
	known := 0
	for n, item := range ownItems {
		for i, at := range g.Positions(nil, item) {
			if isSet(at) {
				known++
				b.set(uint64(n*longHashes + i))
			}
		}
	}
	for at := range g.Bits {
		if isSet(at) {
			known--
		}
	}
	if known != 0 {
		b.set(fromNowhere)
	}
	return b
}

func localOf(g bloom.Geometry, items []string) *bloom.Local {
	l := bloom.NewLocal(g)
	for _, item := range items {
		l.Add(item)
	}
	return l
}

// stringOf returns the Redis string of a Local. A stream has it after its own
// length.
func stringOf(l *bloom.Local) []byte {
	var stream bytes.Buffer
	if _, err := l.WriteTo(&stream); err != nil {
		panic(err) // a Buffer takes all
	}
	const head = 24
	n := binary.BigEndian.Uint64(stream.Bytes()[head-8:])
	return stream.Bytes()[head : head+n]
}

// cellsOf returns the set cells of a Local.
func cellsOf(l *bloom.Local) (b bits) {
	body := stringOf(l)
	g := l.Geometry()
	body = body[len(body)-int((g.Bits+7)/8):]
	isSet := func(i uint64) bool { return body[i/8]>>(7-i%8)&1 == 1 }
	if g.Bits > MaxBits {
		return longCells(g, isSet)
	}
	for i := range g.Bits {
		if isSet(i) {
			b.set(i)
		}
	}
	return b
}

// smudgeConfig is the Config of a Smudge.
var smudgeConfig = bloom.Config{Bits: 159, Hashes: 4}
