package bloom

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/synced"
	"github.com/upbloom/upbloom/upstash"
)

// LoadResult is what a [Filter.Load], [Filter.Merge] or [Backup.Restore] did.
type LoadResult struct {
	// Items is how many items Load read, equal ones counted again; 0 for Merge.
	Items uint64
	// NewBits is how many cells the call set that were 0 before. NewBitsUnknown
	// is true after an error that is not safe to retry.
	NewBits        uint64
	NewBitsUnknown bool
	// OverCapacity is [Stats.OverCapacity] of the filter now, or of a loaded
	// shard of a [Sharded].
	OverCapacity bool
	// Created is true if this call made the filter.
	Created bool
	// Bytes is how many bytes of the string were sent, Requests in how many
	// requests, and Commands how many were billed. Of retries, only the last
	// counts.
	Bytes, Requests, Commands int64
	// Duration is how long the call took.
	Duration time.Duration
}

// ErrLoadLost is returned by [Filter.Load], [Filter.Merge], [Filter.Replace]
// and [Backup.Restore] when a part of the upload was evicted, or the upload
// took longer than an hour. The target is as it was. Turn eviction off.
var ErrLoadLost = engine.ErrLoadLost

// Load adds all items at once, an order of magnitude faster than
// [Filter.AddAll], but does not say which were new. It builds the filter in
// memory and uploads its string, which the server ORs into the filter in one
// atomic step.
//
// Load cannot tell a truncated sequence from a complete one: cancel ctx if
// reading the items fails, and nothing is loaded. It does not refuse items
// beyond the capacity: see [LoadResult.OverCapacity].
//
// An error leaves the filter as it was, unless [upstash.SafeToRetry] returns
// false: then the items may be in it. Calling again is harmless.
//
// The filter keeps its TTL and its birth number; a missing one is made, with
// [Config.TTL]. The parts of the string ([WithPartBytes]) travel at
// KEY:load:RANDOM:i. What stays behind there expires within an hour.
func (f *Filter) Load(ctx context.Context, items iter.Seq[string], opts ...MoveOption) (LoadResult, error) {
	ctx = f.rec.Label(ctx, "bloom.Load")
	start := time.Now()
	if err := f.rec.MayWrite(); err != nil {
		return LoadResult{}, err
	}
	l := newLocal(f.rec.geo)
	g := newGatherer(l)
	for item := range items {
		g.add(item)
		if g.result.Items%4096 == 0 && ctx.Err() != nil {
			return notLoaded(ctx, g.result.Items, start)
		}
	}
	read := g.flush().Items
	result, err := f.Merge(ctx, l, opts...)
	result.Items, result.Duration = read, time.Since(start)
	return result, err
}

// notLoaded returns the result and the error of a Load whose context ended while
// it read.
func notLoaded(ctx context.Context, read uint64, start time.Time) (LoadResult, error) {
	return LoadResult{Items: read, Duration: time.Since(start)},
		fault.Untouched(fault.Errorf("bloom: nothing was loaded: %w", engine.Ended(ctx)))
}

// Merge is [Filter.Load] of the items of l, which it only reads. Another
// geometry or seed is a [*MismatchError].
func (f *Filter) Merge(ctx context.Context, l *Local, opts ...MoveOption) (LoadResult, error) {
	ctx = f.rec.Label(ctx, "bloom.Merge")
	start := time.Now()
	if err := f.fits(l); err != nil {
		return LoadResult{}, fault.Untouched(err)
	}
	if err := f.rec.MayWrite(); err != nil {
		return LoadResult{}, err
	}
	done, err := f.rec.Merge(ctx, f.body(l), f.moves(opts))
	result := uploaded(done, err, start)
	if err != nil {
		return result, err
	}
	result.OverCapacity = f.stats(uint64(done.After), done.Birth).OverCapacity()
	result.NewBits = uint64(done.After - done.Before)
	return result, nil
}

// uploaded returns the result of an upload without what is in the filter now.
func uploaded(done engine.Merged, err error, start time.Time) LoadResult {
	return LoadResult{
		Bytes: done.Bytes, Requests: done.Requests, Commands: done.Commands, Created: done.Created,
		Duration: time.Since(start), NewBitsUnknown: err != nil && !upstash.SafeToRetry(err),
	}
}

// body is what a Local brings into the filter.
func (f *Filter) body(l *Local) engine.Body {
	b := engine.Body{Bytes: l.raw(), SetBits: l.setBits(), Rate: format.KnownRate(l.rate)}
	if !f.rec.Headed() {
		b.Bytes = b.Bytes[format.HeaderBytes:]
	}
	b.First, b.Last = f.rec.cellRange()
	return b
}

// fits checks that a Local has the filter's geometry.
func (f *Filter) fits(l *Local) error {
	if l == nil {
		return errors.New("bloom: the Local is nil: make one with NewLocal")
	}
	if l.geo != f.rec.geo {
		return localMismatch(f.rec.geo, l.geo)
	}
	return nil
}

// Replace makes the filter's content that of l, in one atomic step. Use it to
// rebuild a filter from the source of truth. It uploads as [Filter.Load] does,
// with the same promises. It only reads l, which must have the handle's
// geometry and seed, and whose Capacity, if known, becomes the filter's.
//
// An item that others add after l was begun is lost, even if its Add was
// acknowledged, unless l has it. The filter keeps its TTL and gets a new birth
// number. An ExistsAll of several requests may ask both filters.
//
// The key may hold nothing, or any plain filter, of another geometry too. To
// change the geometry, follow MIGRATING.md, or stop all writers first. A Bare
// filter is a [*ConfigError].
func (f *Filter) Replace(ctx context.Context, l *Local, opts ...MoveOption) error {
	ctx = f.rec.Label(ctx, "bloom.Replace")
	r := &f.rec
	if !r.Headed() {
		return fault.Untouched(configErrorf("Layout", "is bare: only a filter with a header can be replaced"))
	}
	// A handle may replace the filter that it refuses to write to. Until it
	// did, it goes on refusing.
	if err := f.fits(l); err != nil {
		return fault.Untouched(err)
	}
	if r.Client.ReadOnly() {
		return upstash.ErrReadOnly
	}
	return r.Replace(ctx, f.body(l), f.moves(opts), f.rec.replaceable)
}

// replaceable returns the header of the filter at the key if it is a plain one of
// another geometry, which may be replaced too. It looks at the key first,
// because the header word alone does not tell a filter from other data. err is
// why it was not replaced.
func (r *record) replaceable(ctx context.Context, err error) (header int64, _ error) {
	other, ok := fault.As[*MismatchError](err)
	if !ok || other.GotKind != KindFilter {
		return 0, err
	}
	e, err := r.readState(ctx, false)
	if fault.Is(err, ErrNotFound) { // it was deleted in the meantime
		return r.Header, nil
	}
	if err != nil {
		return 0, r.Failed(err)
	}
	header = int64(e.Header.Word())
	if Kind(e.Header.Kind) != KindFilter {
		return 0, r.Learn(header)
	}
	return header, nil
}

// Snapshot downloads the filter into a [Local], 1 MiB of the string in a
// request ([WithPartBytes]). It holds the string in memory once.
//
// The copy holds every item whose Add was acknowledged before the call, and
// perhaps later ones. If the filter was deleted, renamed or replaced meanwhile,
// the error is [ErrRecreated]. Nothing shows it in a Bare filter, or if other
// programs made both filters without a birth number.
//
// The primary of a global database sends the first part, and the nearest region
// the others: with [upstash.WithoutSyncToken] the newest items may be missing in
// these. If the client may only read, which takes EVAL_RO, a region sends all,
// and they may be missing in any part. So it does of a Bare filter, if the token
// may not run EVAL, or if a full database refuses it.
func (f *Filter) Snapshot(ctx context.Context, opts ...MoveOption) (l *Local, err error) {
	defer fault.OnlyReads(&err)
	ctx = f.rec.Label(ctx, "bloom.Snapshot")
	r := &f.rec
	c := f.moves(opts)
	var operation synced.Operation
	ctx = synced.With(ctx, &operation)
	// The header is not copied: its second word belongs to the key. A Bare
	// string is the Local's without the header.
	from, whole, shift := format.HeaderBytes, int(r.geo.Bytes(r.layout)), 0
	if !r.Headed() {
		from, shift = 0, format.HeaderBytes
	}
	seen, err := r.start(ctx, from, min(from+c.PartBytes, whole+1)) // one more shows that it ends there
	if err != nil {
		return nil, err
	}
	operation.Fix()
	if !r.Headed() && seen.Length > uint64(whole) {
		return nil, fmt.Errorf("%w of this geometry: the string has %d bytes, and %d belong to it",
			ErrNotFilter, seen.Length, whole)
	}
	l = newLocal(r.geo)
	l.rate = format.RateIn(seen.Birth)
	length := int(min(seen.Length, uint64(whole))) // what is behind the cells is nobody's
	put := func(at int, part []byte) { l.orBytes(at+shift, part) }
	if err := r.Download(ctx, c, seen.Birth, seen.Bytes, from, length, put); err != nil {
		return nil, err
	}
	return l, nil
}

// start reads how the string begins. Of a Bare filter it reads only the length.
func (r *record) start(ctx context.Context, from, to int) (s engine.Start, err error) {
	if r.Headed() {
		return r.ReadStart(ctx, from, to, false)
	}
	length, err := r.MeasureBare(ctx)
	s.Length = uint64(length)
	return s, err
}
