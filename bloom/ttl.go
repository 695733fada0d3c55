package bloom

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/upbloom/upbloom/upstash"
)

// A filter's TTL starts when the filter is created and is never prolonged:
// EXPIRE with NX sets it once. A handle cannot know whether the process that
// created the filter lived to set it, so its first write carries the EXPIRE in
// the same transaction.

// sendWrite sends a write, with an EXPIRE in the same transaction where asked.
func (f *Filter) sendWrite(ctx context.Context, cmd upstash.Command, withTTL bool) (
	write, expire upstash.Reply, err error,
) {
	if !withTTL {
		write, err = f.client.Do(ctx, cmd)
		return write, expire, f.wrongType(err)
	}
	replies, err := f.client.MultiExec(ctx, cmd, f.expireNX())
	if err != nil {
		return write, expire, f.wrongType(err)
	}
	return replies[0], replies[1], f.wrongType(replies[0].Err())
}

func (f *Filter) expireNX() upstash.Command {
	return upstash.ExpireCmd(f.key, f.cfg.TTL, "NX")
}

// noteExpire remembers that the TTL is set, whoever set it.
func (f *Filter) noteExpire(expire upstash.Reply) error {
	if _, err := expire.Int64(); err != nil {
		return &ttlError{err}
	}
	f.expiring.Store(true)
	return nil
}

// ttlError is a write that is in place, in a filter that has no TTL yet. The
// EXPIRE alone was refused: to repeat the write would find its items seen.
type ttlError struct{ err error }

func (e *ttlError) Error() string        { return ErrNoTTL.Error() + ": " + e.err.Error() }
func (e *ttlError) Is(target error) bool { return target == ErrNoTTL }
func (e *ttlError) Unwrap() error        { return e.err }
func (e *ttlError) SafeToRetry() bool    { return false }

// undoExpire takes back a TTL that was set on data that is not ours, and says
// so where that data may now expire.
func (f *Filter) undoExpire(ctx context.Context, expire upstash.Reply, foreign error) error {
	n, err := expire.Int64()
	switch {
	case err == nil && n == 1:
		if _, err = f.client.Persist(ctx, f.key); err != nil {
			return fmt.Errorf("%w; a TTL was set on it and could not be taken off, run PERSIST: %v",
				foreign, err)
		}
	case expire.MaybeRepeated():
		// The TTL that is there may be an earlier attempt's or its own.
		return fmt.Errorf("%w; a TTL may have been set on it: check it, and run PERSIST", foreign)
	}
	return foreign
}

// renewExpire sets the TTL of a filter that was evicted or deleted, and which
// this write made anew. Where it does not get through, the next write carries
// it, and the caller keeps the answer that is at hand; a server that refuses it
// will go on to do so, which the caller should know.
func (f *Filter) renewExpire(ctx context.Context, w written, s *scratch) error {
	if f.cfg.TTL == 0 || !f.maybeAnew(w, s) {
		return nil
	}
	f.expiring.Store(false)
	r, err := f.client.Do(ctx, f.expireNX())
	var server *upstash.Error
	switch {
	case err == nil:
		return f.noteExpire(r)
	case errors.As(err, &server) && upstash.SafeToRetry(err):
		return &ttlError{err}
	}
	return nil
}

// maybeAnew tells whether the write may have created the string. A Bare one
// has no header to tell, but in a new string the first item finds no bit set,
// save where it meets its own: positions may repeat.
func (f *Filter) maybeAnew(w written, s *scratch) bool {
	if w.created || w.maybeRepeated {
		return true
	}
	if f.headed() {
		return false
	}
	for i, p := range s.first {
		if w.old[i].Int64 == 1 && !slices.Contains(s.first[:i], p) {
			return false
		}
	}
	return true
}
