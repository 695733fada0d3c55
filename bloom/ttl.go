package bloom

import (
	"context"
	"fmt"

	"github.com/upbloom/upbloom/upstash"
)

// A filter's TTL starts when the filter is created and is never prolonged:
// EXPIRE with NX sets it once. A handle cannot know whether the process that
// created the filter lived to set it, so its first write carries the EXPIRE in
// the same transaction.

// sendWrite sends a write, with an EXPIRE in the same transaction where asked.
func (f *Filter) sendWrite(ctx context.Context, cmd upstash.Command, withTTL bool) (write, expire upstash.Reply, err error) {
	if !withTTL {
		write, err = f.client.Do(ctx, cmd)
		return write, expire, wrongType(err)
	}
	replies, err := f.client.MultiExec(ctx, cmd, f.expireNX())
	if err != nil {
		return write, expire, wrongType(err)
	}
	return replies[0], replies[1], wrongType(replies[0].Err())
}

func (f *Filter) expireNX() upstash.Command {
	return upstash.ExpireCmd(f.key, f.cfg.TTL, "NX")
}

// noteExpire remembers that the TTL is set, whoever set it.
func (f *Filter) noteExpire(expire upstash.Reply) error {
	if _, err := expire.Int64(); err != nil {
		return fmt.Errorf("bloom: the items are in the filter, but its TTL could not be set: %w", err)
	}
	f.expiring.Store(true)
	return nil
}

// undoExpire takes back a TTL that was set on data that is not ours. It is
// tried once: the caller's error is the mismatch.
func (f *Filter) undoExpire(ctx context.Context, expire upstash.Reply) {
	if n, err := expire.Int64(); err == nil && n == 1 {
		_, _ = f.client.Persist(ctx, f.key)
	}
}

// renewExpire sets the TTL of a filter that was evicted or deleted, and which
// this write made anew. Where that fails, the next write carries it.
func (f *Filter) renewExpire(ctx context.Context, w written) {
	if f.cfg.TTL == 0 || !f.maybeAnew(w) {
		return
	}
	f.expiring.Store(false)
	if r, err := f.client.Do(ctx, f.expireNX()); err == nil {
		_ = f.noteExpire(r)
	}
}

// maybeAnew tells whether the write may have created the string. A Bare one
// has no header to tell, but a new string has no bit set.
func (f *Filter) maybeAnew(w written) bool {
	if w.created || w.maybeRepeated {
		return true
	}
	if f.headed() {
		return false
	}
	for _, b := range w.old[:min(len(w.old), f.geo.Hashes)] {
		if b.Int64 == 1 {
			return false
		}
	}
	return true
}
