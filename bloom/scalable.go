package bloom

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// A Scalable is a handle to a filter in Redis that grows with its items. It is
// one string of up to five layers, each a blocked filter for four times the
// items of the one before. It takes 341 times Capacity before its false
// positive rate rises above FPRate, unless MaxBytes ends the growth sooner.
// Make it with [NewScalable] or [OpenScalable]; the zero value is not usable.
// It is safe for concurrent use and must not be copied.
//
// Use a [Filter] if the number of items is known within a factor of a few: it
// asks for less. At 1 in 100 a full Scalable takes 13.9 bits an item instead of
// 10.7, and a look-up reads 15 words instead of 2.
//
// # Cost
//
// Exists and [Scalable.ExistsAll] are one request and one billed command,
// whatever the handle knows. They read the item's words in all possible layers.
//
// Add is one too. The first Add or AddAll of a new handle looks an item up before
// that, because it does not know which layer is the newest. One new item in a 64th of
// the newest layer's capacity is followed by a script of three commands. The
// script counts the layer's set bits and adds a layer if it is full. If an
// AddAll has at least that many items, the script precedes it, once a request:
// the newest layer then has room for them.
//
// A token that may not run EVAL looks items up and adds them, but the filter
// does not grow. When an Add should look at the fill, it returns [ErrNoGrowth]
// beside its answer; a large [Scalable.AddAll] adds nothing.
//
// # Capacity
//
// If an item is added again, it is stored again in each layer that has become
// the newest meanwhile. So each layer's capacity counts the distinct items
// added while it was the newest. [Scalable.Cardinality] is the sum over the
// layers. If every item is added again all the time, it is up to 2.3 times the
// number of distinct ones.
//
// Handles of other programs may have another MaxBytes. All of them find what any
// has added.
type Scalable struct {
	handle
	cfg    ScalableConfig
	layers layers

	mu      sync.Mutex
	looking bool // a call reads the Stats, or is in WarnFill
	pause   int  // new items to come without a look, after a warning
}

// NewScalable makes a handle for the filter at key. It checks the config, and
// returns a [*ConfigError] if it is wrong. It sends nothing: Create or the
// first Add makes the filter itself. NewScalable takes a few microseconds. But
// the first Add of each handle may take a second request: keep the handle if
// you can.
func NewScalable(c *upstash.Client, key string, cfg ScalableConfig) (*Scalable, error) {
	geo, err := cfg.Geometry()
	if err != nil {
		return nil, err
	}
	if err := checkTarget(c, key); err != nil {
		return nil, err
	}
	return newScalable(c, key, cfg, geo), nil
}

// newScalable also takes a config without a Capacity, if the geometry was read
// from a header.
func newScalable(c *upstash.Client, key string, cfg ScalableConfig, geo Geometry) *Scalable {
	s := &Scalable{cfg: cfg}
	s.bytes, s.parallel, s.missingIsEmpty = cfg.BatchBytes, cfg.BatchParallel, cfg.MissingIsEmpty
	if cfg.WarnFill != nil {
		s.onWrite = s.watchFill
	}
	r := &s.rec
	r.Client, r.Key, r.geo, r.kind = c, key, geo, KindLayers
	r.TTL, r.MustExist, r.Rate = cfg.TTL, cfg.MustExist, cells.RateCode(cfg.FPRate)
	r.setReads(cfg.Reads)
	r.storedBy(&s.layers, &s.layers)
	s.layers.init(&s.handle, cfg.capacity(), cfg.maxBytes())
	return s
}

// Create makes the filter with its TTL and the whole first layer. Create
// reports whether it made the filter. If a filter of the same geometry was
// there, it returns false. Costs and errors are those of [Filter.Create].
func (s *Scalable) Create(ctx context.Context) (created bool, err error) {
	ctx = s.rec.Label(ctx, "bloom.Scalable.Create")
	created, err = s.create(ctx, s.layers.areas[0].end(), layersWord(1))
	if created {
		s.layers.known.Store(1)
	}
	return created, err
}

// Add puts an item into the newest layer and reports whether it was new: true if
// it was certainly never added to the live filter before, false if it was, or if
// it is a false positive. It creates the filter if there is none, unless
// MustExist is set.
//
// It is one request and one billed command (three with MustExist), and
// sometimes more: see [Scalable]. The errors are those of [Filter.Add], and
// [ErrNoGrowth] beside the answer.
//
// If the filter was deleted and a handle that knows of several layers makes it
// again by an Add, a script moves the item to a new first layer. Otherwise the
// one item would take the memory of all layers.
func (s *Scalable) Add(ctx context.Context, item string) (added bool, err error) {
	ctx = s.rec.Label(ctx, "bloom.Scalable.Add")
	if s.layers.newest() == 0 {
		if found, err := s.lookFirst(ctx, item); found || err != nil {
			return false, err
		}
	}
	return s.add(ctx, item, nil)
}

// AddAll adds items and reports for each whether it was new, as [Filter.AddAll]
// does, and as if they had been added one after another. Each request takes one
// billed command for its items. If a request has at least a 64th of the newest
// layer's capacity, the script precedes it and finds room for its items and
// those of the handle's other requests under way. So a large AddAll may leave a
// layer half empty, or empty. This costs memory, and less of it with a
// BatchParallel of 1.
//
// 1,000 items at 1 in 100 take 290 to 420 KB, by the number of possible layers
// and their length.
func (s *Scalable) AddAll(ctx context.Context, items []string) ([]bool, error) {
	ctx = s.rec.Label(ctx, "bloom.Scalable.AddAll")
	if s.layers.newest() == 0 && 0 < len(items) && !s.layers.isMany(len(items), 1) {
		if err := s.rec.MayWrite(); err != nil {
			return nil, err
		}
		if _, err := s.lookFirst(ctx); err != nil {
			return make([]bool, len(items)), &BatchError{Items: make([]ItemState, len(items)), Err: err}
		}
	}
	return s.addAll(ctx, items, nil)
}

// lookFirst learns from the primary which layer is the newest, and looks an item
// up. A filter that is missing holds nothing.
func (s *Scalable) lookFirst(ctx context.Context, item ...string) (found bool, err error) {
	if err := s.rec.MayWrite(); err != nil {
		return false, err
	}
	q := s.rec.BeginRead(ctx, engine.Call{})
	defer q.Free()
	for _, i := range item {
		q.AppendRead(i)
	}
	q.ReadPrimary(ctx)
	switch {
	case fault.Is(q.Err, ErrNotFound) && !s.rec.MustExist:
		return false, nil
	case q.Err != nil:
		return false, fault.Untouched(q.Err)
	}
	s.layers.known.Store(int32(q.KindWord >> layersShift & 15)) // whatever Reads says
	return len(q.Found) > 0 && q.Found[0], nil
}

// Exists reports whether the item is in the filter, with the promises and errors
// of [Filter.Exists]. It is one request and one billed command.
func (s *Scalable) Exists(ctx context.Context, item string) (bool, error) {
	ctx = s.rec.Label(ctx, "bloom.Scalable.Exists")
	return s.exists(ctx, item, nil)
}

// ExistsAll reports for each item whether it is in the filter, with the promises
// of Exists. Each request is one billed command; 1,000 items at 1 in 100 take
// 280 to 340 KB.
func (s *Scalable) ExistsAll(ctx context.Context, items []string) ([]bool, error) {
	ctx = s.rec.Label(ctx, "bloom.Scalable.ExistsAll")
	return s.existsAll(ctx, items, nil)
}

// Expire makes the filter expire after ttl, as [Filter.Expire] does.
func (s *Scalable) Expire(ctx context.Context, ttl time.Duration) (bool, error) {
	return s.expire(s.rec.Label(ctx, "bloom.Scalable.Expire"), ttl)
}

// Persist removes the TTL, as [Filter.Persist] does.
func (s *Scalable) Persist(ctx context.Context) (bool, error) {
	return s.persist(s.rec.Label(ctx, "bloom.Scalable.Persist"))
}

// Rename moves the filter to another key, as [Filter.Rename] does.
func (s *Scalable) Rename(ctx context.Context, to string) error {
	return s.rename(s.rec.Label(ctx, "bloom.Scalable.Rename"), to)
}

// Delete removes the filter, as [Filter.Delete] does.
func (s *Scalable) Delete(ctx context.Context) (bool, error) {
	return s.delete(s.rec.Label(ctx, "bloom.Scalable.Delete"))
}

// Geometry returns the geometry of the first layer. That of layer i has Bits *
// 4^i cells.
func (s *Scalable) Geometry() Geometry { return s.rec.geo }

// String describes the handle without its key and seed.
func (s *Scalable) String() string { return "bloom.Scalable(" + s.rec.geo.String() + ")" }

// Format is String for every verb: %+v and %#v show neither the key nor the
// seed.
func (s *Scalable) Format(st fmt.State, _ rune) { _, _ = fmt.Fprint(st, s.String()) }

// fillLooks is how many looks there are while the last layer's capacity is
// added.
const fillLooks = 16

// watchFill calls WarnFill if the filter cannot grow and is over its capacity.
// It looks after one new item in a sixteenth of the newest layer's capacity. The
// Stats may be of a region, or of a filter made since: they also say whether it
// can grow.
func (s *Scalable) watchFill(ctx context.Context, w engine.Written) {
	newest := s.layers.newest()
	look := newest >= s.layers.limit && byLot(ctx, w.NewItems, fillLooks, s.layers.capacity(newest-1))
	s.mu.Lock()
	s.pause = max(s.pause-w.NewItems, 0)
	look = look && !s.looking && s.pause == 0
	s.looking = s.looking || look
	s.mu.Unlock()
	if !look {
		return
	}
	defer func() {
		s.mu.Lock()
		s.looking = false
		s.mu.Unlock()
	}()
	st, err := s.Stats(ctx)
	if err != nil || len(st.Layers) < s.layers.limit || !st.OverCapacity() {
		return
	}
	s.mu.Lock()
	s.pause = int(s.layers.capacity(newest - 1))
	s.mu.Unlock()
	s.cfg.WarnFill(st)
}
