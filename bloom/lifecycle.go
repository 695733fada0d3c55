package bloom

import (
	"context"
	"time"
)

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
