package bloom

import (
	"context"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

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
