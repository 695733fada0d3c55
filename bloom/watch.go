package bloom

import (
	"context"
	"math"
	"math/rand/v2"
)

const (
	// watchEvery makes the four commands of Stats one in a thousand.
	watchEvery = 4096
	// watchBatch is how many new items show a fill.
	watchBatch = 256
)

// watchFill calls Config.WarnFill if the filter is over its capacity. It looks after one
// write in watchEvery, and after a batch whose own answers say that the filter is too full.
func (f *Filter) watchFill(ctx context.Context, w written) {
	if f.cfg.WarnFill == nil || !f.looksFull(w) && rand.Uint32N(watchEvery) != 0 {
		return
	}
	if s, err := f.Stats(ctx); err == nil && s.OverCapacity() {
		f.cfg.WarnFill(s)
	}
}

// looksFull reports whether the bits of the new items were set before more often than they
// would be in a filter at its capacity. An item is new if not all k of its bits were set, so
// that of a fill f it shows (f - f^k)/(1 - f^k).
func (f *Filter) looksFull(w written) bool {
	if w.newItems < watchBatch {
		return false
	}
	g := f.rec.geo
	n := f.cfg.Capacity
	if n == 0 {
		n = g.capacity()
	}
	k := float64(g.Hashes)
	fill := -math.Expm1(-k * float64(n) / float64(g.Bits))
	all := math.Pow(fill, k)
	return float64(w.newOnes) > float64(w.newItems)*k*(fill-all)/(1-all)
}
