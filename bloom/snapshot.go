package bloom

import (
	"context"
	"fmt"
	"io"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/internal/synced"
)

// Snapshot downloads the filter into a [Local]. It takes one request of two
// commands, and then one of three commands for each MiB of the string
// ([MovePartBytes]), [Config.BatchParallel] at once. It holds the string in
// memory once.
//
// The copy is not of one moment. Bits are never cleared: the copy has at least
// all bits that were set at the start of the call. Every item whose Add was
// acknowledged before the call is in it. Each part proves which filter it is
// of. If the filter was deleted, renamed, evicted, replaced or made again
// before the last part was read, as far as the region that sends it knows, the
// error is [ErrRecreated]. Acknowledged writes that the database loses meanwhile
// it cannot see. (If another program made filters without birth
// numbers, they look the same.) A missing filter is [ErrNotFound], even with
// MissingIsEmpty.
//
// On a global database the primary answers the first request, and the nearest
// region sends the parts. With [upstash.WithoutSyncToken] or a read-only token
// the newest items may then be missing; if the region does not have the filter
// yet, or a shorter string of it, the error is ErrRecreated too. A region answers
// the first request too if [Open] would ask it: a filter that it lacks is then
// ErrNotFound.
//
// A Bare filter has no header and no birth number: its parts do not prove which
// filter they are of. Snapshot only checks that its string is no longer than the
// geometry says. It takes one request of two commands, and then one command for
// each part.
func (f *Filter) Snapshot(ctx context.Context, opts ...MoveOption) (l *Local, err error) {
	defer fault.OnlyReads(&err)
	ctx = f.rec.Label(ctx, "bloom.Snapshot")
	r := &f.rec
	c := f.moveConfig(opts)
	var operation synced.Operation
	ctx = synced.With(ctx, &operation)
	length, birth, err := r.measure(ctx)
	if err != nil {
		return nil, err
	}
	operation.Fix()
	l = newLocal(r.geo)
	// The header is not copied: its second word belongs to the key. A Bare
	// string is the Local's without the header.
	from, shift := headerBytes, 0
	if !r.Headed() {
		if from, shift = 0, headerBytes; length+shift > len(l.raw()) {
			return nil, fmt.Errorf("%w of this geometry: the string has %d bytes, and %d belong to it",
				ErrNotFilter, length, len(l.raw())-shift)
		}
	}
	length = min(length, len(l.raw())) // what is behind the cells is nobody's
	err = r.Download(ctx, c.Moves, birth, from, length, func(at int, part []byte) { l.orBytes(at+shift, part) })
	if err != nil {
		return nil, err
	}
	return l, nil
}

// measure checks the header and reads the string's length and birth number, in
// one transaction, which the primary runs. Its answer has the sync token of all
// that was acknowledged before. Of a Bare filter measure reads only the length.
func (r *record) measure(ctx context.Context) (length int, birth int64, err error) {
	if !r.Headed() {
		length, err = r.MeasureBare(ctx)
		return length, 0, err
	}
	e, err := r.readState(ctx, false)
	if err != nil {
		return 0, 0, err
	}
	if err := r.Compare(int64(e.header.word())); err != nil {
		return 0, 0, err
	}
	return int(e.length), e.birth, nil
}

// Save writes the filter to w, as [Local.WriteTo] does. It makes a Snapshot
// first, with its errors and its cost, and writes nothing if that fails. It
// does what BF.SCANDUMP does for a filter of RedisBloom.
func (f *Filter) Save(ctx context.Context, w io.Writer, opts ...MoveOption) error {
	l, err := f.Snapshot(ctx, opts...)
	if err != nil {
		return err
	}
	_, err = l.WriteTo(w)
	return err
}

// Restore adds the items of a stream written by Save, as [Filter.Merge] does,
// with its errors and its cost. It makes the filter if there is none. Items
// already in the filter stay. A stream of another geometry or seed is a
// [*MismatchError], and a damaged one is [ErrBadStream], both before anything
// is sent. It does what BF.LOADCHUNK does for a filter of RedisBloom.
func (f *Filter) Restore(ctx context.Context, r io.Reader, opts ...MoveOption) (LoadResult, error) {
	l := newLocal(f.rec.geo)
	if _, err := l.ReadFrom(r); err != nil {
		return LoadResult{}, fault.Untouched(err)
	}
	return f.Merge(ctx, l, opts...)
}
