package bloom_test

import (
	"maps"
	"math/bits"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/bloom/internal/cells"
)

// A table is a cuckoo filter in memory. It places items as the scripts do, and
// has the same words after the same calls.
type table struct {
	geo   bloom.Geometry
	words map[uint64]uint64 // by bucket
	items int
	ones  int
	reads int // words read by the last add besides the items' own
}

func newTable(g bloom.Geometry) *table {
	return &table{geo: g, words: map[uint64]uint64{}}
}

type place struct{ fp, first, second uint64 }

func (t *table) buckets() uint64 { return t.geo.Bits / 53 }
func (t *table) width() int      { return cells.CuckooWidth(t.geo.Hashes) }

func (t *table) placeOf(item string) place {
	x, y := cells.Digest(item, t.geo.Seed)
	fp, first, second := cells.CuckooPlace(x, y, t.buckets(), t.geo.Hashes)
	return place{fp, first, second}
}

// at returns the fingerprint in a slot.
func (t *table) at(bucket uint64, slot int) uint64 {
	return t.words[bucket] >> (slot * t.width()) & (1<<t.width() - 1)
}

func (t *table) put(bucket uint64, slot int, fp uint64) {
	t.words[bucket] += (fp - t.at(bucket, slot)) << (slot * t.width())
}

// slotOf returns the lowest slot that holds fp, or -1 if none does.
func (t *table) slotOf(bucket, fp uint64) int {
	for s := range t.geo.Hashes {
		if t.at(bucket, s) == fp {
			return s
		}
	}
	return -1
}

func (t *table) has(item string) bool {
	p := t.placeOf(item)
	return t.slotOf(p.first, p.fp) >= 0 || t.slotOf(p.second, p.fp) >= 0
}

func (t *table) remove(items []string) (removed []bool) {
	for _, item := range items {
		p := t.placeOf(item)
		b, s := p.first, t.slotOf(p.first, p.fp)
		if s < 0 {
			b, s = p.second, t.slotOf(p.second, p.fp)
		}
		removed = append(removed, s >= 0)
		if s >= 0 {
			t.put(b, s, 0)
			t.items, t.ones = max(t.items-1, 0), t.ones-bits.OnesCount64(p.fp)
		}
	}
	return removed
}

// add places all items or none. full is the index of the item that found no
// room, or -1.
func (t *table) add(items []string) (added []bool, full int) {
	before := *t
	before.words = maps.Clone(t.words)
	known, waiting := map[uint64]bool{}, []int{}
	places := make([]place, len(items))
	for i, item := range items {
		p := t.placeOf(item)
		places[i] = p
		known[p.first], known[p.second] = true, true
		waiting = append(waiting, i)
	}
	seen := map[place]bool{}
	t.reads = 0
	for _, p := range places {
		id := place{p.fp, min(p.first, p.second), max(p.first, p.second)}
		added = append(added, !seen[id] && t.slotOf(p.first, p.fp) < 0 && t.slotOf(p.second, p.fp) < 0)
		seen[id] = true
		t.items, t.ones = t.items+1, t.ones+bits.OnesCount64(p.fp)
	}
	for len(waiting) > 0 {
		var later []int
		var wanted []uint64
		for _, i := range waiting {
			missing, ok := t.placeOne(places[i], known)
			switch {
			case !ok && len(missing) == 0:
				*t = before
				return nil, i
			case !ok:
				later, wanted = append(later, i), append(wanted, missing...)
			}
		}
		for _, b := range wanted {
			if !known[b] {
				t.reads++
			}
			known[b] = true
		}
		waiting = later
	}
	return added, -1
}

// placeOne moves fingerprints along the shortest path through the known
// buckets. If there is none, missing holds the buckets the search would have
// needed.
func (t *table) placeOne(p place, known map[uint64]bool) (missing []uint64, ok bool) {
	type node struct {
		bucket     uint64
		from, slot int
	}
	nodes := []node{{p.first, -1, 0}}
	met := map[uint64]bool{p.first: true, p.second: true}
	if p.second != p.first {
		nodes = append(nodes, node{p.second, -1, 0})
	}
	for n := 0; n < len(nodes); n++ {
		b := nodes[n].bucket
		if !known[b] {
			missing = append(missing, b)
			continue
		}
		if free := t.slotOf(b, 0); free >= 0 {
			for nodes[n].from >= 0 {
				before := nodes[nodes[n].from].bucket
				t.put(nodes[n].bucket, free, t.at(before, nodes[n].slot))
				free, n = nodes[n].slot, nodes[n].from
				t.put(before, free, 0)
			}
			t.put(nodes[n].bucket, free, p.fp)
			return nil, true
		}
		for s := range t.geo.Hashes {
			o := cells.CuckooOther(t.at(b, s), b, t.buckets())
			if len(nodes) < 400 && !met[o] {
				met[o] = true
				nodes = append(nodes, node{o, n, s})
			}
		}
	}
	return missing, false
}

// wordIn returns a bucket's word from a stored string.
func wordIn(stored string, bucket uint64) (w uint64) {
	for i := range uint64(53) {
		at := 192 + 53*bucket + i
		w <<= 1
		if at/8 < uint64(len(stored)) {
			w |= uint64(stored[at/8]>>(7-at%8)) & 1
		}
	}
	return w
}

// compare returns the first bucket that differs in a stored string, or -1.
func (t *table) compare(stored string) int {
	for b := range t.buckets() {
		if wordIn(stored, b) != t.words[b] {
			return int(b)
		}
	}
	return -1
}

// body returns the table as it is stored, after the first 192 bits of the
// string.
func (t *table) body() string {
	out := make([]byte, (t.geo.Bits+7)/8)
	for b, w := range t.words {
		for i := range uint64(53) {
			at := 53*b + i
			out[at/8] |= byte(w>>(52-i)&1) << (7 - at%8)
		}
	}
	return string(out)
}
