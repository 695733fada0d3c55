package bloom

import (
	"context"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/fault"
)

// Create makes the filter with its whole string and its TTL. The string does
// not grow later: no later [Filter.Add] can make it too large for the database.
// Create reports whether it made the filter. If a filter of the same geometry
// was there, it returns false. If the key holds another filter, the error is a
// [*MismatchError], and [ErrNotFilter] if it holds other data. Create leaves
// both untouched.
//
// It is one request, a script: two billed commands if the filter is there, four
// if Create makes it, and one more if it has a TTL. If several clients create
// the same key at once, only one gets true: the birth number says which of them
// made the filter, also after a lost reply. Nobody gets true if that call ends
// in an error. A Bare filter has no birth number, and Create returns a
// [*ConfigError].
//
// If a later deployment gets true, the filter was gone: what had been added is
// "new" again.
//
// To fill a filter, do not rely on a true: the program may end before it acts on
// it, and until the end of the fill the filter says "no" about all that is not in
// yet. Make it by [Filter.Load] alone, of a handle without [Config.MustExist]. It
// is then there whole or not at all, and another Load after an error does no harm.
//
// Create is repeated after a lost reply. If others delete the filter between two
// attempts, the second makes it again, empty.
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
// handle's [Config.TTL] changes it afterwards. It is one request and four
// billed commands, or one for a Bare filter. If the key holds something else,
// Expire leaves that alone and returns a [*MismatchError] or [ErrNotFilter]. It
// is repeated after a lost reply, and then undoes a Persist of others between
// the attempts. If it then found no filter, Expire returns false, and of a Bare
// one [upstash.ErrUncertain]: the filter may have expired in between.
func (f *Filter) Expire(ctx context.Context, ttl time.Duration) (bool, error) {
	return f.expire(f.rec.Label(ctx, "bloom.Expire"), ttl)
}

func (h *handle) expire(ctx context.Context, ttl time.Duration) (bool, error) {
	return h.rec.Expire(ctx, ttl)
}

// Persist removes the TTL and reports whether there was one. It settles the
// TTL: the filter stays, whatever a handle's [Config.TTL] says. A Bare filter
// cannot note it: the first Add of another handle with a TTL sets one again.
// Cost and checks are those of Expire. It is repeated after a lost reply too, and then undoes
// an Expire of others between the attempts. If it then found a filter without a
// TTL, the error wraps [upstash.ErrUncertain]: perhaps the first attempt removed
// the TTL. If it then found no filter, Persist returns false.
func (f *Filter) Persist(ctx context.Context) (bool, error) {
	return f.persist(f.rec.Label(ctx, "bloom.Persist"))
}

func (h *handle) persist(ctx context.Context) (bool, error) { return h.rec.Persist(ctx) }

// Rename moves the filter to another key, with its TTL. The error is
// [ErrNotFound] if there is no filter, and [ErrKeyExists] if the other key
// holds something. That is never overwritten. It is one request and three
// billed commands, or two for a Bare filter. The handle keeps its key: use a
// new one for the moved filter. Stop those who add at the old key first: without
// [Config.MustExist] their Adds make an empty filter there.
//
// It is not repeated after an attempt of unknown outcome: [upstash.SafeToRetry]
// reports whether the filter certainly was not moved.
func (f *Filter) Rename(ctx context.Context, to string) error {
	return f.rename(f.rec.Label(ctx, "bloom.Rename"), to)
}

func (h *handle) rename(ctx context.Context, to string) error { return h.rec.Rename(ctx, to) }

// Delete removes the filter and reports whether there was one. It is one
// request and three billed commands, or one for a Bare filter. If the key holds
// something else, Delete leaves that alone and returns a [*MismatchError] or
// [ErrNotFilter]. It is not repeated after an attempt of unknown outcome,
// because another client may have made the filter again.
func (f *Filter) Delete(ctx context.Context) (bool, error) {
	return f.delete(f.rec.Label(ctx, "bloom.Delete"))
}

func (h *handle) delete(ctx context.Context) (bool, error) { return h.rec.Delete(ctx) }
