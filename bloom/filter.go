package bloom

import (
	"fmt"

	"github.com/upbloom/upbloom/upstash"
)

// A Filter is a handle to one Bloom filter in Redis. Make it with New or
// [Open]; the zero value is not usable. It holds no data of the filter: any
// number of handles, in any number of processes, can work on the same one. It
// is safe for concurrent use and must not be copied.
type Filter struct {
	handle
	cfg      Config
	capacity uint64 // that of cfg, or what the string said when it was opened
	watch    fillWatch
}

// New makes a handle for the filter at key. It checks the [Config], and returns
// a [*ConfigError] if it is wrong. It sends nothing: Create or the first Add
// makes the filter itself. New takes about a microsecond: a handler can call it
// for each request. An Add of a new handle is one command too.
func New(c *upstash.Client, key string, cfg Config) (*Filter, error) {
	geo, err := cfg.Geometry()
	if err != nil {
		return nil, err
	}
	if err := checkTarget(c, key); err != nil {
		return nil, err
	}
	return newFilter(c, key, cfg, geo, KindFilter), nil
}

func newFilter(c *upstash.Client, key string, cfg Config, geo Geometry, kind Kind) *Filter {
	f := new(Filter)
	f.init(c, key, cfg, geo, kind)
	return f
}

// opened makes the handle one of a filter whose string has this rate, as far as
// its Config does not say it.
func (f *Filter) opened(rate uint64) {
	if f.rec.Rate == 0 {
		f.rec.Rate = rate
	}
	if f.capacity == 0 {
		f.capacity = f.rec.geo.holds(rate, 1)
		f.watch.capacity = f.capacity
	}
}

func (f *Filter) init(c *upstash.Client, key string, cfg Config, geo Geometry, kind Kind) {
	f.cfg, f.capacity = cfg, cfg.Capacity
	f.bytes, f.parallel, f.missingIsEmpty = cfg.BatchBytes, cfg.BatchParallel, cfg.MissingIsEmpty
	if cfg.WarnFill != nil {
		f.watch.geo, f.watch.capacity = geo, cfg.Capacity
		f.onWrite = f.watchFill
	}
	r := &f.rec
	r.Client, r.Key, r.geo, r.layout, r.kind = c, key, geo, cfg.Layout, kind
	r.TTL, r.MustExist, r.Rate = cfg.TTL, cfg.MustExist, cfg.rateCode()
	r.setReads(cfg.Reads)
	r.storedBy(&plain{geo, cfg.Layout.bodyOffset()}, nil)
}

// Geometry returns what the filter's positions are computed from.
func (f *Filter) Geometry() Geometry { return f.rec.geo }

// String describes the handle without its key and seed.
func (f *Filter) String() string { return "bloom.Filter(" + f.rec.geo.String() + ")" }

// Format is String for every verb: %+v and %#v show neither the key nor the
// seed.
func (f *Filter) Format(s fmt.State, _ rune) { _, _ = fmt.Fprint(s, f.String()) }
