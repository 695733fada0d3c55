package bloom

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/engine"
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
// Each call is one request. Exists and [Scalable.ExistsAll] are one billed
// command: they read the item's words in all possible layers. Add is a script:
// three commands for a new item, two for a known one. If most items are known,
// call Exists first, and Add only what it does not find: with nine known items
// in ten that is 1.3 commands an item instead of 2.1. The Add answers then: two
// clients that both got a "no" do not both get "new". A token that may not run
// EVAL looks items up, but cannot add.
//
// # Capacity
//
// The script counts what it adds, and begins a layer when the newest has taken
// as many items as it is for. So each layer but the last holds at most its
// capacity, however many clients add at once, and a known item is not stored
// again.
//
// Handles of other programs may have another MaxBytes. All of them find what any
// has added.
type Scalable struct {
	handle
	cfg    ScalableConfig
	layers layers

	mu      sync.Mutex
	warning bool   // a call reads the Stats, or is in WarnFill
	warned  uint64 // what the newest layer had taken at the last warning
}

// NewScalable makes a handle for the filter at key. It checks the config, and
// returns a [*ConfigError] if it is wrong. It sends nothing: Create or the
// first Add makes the filter itself. NewScalable takes a few microseconds.
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

// newScalable takes the capacity of the first layer from the config.
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
	return s.create(ctx, s.layers.areas[0].end(), s.layers.KindWord(nil))
}

// Add puts an item into the newest layer, unless a layer holds it, and reports
// whether it was new: true if it was certainly never added to the live filter
// before, false if it was, or if it is a false positive. It creates the filter
// if there is none, unless MustExist is set.
//
// It is one request: three billed commands for a new item, two for a known one,
// and one or two more if it makes the filter, sets its TTL or adds a layer. The
// errors are those of [Filter.Add]. But after [ErrNotFilter] or a
// [*MismatchError] nothing was changed at the key.
func (s *Scalable) Add(ctx context.Context, item string) (added bool, err error) {
	return s.add(s.rec.Label(ctx, "bloom.Scalable.Add"), item, nil)
}

// AddAll adds items and reports for each whether it was new, as [Filter.AddAll]
// does, and as if they had been added one after another. A request takes up to
// 1,000 items. Each request is a script of four to seven billed commands for
// 1,000 items at 1 in 100, and takes some 150 KB.
func (s *Scalable) AddAll(ctx context.Context, items []string) ([]bool, error) {
	return s.addAll(s.rec.Label(ctx, "bloom.Scalable.AddAll"), items, nil)
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

// fillSteps is how often the fill is looked at while an overfull layer takes as
// many items as it is for.
const fillSteps = 16

// watchFill calls WarnFill if the write took the newest layer over its capacity,
// or one step further: no layer could be added to it. The kind's word counts the
// items exactly, so of all handles the one whose write made a step looks. The
// Stats may be of a region, or of a filter made since.
func (s *Scalable) watchFill(ctx context.Context, w engine.Written) {
	_, newest, taken := layersIn(s.layers.last.Load())
	if newest < 1 || newest > len(s.layers.areas) {
		return
	}
	capacity := s.layers.capacity(newest - 1)
	steps := func(taken uint64) int {
		return int(math.Floor((float64(taken) - overCapacity(capacity)) / float64(capacity) * fillSteps))
	}
	before := taken - min(uint64(w.NewItems), taken)
	if steps(taken) < 0 || max(steps(before), -1) == steps(taken) || !s.beginWarning(taken, capacity) {
		return
	}
	warned := false
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.warning = false; warned {
			s.warned = taken
		}
	}()
	st, err := s.Stats(ctx)
	if n := len(st.Layers); err == nil && n >= newest && st.Layers[n-1].OverCapacity() {
		warned = true
		s.cfg.WarnFill(st)
	}
}

// beginWarning reports whether no other call warns, and the newest layer has
// taken as many items as it is for since the last warning. If it has taken fewer
// than then, it is a layer of another filter.
func (s *Scalable) beginWarning(taken, capacity uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.warning || taken >= s.warned && s.warned > 0 && taken-s.warned < capacity {
		return false
	}
	s.warning = true
	return true
}
