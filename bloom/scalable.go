package bloom

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

// A Scalable is a handle to a filter that grows with its items. It is one
// string of up to five layers, each a blocked filter for four times the items
// of the one before. When the last is full, the false positive rate rises.
//
// If the number of items is known within a factor of a few, a [Filter] is
// smaller and faster. A token that may not run EVAL cannot add.
//
// A Scalable is safe for concurrent use and must not be copied. Make it with [NewScalable]
// or [OpenScalable].
type Scalable struct {
	handle
	layers layers
}

// NewScalable makes a handle for the filter at key.
func NewScalable(c *upstash.Client, key string, cfg ScalableConfig) (*Scalable, error) {
	geo, err := geometryFor(c, key, cfg)
	if err != nil {
		return nil, err
	}
	s := newScalable(c, key, cfg, geo)
	if err := s.fitsWrite(); err != nil {
		return nil, err
	}
	return s, nil
}

// newScalable takes the capacity of the first layer from the config.
func newScalable(c *upstash.Client, key string, cfg ScalableConfig, geo Geometry) *Scalable {
	s := new(Scalable)
	shared := cfg.layer()
	shared.FPRate = cfg.FPRate // of the whole
	s.init(c, key, shared, geo, KindScalable, &s.layers, &s.layers)
	s.layers = layersOf(geo, cfg.capacity(), cmp.Or(cfg.MaxBytes, engine.MostPlansRecord))
	return s
}

// Create makes the filter with its whole first layer, and reports whether it did.
func (s *Scalable) Create(ctx context.Context) (created bool, err error) {
	ctx = s.rec.Label(ctx, "bloom.Scalable.Create")
	return s.create(ctx, s.layers.areas[0].End(), s.layers.KindWord(nil))
}

// Add puts an item into the newest layer, unless a layer holds it, and reports
// whether it was new.
func (s *Scalable) Add(ctx context.Context, item string) (added bool, err error) {
	return s.rec.Write(s.rec.Label(ctx, "bloom.Scalable.Add"), item, engine.Options{})
}

// AddAll adds items and reports for each whether it was new, up to 1,000 in a
// request.
func (s *Scalable) AddAll(ctx context.Context, items []string) ([]bool, error) {
	return s.writeAll(s.rec.Label(ctx, "bloom.Scalable.AddAll"), items, engine.Options{})
}

// Exists reports whether a layer holds the item: it was added, or is a false
// positive.
func (s *Scalable) Exists(ctx context.Context, item string) (bool, error) {
	ctx = s.rec.Label(ctx, "bloom.Scalable.Exists")
	return s.exists(ctx, item, engine.Options{})
}

// Expire is [Filter.Expire].
func (s *Scalable) Expire(ctx context.Context, ttl time.Duration) (bool, error) {
	return s.rec.Expire(s.rec.Label(ctx, "bloom.Scalable.Expire"), ttl)
}

// Persist is [Filter.Persist].
func (s *Scalable) Persist(ctx context.Context) (bool, error) {
	return s.rec.Persist(s.rec.Label(ctx, "bloom.Scalable.Persist"))
}

const (
	// minLayerCapacity is the least a first layer is sized for: 32 words, the
	// least of a blocked filter, hold some hundred items anyway.
	minLayerCapacity = 1000
	// Each layer may use up one part of the rate in layerShare.
	layerShare = 5
)

// A ScalableConfig says how large the first layer of a [Scalable] is.
type ScalableConfig struct {
	_ struct{}

	// Capacity is the number of distinct items the first layer is sized for, at
	// least 1; less than 1,000 counts as 1,000. The filter takes 5 times as
	// many with two layers, 21 with three, 85 with four, 341 with five.
	Capacity uint64

	// FPRate is the false positive rate of the whole filter when all of its
	// layers are full: from 5e-9 to below 1.
	FPRate float64

	// Seed of the hash: see [Config.Seed].
	Seed uint64 `json:"-"`

	// TTL is the time from the creation of the filter until it expires, at
	// least 1 ms; 0 sets none. Neither an Add nor a new layer prolongs it.
	TTL time.Duration

	// MaxBytes ends the growth: no layer is added that makes the string longer.
	// The default, for 0, is 100,000,000, the longest record of most plans. A
	// longer first layer does not grow. A lower limit of the database counts
	// too.
	MaxBytes uint64

	// MissingIsEmpty, MustExist and ReadsNearest do what they do in a [Config];
	// here MustExist costs no more commands.
	MissingIsEmpty bool
	MustExist      bool
	ReadsNearest   bool
}

// Geometry checks the whole config and returns the geometry of the first layer.
func (c ScalableConfig) Geometry() (Geometry, error) {
	switch {
	case c.Capacity == 0:
		return Geometry{}, configErrorf("ScalableConfig.Capacity", "is 0: set the number of items to begin with, at least 1")
	case !isRate(c.FPRate):
		return Geometry{}, noRate("ScalableConfig", c.FPRate)
	case c.FPRate/layerShare < cells.MinBlockedRate:
		return Geometry{}, configErrorf("ScalableConfig.FPRate", "is %v: the layers reach 5e-9 together", c.FPRate)
	}
	geo, err := c.layer().Geometry()
	if namesCapacity(err) {
		return Geometry{}, configErrorf("ScalableConfig.Capacity", "is %s, and at FPRate %v the first layer does not fit into"+
			" a Redis string: lower it, for the filter grows, or raise FPRate", human.Count(c.Capacity), c.FPRate)
	}
	if err != nil {
		return Geometry{}, ofConfig(err, "ScalableConfig")
	}
	return geo, c.hasRoom(geo)
}

// hasRoom returns an error if the first layer is longer than MaxBytes.
func (c ScalableConfig) hasRoom(geo Geometry) error {
	if length := geo.Bytes(LayoutHeaded); c.MaxBytes != 0 && c.MaxBytes < length {
		return configErrorf("ScalableConfig.MaxBytes", "is %d: the first layer takes %d; raise it, or lower Capacity",
			c.MaxBytes, length)
	}
	return nil
}

// layer is the Config of a filter like the first layer.
func (c ScalableConfig) layer() Config {
	return Config{
		Capacity: c.capacity(), FPRate: c.FPRate / layerShare, Seed: c.Seed, TTL: c.TTL,
		MissingIsEmpty: c.MissingIsEmpty,
		MustExist:      c.MustExist, ReadsNearest: c.ReadsNearest,
	}
}

// capacity returns the capacity of the first layer; 0 if it is not known.
func (c ScalableConfig) capacity() uint64 {
	if c.Capacity == 0 {
		return 0
	}
	return max(c.Capacity, minLayerCapacity)
}

func (c ScalableConfig) Format(s fmt.State, _ rune) { describe(s, c) }

// OpenScalable makes a handle for an existing filter. The filter has the
// Capacity rounded down by at most 1 in 2,048.
func OpenScalable(ctx context.Context, c *upstash.Client, key string, cfg ...ScalableConfig,
) (_ *Scalable, err error) {
	defer fault.OnlyReads(&err)
	want, seen, err := openedState(ctx, c, key, cfg)
	if err != nil {
		return nil, err
	}
	if err := seen.isOf(KindScalable, want.Seed); err != nil {
		return nil, err
	}
	if err := seen.CheckWord(); err != nil {
		return nil, err
	}
	geo, err := seen.sizedBy(want, want.Seed)
	if err != nil {
		return nil, err
	}
	if err := want.hasRoom(geo); err != nil {
		return nil, err
	}
	if !want.isSized() {
		want.Capacity = format.ParseLayers(seen.Word).Capacity
	}
	s := newScalable(c, key, want, geo)
	s.opened(format.RateIn(seen.Birth))
	if err := s.rec.CompareKind(seen.Word); err != nil {
		return nil, err
	}
	return s, nil
}

func (c ScalableConfig) isSized() bool { return c.Capacity != 0 || c.FPRate != 0 }

// checkOpen checks what does not depend on the filter to be opened.
func (c ScalableConfig) checkOpen() error {
	if !c.isSized() {
		c.Capacity, c.FPRate, c.MaxBytes = 1, 0.5, 0
	}
	_, err := c.Geometry()
	return err
}

// Stats reads the state of the filter and of its layers.
func (s *Scalable) Stats(ctx context.Context) (st Stats, err error) {
	defer fault.OnlyReads(&err)
	return s.count(s.rec.Label(ctx, "bloom.Scalable.Stats"), true)
}

// Cardinality is the sum of [Filter.Cardinality] over the layers.
func (s *Scalable) Cardinality(ctx context.Context) (items uint64, err error) {
	defer fault.OnlyReads(&err)
	st, err := s.count(s.rec.Label(ctx, "bloom.Scalable.Cardinality"), false)
	return s.itemsOf(st, err)
}

// count counts the set bits of each possible layer, and reads how the string is
// stored if stored is true.
func (s *Scalable) count(ctx context.Context, stored bool) (Stats, error) {
	l := &s.layers
	reads := make([]upstash.Command, 0, format.MaxLayers+1)
	for _, a := range l.areas {
		reads = append(reads, countArea(a, s.rec.Key))
	}
	if stored {
		reads = append(reads, upstash.Cmd("STRLEN", s.rec.Key))
	}
	c, err := s.rec.ReadCounts(ctx, stored, reads...)
	if err != nil {
		return Stats{}, err
	}
	newest, err := l.newest(c.Kind)
	if err != nil {
		return Stats{}, err
	}
	parts := make([]Part, newest)
	for i := range parts {
		parts[i] = partOf(l.geometry(i), l.capacity(i), c.N[i])
	}
	st := l.stats(newest)
	st.addUp(parts)
	st.LiveFPRate = inAny(parts)
	if stored {
		st.Bytes, st.TTL = c.N[len(l.areas)], c.TTL
	}
	return st, nil
}
