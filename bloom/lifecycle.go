package bloom

import (
	"context"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
)

// Create makes the filter with its whole string and its TTL, and reports
// whether it did: false for a filter of the same geometry. A process that gets
// true may end before it acts on that: to fill a filter, use [Filter.Load]
// alone, without [Config.MustExist].
func (f *Filter) Create(ctx context.Context) (created bool, err error) {
	ctx = f.rec.Label(ctx, "bloom.Create")
	if !f.rec.Headed() {
		return false, fault.Untouched(configErrorf("Layout",
			"is bare: only a filter with a header can be created; just Add"))
	}
	return f.create(ctx, format.HeaderBits+f.rec.geo.Bits, 0)
}

// Expire makes the filter expire after ttl, at least 1 ms, in place of any TTL,
// and reports whether there was a filter. No [Config.TTL] changes it
// afterwards. A retry overwrites what others set in between.
func (f *Filter) Expire(ctx context.Context, ttl time.Duration) (bool, error) {
	return f.rec.Expire(f.rec.Label(ctx, "bloom.Expire"), ttl)
}

// Persist removes the TTL and reports whether there was one. No [Config.TTL]
// sets another, unless the filter is Bare. If a retry finds no TTL, the error
// wraps [upstash.ErrMaybeRepeated].
func (f *Filter) Persist(ctx context.Context) (bool, error) {
	return f.rec.Persist(f.rec.Label(ctx, "bloom.Persist"))
}
