package proof

import (
	mathbits "math/bits"
	"slices"
	"sync"

	"github.com/zeebo/xxh3"
)

// A cuckooTable is the model's knowledge of a table's geometry. Its items share
// few buckets, so they have to be moved and may find no room.
//
// The model does not place copies. They fit if no set of buckets must hold more
// of them than it has slots. The search of an Add then finds room: by Hall's
// theorem, and because a shortest path of moves augments a matching.
type cuckooTable struct {
	slots int
	size  uint64 // in buckets
	items []string
	// class numbers the items. Items of one class share the fingerprint and
	// both buckets, so no table can tell them apart.
	class map[string]int
	// within holds, for each class, the set of its buckets.
	within  []uint64
	buckets []uint64
}

const (
	maxClasses = 8
	// cuckooRoom is the number of first buckets, shared by all items.
	cuckooRoom = 3
	cuckooLast = "item-at-last"
)

var cuckooTables = func() (t [6]func() *cuckooTable) {
	for slots := range t {
		t[slots] = sync.OnceValue(func() *cuckooTable { return newCuckooTable(slots) })
	}
	return t
}()

func cuckooTableOf(slots int) *cuckooTable { return cuckooTables[slots]() }

// A cuckooPlace is an item's fingerprint and its buckets.
type cuckooPlace struct{ fp, low, high uint64 }

// place computes an item's place from the documentation of the format.
func (t *cuckooTable) place(item string) cuckooPlace {
	h := xxh3.Hash128Seed([]byte(item), 0)
	fp, a := 1+h.Lo%(1<<(53/t.slots)-1), h.Hi%t.size
	b := (fp*96280213%t.size + t.size - a) % t.size
	return cuckooPlace{fp, min(a, b), max(a, b)}
}

func newCuckooTable(slots int) *cuckooTable {
	g, err := (&Cuckoos{Slots: slots}).Config().Geometry()
	if err != nil || g.Hashes != slots {
		panic("proof: a table of other slots") // the sizes are constants
	}
	t := &cuckooTable{slots: slots, size: g.Bits / 53, class: make(map[string]int)}
	t.choose()
	classes := make(map[cuckooPlace]int)
	for _, item := range append(slices.Clone(t.items), cuckooLast) {
		p := t.place(item)
		if _, ok := classes[p]; !ok {
			classes[p] = len(t.within)
			t.within = append(t.within, t.set(p.low)|t.set(p.high))
		}
		t.class[item] = classes[p]
	}
	return t
}

// choose chooses items whose buckets are among the first ones. If the
// fingerprints are short, two of the items are in one class.
func (t *cuckooTable) choose() {
	seen := make(map[cuckooPlace]string)
	for n := 0; len(t.items) < itemCount; n++ {
		item := itemName(n)
		p := t.place(item)
		if p.high >= cuckooRoom {
			continue
		}
		twin, ok := seen[p]
		seen[p] = item
		switch {
		case len(t.items) < itemCount-2 || t.slots < 5:
			t.items = append(t.items, item)
		case ok && !slices.Contains(t.items, twin):
			t.items = append(t.items, twin, item)
		}
	}
}

// set returns the set with only this bucket.
func (t *cuckooTable) set(bucket uint64) uint64 {
	for i, b := range t.buckets {
		if b == bucket {
			return 1 << i
		}
	}
	t.buckets = append(t.buckets, bucket)
	return 1 << (len(t.buckets) - 1)
}

// fits reports whether a table has room for these numbers of copies of each
// class.
func (t *cuckooTable) fits(copies *[maxClasses]uint8) bool {
	for set := range uint64(1) << len(t.buckets) {
		n := 0
		for class, within := range t.within {
			if within&^set == 0 {
				n += int(copies[class])
			}
		}
		if n > t.slots*mathbits.OnesCount64(set) {
			return false
		}
	}
	return true
}
