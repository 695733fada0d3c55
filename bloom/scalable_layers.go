package bloom

import (
	"context"
	"math"
	"sync/atomic"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/upstash"
)

const (
	// maxLayers is how many layers a filter has at most. Each look-up reads
	// them all: more would make every look-up longer.
	maxLayers = 5
	// layerGrowth is how many times as large as the one before a layer is.
	layerGrowth = 4
	// growthShare is how many times a layer's fill is counted while it fills.
	growthShare = 64
	// layersShift is where the number of layers stands in the kind's word, four
	// bits behind its first. The bits below are 0.
	layersShift = 48
)

// layersWord is the kind's own word of a filter with so many layers.
func layersWord(n int) int64 { return 1<<(wordBits-1) | int64(n)<<layersShift }

// layers is the shape of a Scalable. Layer number i is areas[i].
//
// An Add sets bits in the newest layer known to the handle and reads the
// others, in one command. So the command itself decides whether an item is new,
// however old the handle's knowledge is: if an item is in any layer, it is
// seen.
type layers struct {
	h *handle
	// areas is all possible layers. Look-ups read them all, because another
	// handle may have added one; behind the string's end Redis answers 0.
	areas []area
	first uint64 // the capacity of layer 0
	sized bool   // it is the config's
	limit int    // this handle adds no layer beyond this number

	known    atomic.Int32 // layers, as the primary last said
	growing  atomic.Bool  // a growth by chance is under way
	underway atomic.Int64 // items in requests preceded by a growth
}

func (l *layers) init(h *handle, capacity, maxBytes uint64) {
	l.h, l.areas = h, layerAreas(h.rec.geo.Bits)
	if l.first, l.sized = capacity, capacity != 0; !l.sized {
		// The lowest capacity for which so many words are needed, at the lowest
		// rate for so many words an item. That of the Config is no lower.
		l.first = cells.BlockedCapacity(l.areas[0].words-1, h.rec.geo.Hashes/2) + 1
	}
	for l.limit = 1; l.limit < len(l.areas) && l.areas[l.limit].end()/8 <= maxBytes; l.limit++ {
	}
}

// layerAreas returns the layers of a filter that fit into a Redis string. Its
// first layer has so many cells.
func layerAreas(bits uint64) []area {
	areas := make([]area, 0, maxLayers)
	next := area{offset: headerBits, words: bits / wordBits}
	for len(areas) < maxLayers && next.end() <= maxStringBits {
		areas = append(areas, next)
		next = area{offset: next.end(), words: layerGrowth * next.words}
	}
	return areas
}

// newest returns how many layers there are, as far as the handle knows, or 0.
func (l *layers) newest() int {
	if !l.h.rec.Verified.Load() { // the filter went away, or was never seen
		return 0
	}
	return int(l.known.Load())
}

// capacity returns how many items layer i is sized for.
func (l *layers) capacity(i int) uint64 { return l.first << (2 * i) }

// geometry returns that of layer i.
func (l *layers) geometry(i int) Geometry {
	g := l.h.rec.geo
	g.Bits = l.areas[i].words * wordBits
	return g
}

// full returns the most set bits with which layer i has room for n further
// items, or -1 if it never has.
func (l *layers) full(i int, n uint64) int64 {
	room := l.capacity(i)
	if n > room {
		return -1
	}
	g := l.geometry(i)
	empty := -float64(g.Hashes) * float64(room-n) / float64(g.Bits)
	return int64(-math.Expm1(empty) * float64(g.Bits))
}

// roomFor returns how many layers a new filter needs to have room for n items
// in the newest.
func (l *layers) roomFor(n uint64) int {
	for i := range l.limit {
		if n <= l.capacity(i) {
			return i + 1
		}
	}
	return l.limit
}

// isMany reports whether n items are so large a share of the newest layer that
// its fill is looked at before they are added.
func (l *layers) isMany(n, newest int) bool {
	return n > 1 && uint64(n)*growthShare >= l.capacity(newest-1)
}

// aim has a write set bits in the newest layer, and finds room for many items
// first.
func (l *layers) Prepare(ctx context.Context, q *engine.Request, write bool) (changed bool, err error) {
	if !write {
		return false, nil
	}
	newest := max(l.newest(), 1)
	if q.Underway == nil && l.isMany(len(q.Items), newest) {
		q.Underway, q.Count = &l.underway, int64(len(q.Items))
		if newest, q.Grew, err = l.makeRoom(ctx, uint64(l.underway.Add(q.Count))); err != nil {
			return false, &engine.StepError{Err: err, NotSent: true, Safe: !q.Grew && upstash.SafeToRetry(err)}
		}
	}
	changed = q.BuiltFor != uint64(newest)
	q.BuiltFor = uint64(newest)
	return changed, nil
}

func (l *layers) KindWord(q *engine.Request) int64 {
	if q == nil {
		return layersWord(1)
	}
	return layersWord(int(q.BuiltFor))
}

func (l *layers) MutableBits() uint { return wordBits - 1 }

func (l *layers) differingField(int64) string { return "" }

// length is that of the layers that the handle knows.
func (l *layers) length() uint64 { return l.areas[max(l.newest(), 1)-1].end() / 8 }

func (l *layers) howToShorten() string {
	return "lower the Capacity, from which the filter grows, raise the FPRate, or choose a larger plan"
}

func (l *layers) AppendWrite(q *engine.Request, item string) {
	setInArea(q, l.h.rec.geo, l.areas, int(q.BuiltFor)-1, item)
}

func (l *layers) AppendRead(q *engine.Request, item string) {
	getInAreas(q, l.h.rec.geo, l.areas, item)
}

func (l *layers) ItemBytes(write bool) int {
	last, z := l.areas[len(l.areas)-1].end(), l.h.rec.geo.Hashes/2
	get := z * upstash.SizeOfGet(engine.U53, last)
	if write {
		return 2*z*upstash.SizeOfSet("u1", last, 1) + (len(l.areas)-1)*get
	}
	return len(l.areas) * get
}

// saw judges the number of layers in the kind's word.
func (l *layers) saw(word int64) (newest int, err error) {
	newest = int(word >> layersShift & 15)
	if word != layersWord(newest) || newest < 1 || newest > len(l.areas) {
		return 0, engine.ErrHeaderBits
	}
	return newest, nil
}

func (l *layers) JudgeWrite(q *engine.Request, answers []upstash.NullInt64) error {
	newest, err := l.saw(q.KindWord)
	if err != nil {
		return l.h.rec.Refuse(err)
	}
	l.known.Store(int32(newest))
	if err := takeHeld(q, l.h.rec.geo.Hashes, len(l.areas), true, answers); err != nil {
		return err
	}
	if q.Wrote.MaybeRepeated {
		q.TriedAreas |= 1 << q.TargetArea
	}
	judgeHeld(q, 1<<len(l.areas)-1)
	return nil
}

func (l *layers) JudgeRead(q *engine.Request, answers []upstash.NullInt64) error {
	newest, err := l.saw(q.KindWord)
	if err != nil {
		return err
	}
	if !q.Near() { // what a region says may be old
		l.known.Store(int32(newest))
	}
	if err := takeHeld(q, l.h.rec.geo.Hashes, len(l.areas), false, answers); err != nil {
		return err
	}
	for _, held := range q.Held {
		q.Found = append(q.Found, held != 0)
	}
	return nil
}

// follow adds a layer, by chance, or moves items to a new first layer. No
// command is sent again. An error is beside the answers.
func (l *layers) Follow(ctx context.Context, q *engine.Request, write bool) (again bool) {
	switch {
	case !write:
	case q.TargetArea > 0 && (q.Wrote.Created || q.Wrote.Uncertain):
		l.beginAnew(ctx, q)
	case q.Underway == nil:
		stored := 0
		for _, held := range q.Held {
			if held>>q.TargetArea&1 == 0 {
				stored++
			}
		}
		q.Err = l.growByChance(ctx, stored)
	}
	return false
}
