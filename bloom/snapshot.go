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

// Snapshot downloads the filter into a Local. It takes one request before, one
// after, and one for each MiB of the string (MovePartBytes),
// Config.BatchParallel at once; each is one command, the first two.
//
// Bits only ever get set, so that the copy, which is not of one moment, lies
// between the filter's state at the start of the call and that at its end:
// every item whose Add was acknowledged before the call is in it. If the filter
// was deleted, evicted, replaced or made anew meanwhile, that is ErrRecreated.
// A missing filter is ErrNotFound, whatever MissingIsEmpty says. On a global
// database the nearest region sends the parts, so that the newest items may be
// missing.
//
// Of a Bare filter nothing can be compared: the string must only be no longer
// than the geometry says.
func (f *Filter) Snapshot(ctx context.Context, opts ...MoveOption) (*Local, error) {
	ctx = f.rec.label(ctx, "bloom.Snapshot")
	r := &f.rec
	c := f.moveConfig(opts)
	length, birth, err := r.measure(ctx)
	if err != nil {
		return nil, err
	}
	l := newLocal(r.geo)
	// The string's bytes are the Local's, behind a header if it has one. What
	// is before the body is the key's own.
	shift, from := 0, headerBytes
	if !r.headed() {
		shift, from = headerBytes, 0
	}
	if length+shift > len(l.raw()) {
		return nil, fmt.Errorf("%w of this geometry: the string has %d bytes, and %d belong to it",
			ErrNotFilter, length, len(l.raw())-shift)
	}
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

// measure verifies the header and reads the string's length and birth number,
// as one transaction, which the primary runs.
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
	e, err := r.examine(ctx, false)
	if err != nil {
		return 0, 0, err
	}
	if err := r.compare(int64(e.header.word())); err != nil {
		return 0, 0, err
	}
	return int(e.length), e.birth, nil
}

// getRange reads bytes from and up to, but without, to. A string that ends
// earlier is followed by zeros. plain is set if the server refuses RESP2, and
// base64 is asked for.
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

// Save writes the filter to w, as [Local.WriteTo] does: the equal of
// BF.SCANDUMP. It is a Snapshot first, so that nothing is written if that
// fails.
func (f *Filter) Save(ctx context.Context, w io.Writer, opts ...MoveOption) error {
	l, err := f.Snapshot(ctx, opts...)
	if err != nil {
		return err
	}
	_, err = l.WriteTo(w)
	return err
}

// Restore brings what Save wrote into the filter, with Merge: the equal of
// BF.LOADCHUNK. It makes the filter if there is none; items that are in it
// stay. A stream of another geometry is a *MismatchError, and a damaged one an
// error before anything is sent.
func (f *Filter) Restore(ctx context.Context, r io.Reader, opts ...MoveOption) (LoadResult, error) {
	l := newLocal(f.rec.geo)
	if _, err := l.ReadFrom(r); err != nil {
		return LoadResult{}, err
	}
	return f.Merge(ctx, l, opts...)
}
