package bloom

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/internal/lots"
	"github.com/upbloom/upbloom/upstash"
)

// A look counts the filter's cells. It is one command, and the Stats for a
// warning are four more. A write leads to a look in three cases:
//
//   - by lot, about watchLooks times while as many items are added as the
//     filter is for. A handle that lives for one Add has nothing else.
//   - if the answers to the handle's own writes show a filter that is too full:
//     too many bits of its new items had been set before.
//   - if no item was new for a long time: a saturated filter answers like that.
const (
	// With watchLooks, 99.9% of filters get a look between 1.04 and 1.3 times
	// their capacity: the chance of none is e^-(32*0.26).
	watchLooks = 32
	// At most one write in 16 draws a look: by watchLooks alone it would be one in
	// six with a capacity of 200. A batch draws one with at most twice the chance
	// of a single item, or one in 200: its items' bits say enough.
	maxLookShare   = 1.0 / 16
	batchLookShare = 1.0 / 200
	// watchFirst is the least number of new items that are judged by their bits,
	// watchItems how many are judged together at most.
	watchFirst = 8
	watchItems = 256
	// watchSigmas is how far above the expected number the bits must be: a
	// filter at its capacity gets there once in 200 times.
	watchSigmas = 2.58
	// watchStreak is how many writes in a row find nothing new before a look. The
	// next such look takes twice as many.
	watchStreak = 256
	// watchPause is how many writes after a warning draw no look.
	watchPause = 8192
)

// fillWatch is what a handle's own writes have shown of the fill of its filter,
// or of the pane of a window that takes them. It is safe for concurrent use.
type fillWatch struct {
	geo      Geometry // of the filter, or of a pane
	capacity uint64

	looking atomic.Bool
	warning atomic.Bool // a call reads the Stats, or is in WarnFill; a Load does without a look

	mu     sync.Mutex
	pause  int // writes to come without a look, after a warning
	items  int // new ones, since all of them were last judged
	ones   int // of their bits, those that had been set before
	judged int // how many of items were judged so far
	seen   int // writes in a row without a new item
	streak int // the seen that leads to a look; 0 for watchStreak
}

// took takes note of a write, and if that leads to a look, counts the cells. If
// they are over capacity, it calls warn. There is one look at a time: other
// writes do not wait for it.
func (s *fillWatch) took(ctx context.Context, r *record, w engine.Written, count func() upstash.Command,
	warn func(context.Context),
) {
	if w.Items == 0 || !s.shouldLook(ctx, w) {
		return
	}
	defer s.looking.Store(false)
	reply, err := r.Client.Do(ctx, count())
	if err != nil {
		return
	}
	if n, err := reply.Int64(); err == nil && n >= 0 &&
		statsOf(s.geo, r.layout, s.capacity, uint64(n)).OverCapacity() {
		warn(ctx)
	}
}

// rest is the pause after a warning.
func (s *fillWatch) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pause = watchPause
}

// shouldLook takes note of a write and reports whether a look is due.
func (s *fillWatch) shouldLook(ctx context.Context, w engine.Written) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pause > 0 {
		s.pause--
		return false
	}
	look := lots.Lot(ctx) < lookChance(s.capacity, w.Items)
	look = s.tookBits(w) || look
	look = s.tookSeen(w) || look
	return look && !s.looking.Swap(true)
}

// lookChance is the chance that a write of so many items draws a look.
func lookChance(capacity uint64, items int) float64 {
	share := watchLooks / float64(capacity)
	return min(float64(items)*share, max(2*share, batchLookShare), maxLookShare)
}

// tookBits judges the new items' bits whenever their number has doubled.
func (s *fillWatch) tookBits(w engine.Written) bool {
	s.items += w.NewItems
	s.ones += w.NewOnes
	if s.items < max(2*s.judged, watchFirst) {
		return false
	}
	full := s.looksFull(s.items, s.ones)
	if s.judged = s.items; full || s.items >= watchItems {
		s.items, s.ones, s.judged = 0, 0, 0
	}
	return full
}

// tookSeen counts the writes in a row that found nothing new.
func (s *fillWatch) tookSeen(w engine.Written) bool {
	if s.seen++; w.NewItems > 0 {
		s.seen = 0
	}
	if s.streak = max(s.streak, watchStreak); s.seen < s.streak {
		return false
	}
	s.seen, s.streak = 0, 2*s.streak
	return true
}

// looksFull reports whether the bits of new items had been set before more often
// than chance explains in a filter that is just over its capacity now, behind
// them. Its fill was that of the middle of them on average.
//
// A new item is one of whose k bits not all had been set. At a fill of f and a
// false positive rate of p, the share of its bits that were set is
// (f - p)/(1 - p).
func (s *fillWatch) looksFull(items, ones int) bool {
	g := s.geo
	before := overCapacity(s.capacity) - float64(items)/2
	if before <= 0 {
		return true
	}
	k := float64(g.Hashes)
	fill := -math.Expm1(-k * before / float64(g.Bits))
	p := g.FalsePositiveRate(uint64(before))
	share := max((fill-p)/(1-p), 0)
	mean := float64(items) * k * share
	return float64(ones) > mean+watchSigmas*math.Sqrt(mean*(1-share))
}
