package bloom

import (
	"context"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/fault"
)

// Create makes the filter with its whole string and its TTL, and reports
// whether it made it. The string does not grow later: no later [Filter.Add] can
// make it too large for the database. If a filter of the same geometry was
// there, it returns false. If the key holds another filter, the error is a
// [*MismatchError], and [ErrNotFilter] if it holds other data. Create leaves
// both untouched.
//
// If several clients create the same key at once, only one gets true, also
// after a lost reply. A later deployment that gets true learns that the filter
// was gone. If others delete the filter between two attempts of a Create, the
// second makes it again, empty. A Bare filter cannot be created: a
// [*ConfigError].
//
// To fill a filter, do not rely on a true: the program may end before it acts
// on it. Use [Filter.Load] alone, with a handle without [Config.MustExist]. The
// filter is then there whole or not at all.
func (f *Filter) Create(ctx context.Context) (created bool, err error) {
	ctx = f.rec.Label(ctx, "bloom.Create")
	if !f.rec.Headed() {
		return false, fault.Untouched(configErrorf("Layout",
			"is bare: only a filter with a header can be created; just Add"))
	}
	return f.create(ctx, headerBits+f.rec.geo.Bits, 0)
}

// Expire makes the filter expire after ttl, at least 1 ms, in place of any TTL
// it has, and reports whether there was a filter. It settles the TTL: no
// handle's [Config.TTL] changes it afterwards. If the key holds something else,
// Expire leaves that alone and returns a [*MismatchError] or [ErrNotFilter].
//
// It is repeated after a lost reply, and then undoes what others did to the TTL
// between the attempts. If the repetition finds no filter, Expire returns
// false, and of a Bare one [upstash.ErrUncertain].
func (f *Filter) Expire(ctx context.Context, ttl time.Duration) (bool, error) {
	return f.expire(f.rec.Label(ctx, "bloom.Expire"), ttl)
}

func (h *handle) expire(ctx context.Context, ttl time.Duration) (bool, error) {
	return h.rec.Expire(ctx, ttl)
}

// Persist removes the TTL and reports whether there was one. It settles the
// TTL: the filter stays, whatever a handle's [Config.TTL] says. But the first
// Add of another handle sets the TTL of a Bare filter again. Checks and
// repetitions are those of Expire. If a repetition finds a filter without a
// TTL, the error wraps [upstash.ErrUncertain]: perhaps the first attempt
// removed it.
func (f *Filter) Persist(ctx context.Context) (bool, error) {
	return f.persist(f.rec.Label(ctx, "bloom.Persist"))
}

func (h *handle) persist(ctx context.Context) (bool, error) { return h.rec.Persist(ctx) }

// Rename moves the filter to another key, with its TTL. The error is
// [ErrNotFound] if there is no filter, and [ErrKeyExists] if the other key
// holds something, which is never overwritten. The handle keeps its key: use a
// new one for the moved filter. Stop those who add at the old key first:
// without [Config.MustExist] their Adds make an empty filter there.
//
// It is not repeated after an attempt of unknown outcome: [upstash.SafeToRetry]
// reports whether the filter certainly was not moved.
func (f *Filter) Rename(ctx context.Context, to string) error {
	return f.rename(f.rec.Label(ctx, "bloom.Rename"), to)
}

func (h *handle) rename(ctx context.Context, to string) error { return h.rec.Rename(ctx, to) }

// Delete removes the filter and reports whether there was one. If the key holds
// something else, Delete leaves that alone and returns a [*MismatchError] or
// [ErrNotFilter]. It is not repeated after an attempt of unknown outcome,
// because another client may have made the filter again.
func (f *Filter) Delete(ctx context.Context) (bool, error) {
	return f.delete(f.rec.Label(ctx, "bloom.Delete"))
}

func (h *handle) delete(ctx context.Context) (bool, error) { return h.rec.Delete(ctx) }
