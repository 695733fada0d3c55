package bloom

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
)

const (
	// watchEvery makes the four commands of Stats one in two thousand.
	watchEvery = 8192
	// watchOver is how many times its capacity the filter must seem to hold
	// before the handle looks. With 1, every other look at a filter that is just
	// at its capacity would be in vain.
	watchOver = 1.15
	// watchItems is how many new items show a fill, to about 1 in 50.
	watchItems = 256
)

// fillWatch is what a handle's own writes have shown of its filter's fill. The
// zero value is ready; it is safe for concurrent use.
type fillWatch struct {
	mu    sync.Mutex
	items int // new ones
	ones  int // of their bits, those that were set before
	pause int // writes to come without a look, after a warning
}

// watchFill calls Config.WarnFill if the filter is over its capacity. It looks
// after one write in watchEvery, and when the answers of the handle's own
// writes say that the filter is too full.
func (f *Filter) watchFill(ctx context.Context, w written) {
	if !f.shouldLook(w) {
		return
	}
	if s, err := f.Stats(ctx); err == nil && s.OverCapacity() {
		f.watch.mu.Lock()
		f.watch.pause = watchEvery
		f.watch.mu.Unlock()
		f.cfg.WarnFill(s)
	}
}

func (f *Filter) shouldLook(w written) bool {
	if rand.Uint32N(watchEvery) == 0 {
		return true
	}
	f.watch.mu.Lock()
	defer f.watch.mu.Unlock()
	if f.watch.pause > 0 {
		f.watch.pause--
		return false
	}
	f.watch.items += w.newItems
	f.watch.ones += w.newOnes
	if f.watch.items < watchItems {
		return false
	}
	items, ones := f.watch.items, f.watch.ones
	f.watch.items, f.watch.ones = 0, 0
	return f.looksFull(items, ones)
}

// looksFull reports whether the bits of new items had been set before more often
// than in a filter at watchOver times its capacity. A new item is one of whose k
// bits not all were set: at a fill of f, the share of its bits that were set is
// (f - f^k)/(1 - f^k).
func (f *Filter) looksFull(items, ones int) bool {
	g := f.rec.geo
	n := f.cfg.Capacity
	if n == 0 {
		n = g.capacity()
	}
	k := float64(g.Hashes)
	fill := -math.Expm1(-k * watchOver * float64(n) / float64(g.Bits))
	all := math.Pow(fill, k)
	return float64(ones) > float64(items)*k*(fill-all)/(1-all)
}
