package bloom

import (
	"context"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/fault"
)

// Create makes the filter with its whole string and its TTL, and reports
// whether it made it: no later [Filter.Add] can make it too large for the
// database. If a filter of the same geometry was there, it returns false.
// Another filter is a [*MismatchError], other data [ErrNotFilter]; both stay
// untouched.
//
// If several clients create the same key at once, only one gets true, also
// after a lost reply. To fill a filter, do not rely on a true, because the
// program may end before it acts on it: use [Filter.Load] alone, with a handle
// without [Config.MustExist].
func (f *Filter) Create(ctx context.Context) (created bool, err error) {
	ctx = f.rec.Label(ctx, "bloom.Create")
	if !f.rec.Headed() {
		return false, fault.Untouched(configErrorf("Layout",
			"is bare: only a filter with a header can be created; just Add"))
	}
	return f.create(ctx, headerBits+f.rec.geo.Bits, 0)
}

// Expire makes the filter expire after ttl, at least 1 ms, in place of any TTL
// it has, and reports whether there was a filter. No handle's [Config.TTL]
// changes it afterwards. Anything else at the key is left alone: a
// [*MismatchError] or [ErrNotFilter]. It is repeated after a lost reply, and
// then undoes what others did to the TTL between the attempts.
func (f *Filter) Expire(ctx context.Context, ttl time.Duration) (bool, error) {
	return f.expire(f.rec.Label(ctx, "bloom.Expire"), ttl)
}

func (h *handle) expire(ctx context.Context, ttl time.Duration) (bool, error) {
	return h.rec.Expire(ctx, ttl)
}

// Persist removes the TTL and reports whether there was one. The filter stays,
// whatever a handle's [Config.TTL] says, unless it is Bare. If a repetition
// finds no TTL, the error wraps [upstash.ErrUncertain]: perhaps the first
// attempt removed it.
func (f *Filter) Persist(ctx context.Context) (bool, error) {
	return f.persist(f.rec.Label(ctx, "bloom.Persist"))
}

func (h *handle) persist(ctx context.Context) (bool, error) { return h.rec.Persist(ctx) }
