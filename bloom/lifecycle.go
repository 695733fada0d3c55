package bloom

import (
	"context"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// Expire makes the filter expire after ttl, at least 1 ms, in place of any TTL
// it has, and reports whether there was such a key. One command.
func (f *Filter) Expire(ctx context.Context, ttl time.Duration) (bool, error) {
	return f.client.Expire(ctx, f.key, ttl)
}

// Persist takes the TTL off and reports whether there was one. A handle with a
// Config.TTL sets it again with its first write: use one without. Where the
// command had to be repeated and found no TTL, the error wraps
// upstash.ErrUncertain.
func (f *Filter) Persist(ctx context.Context) (bool, error) {
	return f.client.Persist(ctx, f.key)
}

// Rename moves the filter to another key, with its TTL. It is ErrNotFound
// where there is none, and ErrKeyExists where the other key holds something,
// which is never overwritten. One request, two commands. The handle keeps its
// key: use a new one for the moved filter.
//
// It is not repeated after an attempt of unknown outcome: upstash.SafeToRetry
// tells whether it may have been done.
func (f *Filter) Rename(ctx context.Context, to string) error {
	if to == "" {
		return errEmptyKey
	}
	if to == f.key {
		return ErrKeyExists
	}
	// EXISTS tells a missing filter without a look at the words of an error.
	replies, err := f.client.MultiExec(ctx,
		upstash.Cmd("EXISTS", f.key), upstash.Cmd("RENAMENX", f.key, to))
	if err != nil {
		return err
	}
	found, err := replies[0].Int64()
	if err != nil {
		return err
	}
	if found == 0 {
		return ErrNotFound
	}
	renamed, err := replies[1].Int64()
	if err == nil && renamed == 0 {
		err = ErrKeyExists
	}
	return err
}

// Delete removes the filter, or whatever else the key holds, and reports
// whether there was anything. One command. It is not repeated after an attempt
// of unknown outcome, because another client may have made the filter anew.
func (f *Filter) Delete(ctx context.Context) (bool, error) {
	n, err := f.client.Del(ctx, f.key)
	if err == nil {
		f.forget()
	}
	return n == 1, err
}
