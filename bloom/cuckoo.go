package bloom

import (
	"context"
	"fmt"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/internal/pttl"
	"github.com/upbloom/upbloom/upstash"
)

// A Cuckoo is a handle to a filter from which items can be removed (Fan et al.,
// CoNEXT 2014).
//
// Each Add stores a fingerprint of the item, a copy, and each Remove takes one
// out. Remove only what was added, and as often as it was added: otherwise
// another item with the same fingerprint may go, and the "no" about it is then
// wrong. A [Filter.Add] at the key, by mistake, may do that too: see
// [Stats.Damaged].
//
// A Cuckoo does not grow: a full one returns [ErrFull]. It has no TTL either.
// If the items have an end, as tokens do, make a Cuckoo for each period, such
// as "revoked:2026-W48", and Delete it afterwards.
//
// A write of unknown outcome is not repeated: it returns [ErrUncertain]. If no
// item is added twice, call again if Exists says "no" after an Add, or "yes"
// after a Remove. But a "yes" may be a false positive, and a delayed request
// may still run.
//
// A Cuckoo is safe for concurrent use and must not be copied. Make it with [NewCuckoo]
// or [OpenCuckoo].
type Cuckoo struct {
	handle
	cfg CuckooConfig
}

// NewCuckoo makes a handle for the filter at key.
func NewCuckoo(c *upstash.Client, key string, cfg CuckooConfig) (*Cuckoo, error) {
	geo, err := geometryFor(c, key, cfg)
	if err != nil {
		return nil, err
	}
	f := newCuckoo(c, key, cfg, geo)
	if err := f.fitsWrite(); err != nil {
		return nil, err
	}
	return f, nil
}

func newCuckoo(c *upstash.Client, key string, cfg CuckooConfig, geo Geometry) *Cuckoo {
	f := &Cuckoo{cfg: cfg}
	shape := cuckooShape{geo, geo.Bits / wordBits}
	f.init(c, key, cfg.shared(), geo, KindCuckoo, shape, shape)
	return f
}

// OpenCuckoo makes a handle for an existing filter.
func OpenCuckoo(ctx context.Context, c *upstash.Client, key string, cfg ...CuckooConfig) (_ *Cuckoo, err error) {
	defer fault.OnlyReads(&err)
	own, seen, err := openedState(ctx, c, key, cfg)
	if err != nil {
		return nil, err
	}
	if err := seen.isOf(KindCuckoo, own.Seed); err != nil {
		return nil, err
	}
	geo, err := seen.sizedBy(own, own.Seed)
	if err != nil {
		return nil, err
	}
	f := newCuckoo(c, key, own, geo)
	f.opened(format.RateIn(seen.Birth))
	return f, nil
}

// Create makes the filter with its whole table, and reports whether it did.
func (f *Cuckoo) Create(ctx context.Context) (created bool, err error) {
	ctx = f.rec.Label(ctx, "bloom.Cuckoo.Create")
	return f.create(ctx, format.HeaderBits+f.rec.geo.Bits, f.rec.Shape.KindWord(nil))
}

// Add stores a copy of the item, and reports whether there was none before:
// false also if another item has the same fingerprint.
func (f *Cuckoo) Add(ctx context.Context, item string) (added bool, err error) {
	return f.rec.Write(f.rec.Label(ctx, "bloom.Cuckoo.Add"), item, engine.Options{})
}

// Remove takes one copy of the item out and reports whether there was one. A
// full database refuses it: only Delete frees memory.
func (f *Cuckoo) Remove(ctx context.Context, item string) (removed bool, err error) {
	return f.rec.Write(f.rec.Label(ctx, "bloom.Cuckoo.Remove"), item, engine.Options{Removing: true})
}

// Exists reports whether a copy of the item is in the filter, or a false
// positive.
func (f *Cuckoo) Exists(ctx context.Context, item string) (bool, error) {
	return f.exists(f.rec.Label(ctx, "bloom.Cuckoo.Exists"), item, engine.Options{})
}

// AddAll stores a copy of each item and reports for each whether it was new. A
// request adds up to 500 items, all or none.
func (f *Cuckoo) AddAll(ctx context.Context, items []string) ([]bool, error) {
	return f.writeAll(f.rec.Label(ctx, "bloom.Cuckoo.AddAll"), items, engine.Options{})
}

// RemoveAll takes one copy of each item out and reports for each whether there
// was one. A request removes up to 500 items, all or none.
func (f *Cuckoo) RemoveAll(ctx context.Context, items []string) ([]bool, error) {
	return f.writeAll(f.rec.Label(ctx, "bloom.Cuckoo.RemoveAll"), items, engine.Options{Removing: true})
}

// A CuckooConfig says how large a [Cuckoo] is.
type CuckooConfig struct {
	_ struct{}

	// Capacity is the number of distinct items the filter takes, at least 1:
	// the chance of an earlier [ErrFull] is at most 2 in 10,000. If all items
	// are in twice, nine tenths fit, if three times two thirds, and at rates
	// below 1 in 1,000 less.
	Capacity uint64

	// FPRate is the false positive rate at Capacity: above 0 and below 1. There
	// are four sizes: 11.2 bits an item for 1 in 100, 14.1 for 1 in 1,000, 19.4
	// to 1 in 21,800 and 31.5 to 6e-8, the least.
	FPRate float64

	// Seed of the hash: see [Config.Seed].
	Seed uint64 `json:"-"`

	// MustExist and MissingIsEmpty do what they do in a [Config]; here
	// MustExist costs no more commands.
	MustExist      bool
	MissingIsEmpty bool

	// ReadsNearest is [Config.ReadsNearest]; a region that lags may also say
	// "yes" to a removed item.
	ReadsNearest bool
}

// Geometry checks the whole config and returns the size: Bits is 53 a bucket,
// and Hashes the slots of a bucket.
func (c CuckooConfig) Geometry() (Geometry, error) {
	switch {
	case c.Capacity == 0:
		return Geometry{}, configErrorf("CuckooConfig.Capacity", "is 0: set the number of items to expect, at least 1")
	case !isRate(c.FPRate):
		return Geometry{}, noRate("CuckooConfig", c.FPRate)
	case c.FPRate < cells.MinCuckooRate:
		return Geometry{}, configErrorf("CuckooConfig.FPRate", "is %v: a cuckoo filter reaches 6e-8, 1 in 16.7 million; use that", c.FPRate)
	}
	m, k, ok := cells.CuckooSize(c.Capacity, c.FPRate)
	if limit := format.Scheme(SchemeCuckoo).MaxCells(format.HeaderBits); !ok || m > limit {
		return Geometry{}, configErrorf("CuckooConfig.Capacity", "is %s, which does not fit into a Redis string at FPRate %v: lower it,"+
			" raise FPRate, or spread the items over several filters", human.Count(c.Capacity), c.FPRate)
	}
	return Geometry{Bits: m, Hashes: k, Scheme: SchemeCuckoo, Seed: c.Seed}, nil
}

func (c CuckooConfig) isSized() bool { return c.Capacity != 0 || c.FPRate != 0 }

// checkOpen checks what does not depend on the filter to be opened.
func (c CuckooConfig) checkOpen() error {
	if !c.isSized() {
		return nil
	}
	_, err := c.Geometry()
	return err
}

// shared returns what a Config says too.
func (c CuckooConfig) shared() Config {
	return Config{
		FPRate: c.FPRate, ReadsNearest: c.ReadsNearest,
		MissingIsEmpty: c.MissingIsEmpty, MustExist: c.MustExist,
	}
}

func (c CuckooConfig) Format(s fmt.State, _ rune) { describe(s, c) }

// Count returns how many copies the filter holds, exactly.
func (f *Cuckoo) Count(ctx context.Context) (uint64, error) {
	ctx = f.rec.Label(ctx, "bloom.Cuckoo.Count")
	word, err := f.rec.ReadKindWord(ctx)
	if err != nil {
		return 0, f.allowMissing(err)
	}
	return format.ParseCuckoo(word).Items, nil
}

// cuckooStatsScript returns the set bits from ARGV[2] to ARGV[3], the length and
// the TTL behind the words.
var cuckooStatsScript = upstash.NewScript(engine.LuaCheckHeader + `w[5] = redis.call('BITCOUNT', KEYS[1], ARGV[2], ARGV[3], 'BIT')
w[6] = redis.call('STRLEN', KEYS[1])
w[7] = redis.call('PTTL', KEYS[1])
return w`)

// Stats reads the state of the filter. Fill is 0.95 at most at Capacity. An Add
// returns [ErrFull] from 0.9 to 1, or from 0.8 to 0.91 with two slots a bucket
// (k=2), and in a small table sooner.
func (f *Cuckoo) Stats(ctx context.Context) (s Stats, err error) {
	defer fault.OnlyReads(&err)
	ctx = f.rec.Label(ctx, "bloom.Cuckoo.Stats")
	first, last := f.rec.cellRange()
	a := f.rec.RunNear(ctx, cuckooStatsScript, first, last)
	n, err := a.Numbers(3)
	if err == nil && (n[0] < 0 || n[1] < 0) {
		err = engine.ErrNegative
	}
	if err != nil {
		return Stats{}, err
	}
	s = cuckooStats(f.rec.geo, f.cfg.Capacity, a.Kind)
	s.countCells(a.Kind, uint64(n[0]))
	s.Bytes, s.TTL = uint64(n[1]), pttl.Duration(n[2])
	return s, nil
}
