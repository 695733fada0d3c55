package bloom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// Snapshot downloads the filter into a Local. It takes one request for each MiB
// of the string (MovePartBytes), Config.BatchParallel at once, and one request
// of two commands before and after them, and one of one command before them. It
// holds the string in memory once.
//
// The copy is not of one moment. Bits are never cleared, so that it has at
// least all bits that were set at the start of the call: every item whose Add
// was acknowledged before the call is in it. If the filter was deleted,
// evicted, replaced or made anew during the call, the error is ErrRecreated
// (filters that another program made without birth numbers look the same). A
// missing filter is ErrNotFound, even with MissingIsEmpty. On a global
// database the nearest region sends the parts. With upstash.WithoutSyncToken the
// newest items may then be missing; if the region does not have the filter yet,
// the error is ErrRecreated too.
//
// A Bare filter has no header and no birth number to compare. Snapshot only
// checks that its string is no longer than the geometry says, and takes one
// command before the parts and none after them.
func (f *Filter) Snapshot(ctx context.Context, opts ...MoveOption) (*Local, error) {
	ctx = f.rec.label(ctx, "bloom.Snapshot")
	r := &f.rec
	c := f.moveConfig(opts)
	length, birth, err := r.measure(ctx)
	if err != nil {
		return nil, err
	}
	l := newLocal(r.geo)
	// A Bare string is the Local's without the header. The header of another is
	// not copied: its second word belongs to the key.
	shift, from := 0, headerBytes
	if !r.headed() {
		if shift, from = headerBytes, 0; length+shift > len(l.raw()) {
			return nil, fmt.Errorf("%w of this geometry: the string has %d bytes, and %d belong to it",
				ErrNotFilter, length, len(l.raw())-shift)
		}
	} else if err := r.regionHas(ctx, birth); err != nil {
		return nil, err
	}
	length = min(length, len(l.raw())) // what is behind the cells is nobody's
	var mu sync.Mutex
	var plain atomic.Bool // RESP2 was refused
	err = c.eachPart(ctx, max(length-from, 0), func(ctx context.Context, _, a, b int) error {
		part, err := r.getRange(ctx, &plain, from+a, from+b)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		l.orBytes(from+a+shift, part)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !r.headed() {
		return l, nil
	}
	_, after, err := r.measure(ctx)
	if errors.Is(err, ErrNotFound) || isForeign(err) || err == nil && after != birth {
		return nil, ErrRecreated
	}
	return l, err
}

// regionHas checks that the region which will send the parts has the filter of
// this birth number. If the primary still has it afterwards, no part is of
// another. A read-only client asked the region in the first place.
func (r *record) regionHas(ctx context.Context, birth int64) error {
	if r.client.ReadOnly() {
		return nil
	}
	reply, err := r.client.Do(ctx, r.identity().ReadOnly().Command())
	if err != nil {
		return explain(err)
	}
	id, err := identityIn(reply)
	if err == nil && id != [2]int64{r.header, birth} {
		err = behindError{}
	}
	return err
}

// behindError is ErrRecreated of a region that lags.
type behindError struct{}

func (behindError) Error() string {
	return "bloom: the nearest region does not have this filter yet, or it was made anew: call again," +
		" and use a client without upstash.WithoutSyncToken"
}
func (behindError) Is(target error) bool { return target == ErrRecreated }

// measure checks the header and reads the string's length and birth number, in
// one transaction, which the primary runs. Of a Bare filter it reads only the
// length.
func (r *record) measure(ctx context.Context) (length int, birth int64, err error) {
	if !r.headed() {
		reply, err := r.client.Do(ctx, upstash.Cmd("STRLEN", r.key))
		if err != nil {
			return 0, 0, explain(err)
		}
		n, err := reply.Int64()
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		return int(n), 0, err
	}
	e, err := r.readState(ctx, false)
	if err != nil {
		return 0, 0, err
	}
	if err := r.compare(int64(e.header.word())); err != nil {
		return 0, 0, err
	}
	return int(e.length), e.birth, nil
}

// getRange reads the bytes from `from` up to, but without, `to`. It returns
// fewer if the string ends earlier. It asks for RESP2, and for base64 if the
// server refuses that, which plain remembers.
func (r *record) getRange(ctx context.Context, plain *atomic.Bool, from, to int) ([]byte, error) {
	cmd := upstash.Cmd("GETRANGE", r.key, strconv.Itoa(from), strconv.Itoa(to-1)).Binary().
		Timeout(time.Duration((to-from)/partRate) * time.Second)
	var reply upstash.Reply
	var part []byte
	var err error
	if !plain.Load() {
		if reply, err = r.client.Do(ctx, cmd); err == nil {
			part, err = reply.Bytes()
		}
		if err == nil || noAnswer(err) {
			return checkRange(part, from, to, err)
		}
	}
	replies, err := r.client.Pipeline(ctx, cmd)
	if err == nil {
		if part, err = replies[0].Bytes(); err == nil {
			plain.Store(true)
		}
	}
	return checkRange(part, from, to, err)
}

func checkRange(part []byte, from, to int, err error) ([]byte, error) {
	if err == nil && len(part) > to-from {
		err = fmt.Errorf("bloom: GETRANGE: %w: %d bytes, and %d were asked for",
			upstash.ErrBadResponse, len(part), to-from)
	}
	if err != nil {
		return nil, explain(err)
	}
	return part, nil
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

// Restore adds the items of a stream that Save wrote, as [Filter.Merge] does,
// with its errors and its cost. It makes the filter if there is none. Items
// that are in it stay. A stream of another geometry or seed is a
// *MismatchError, and a damaged one is ErrBadStream, both before anything is
// sent. It does what BF.LOADCHUNK does for a filter of RedisBloom.
func (f *Filter) Restore(ctx context.Context, r io.Reader, opts ...MoveOption) (LoadResult, error) {
	l := newLocal(f.rec.geo)
	if _, err := l.ReadFrom(r); err != nil {
		return LoadResult{}, err
	}
	return f.Merge(ctx, l, opts...)
}
