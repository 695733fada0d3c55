package bloom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/internal/synced"
	"github.com/upbloom/upbloom/upstash"
)

// LoadResult is what a Load or Merge did. It is plain data.
type LoadResult struct {
	// Items is how many items Load read, equal ones counted again; 0 for Merge.
	Items uint64
	// NewBits is how many cells the call set that were 0 before. After an
	// error that is not safe to retry, such as [ErrUncertain], it is not known,
	// and NewBitsUnknown is true.
	NewBits        uint64
	NewBitsUnknown bool
	// OverCapacity is true if the filter now holds more items than its Capacity;
	// see [Stats.OverCapacity]. It is false if the Capacity is not known. Of a
	// [Sharded] it is true if a loaded shard holds more than it has room for.
	OverCapacity bool
	// Created is true if this call made the filter.
	Created bool
	// Bytes is how many bytes of the filter's string were sent, in so many
	// requests. Commands is how many were billed, with those called by the
	// script. Of what was sent again only the last attempt counts. It may have
	// had little left to do, so after a lost answer the bill can be far higher.
	Bytes, Requests, Commands int64
	// Duration is how long the call took.
	Duration time.Duration
}

// ErrLoadLost is returned by Load, Merge, Restore and Replace when a part of
// the upload was gone before it could be used: it was evicted, or the upload
// took longer than an hour. The target is as it was; of a [Sharded], this is the
// one shard. Turn eviction off for such a database, and try again.
var ErrLoadLost = engine.ErrLoadLost

// Load adds all items at once. It builds the filter in memory and uploads its
// string. Then the server ORs the string into the filter, in one atomic step
// that also makes the filter if there is none. Use it to add many items: a
// million at 1 in 100 are 1.34 MB and three requests, however long the items
// are. This is an order of magnitude faster than [Filter.AddAll]. The whole
// string travels, however few the items are: at 1 in 100, AddAll sends less if
// they are fewer than a 70th of the capacity. Load does not say which items were
// new.
//
// The string travels in parts of 1 MiB ([MovePartBytes]),
// [Config.BatchParallel] at once. Each part is a key of its own,
// KEY:load:RANDOM:i, and expires after an hour. Then one script checks that the
// target's header is right and every part is there and whole. It puts them
// together at KEY:load:RANDOM, takes the upload, and removes the parts. It checks
// their number and length: bytes that somebody else wrote into a part it does not
// notice. If a
// part had to be sent again, the script leaves a mark at KEY:load:RANDOM for an
// hour: a late part is then not taken twice. The filter keeps its TTL and its
// birth number; a new filter gets [Config.TTL]. While the script runs, the
// database is locked, or only the script's keys are: for about 6 ms a megabyte.
// It needs room for four times the string meanwhile. If Load is interrupted at
// any point, the filter is as it was or complete, and nothing stays behind for
// more than an hour. The parts of a call that has ended may be deleted earlier.
//
// A Load that makes the filter is billed three commands for each part and eight
// more (seven if it is Bare): 11 for one part, 203 for 65 of them. If the filter
// was there, it is nine more, ten if the filter has a TTL. If it should have one,
// because an Add ended before it set that, Load sets it, with two commands. What
// is sent again is billed again.
//
// An error leaves the filter as it was, unless upstash.SafeToRetry(err) is
// false: then the items may be in it. Calling again is harmless either way. The
// script is sent again after a lost reply. If it then finds no parts, and a
// filter that it did not make, an earlier attempt may have taken them: this is
// [ErrUncertain]. If the key holds something else, the error is a
// [*MismatchError] or [ErrNotFilter], and Load leaves that alone. With
// [Config.MustExist] a missing filter is [ErrNotFound]. Load holds the filter's
// string in memory once; Go's heap may grow to twice that.
//
// If the filter is too large for one record of the database, the error is
// [upstash.ErrRecordTooLarge], a [*RecordTooLargeError]. The filter is as it
// was, and nothing of the upload stays. Calling again does not help. Every plan
// takes 100,000,000 bytes. Before a longer string is sent, one request of two
// commands asks whether the database takes it: it makes one and removes it,
// about 1 ms a megabyte.
//
// Load takes a sequence that ends early for a whole one. If reading the items may
// fail, cancel the context then, as the example does: nothing is loaded.
//
// Load does not refuse items beyond the capacity: see
// [LoadResult.OverCapacity]. It calls [Config.WarnFill] then, whose Stats are
// four commands more, unless another call of the handle is in it.
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
		fault.Untouched(fmt.Errorf("bloom: nothing was loaded: %w", engine.Ended(ctx)))
}

// Merge adds all items of l, which must have the filter's geometry and seed,
// else the error is a [*MismatchError]. It is the second half of Load, with the
// same promises, errors and cost. It only reads l.
func (f *Filter) Merge(ctx context.Context, l *Local, opts ...MoveOption) (LoadResult, error) {
	ctx = f.rec.Label(ctx, "bloom.Merge")
	start := time.Now()
	if err := f.mayMove(l); err != nil {
		return LoadResult{}, err
	}
	done, err := f.rec.Merge(ctx, f.body(l), f.moveConfig(opts).Moves)
	result := LoadResult{
		Bytes: done.Bytes, Requests: done.Requests, Commands: done.Commands,
		Duration: time.Since(start), NewBitsUnknown: err != nil && !upstash.SafeToRetry(err),
	}
	if err != nil {
		return result, err
	}
	result.OverCapacity = f.statsFor(f.capacity, uint64(done.After)).OverCapacity()
	if result.OverCapacity && f.cfg.WarnFill != nil {
		f.warn(ctx)
	}
	result.Created = done.Created
	result.NewBits = uint64(done.After - done.Before)
	return result, nil
}

// body is what a Local brings into the filter.
func (f *Filter) body(l *Local) engine.Body {
	b := engine.Body{Bytes: l.raw(), SetBits: l.setBits()}
	if !f.rec.Headed() {
		b.Bytes = b.Bytes[headerBytes:]
	}
	b.First, b.Last = f.rec.cellRange()
	return b
}

// mayMove checks what can be checked before anything is sent.
func (f *Filter) mayMove(l *Local) error {
	if err := f.fits(l); err != nil {
		return fault.Untouched(err)
	}
	return f.rec.MayWrite()
}

// fits checks that a Local has the filter's geometry.
func (f *Filter) fits(l *Local) error {
	if l == nil {
		return errors.New("bloom: the Local is nil: make one with NewLocal")
	}
	if l.geo != f.rec.geo {
		return &MismatchError{
			Want: f.rec.geo, Got: l.geo, OtherSeed: l.geo.Seed != f.rec.geo.Seed,
			GotSeeded: l.geo.Seed != 0, local: true,
		}
	}
	return nil
}

// Replace makes the filter's content that of l, in one atomic step: readers
// never see it half done. Use it to rebuild a filter from the source of truth.
// It uploads as [Filter.Load] does, with the same promises, and only reads l.
// It costs the same too, and two requests more if the filter in place has
// another header.
//
// An item that others add after l was begun is lost, even if its Add was
// acknowledged, unless l has it. The key may hold nothing, or any plain filter
// of this package, whatever its geometry. Another kind, or a [Cuckoo], is a
// [*MismatchError], and other data is [ErrNotFilter]; both are left alone. The filter keeps its
// TTL. A new filter, and one whose TTL is not settled, gets [Config.TTL]. The
// filter gets a new birth number: an AddAll under way returns [ErrRecreated], as
// does a Snapshot once it sees the new one, and a [Mirror] drops its copy. An
// ExistsAll of several requests may ask both filters, each item in one of them.
//
// l must have the handle's geometry and seed, else the error is a
// *MismatchError. If the filter in place has another geometry, replace it only
// while its writers are stopped: a handle with the old geometry refuses to go
// on, but its Adds under way set bits at the old positions.
//
// To move to another geometry without downtime, do not use Replace:
//
//  1. Create the new filter under another key.
//  2. Have all writers add to the old filter and then to the new one ([AddIn],
//     one request), and take the old one's answer.
//  3. Load all items into the new filter.
//  4. Have all readers use the new filter, and all writers add to it before the
//     old one, and take its answer.
//  5. Have all writers add to the new filter alone. Then delete the old one.
//
// A Bare filter cannot be replaced, because nothing shows whose string is at
// its key: the error is a [*ConfigError].
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
	return r.Replace(ctx, f.body(l), f.moveConfig(opts).Moves, f.rec.inPlace)
}

// inPlace returns the header of the filter at the key if it is a plain one of
// another geometry, which may be replaced too. It looks at the key first,
// because the header word alone does not tell a filter from other data. err is
// why it was not replaced.
func (r *record) inPlace(ctx context.Context, err error) (header int64, _ error) {
	other, ok := fault.As[*MismatchError](err)
	if !ok || other.GotKind != KindFilter || other.Got.isTable() {
		return 0, err
	}
	e, err := r.readState(ctx, false)
	switch {
	case fault.Is(err, ErrNotFound): // it was deleted in the meantime
		return r.Header, nil
	case err != nil:
		return 0, r.Failed(err)
	}
	header = int64(e.header.word())
	if e.header.kind != KindFilter || e.header.geometry(0).isTable() {
		return 0, r.Learn(header)
	}
	return header, nil
}

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
