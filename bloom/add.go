package bloom

import (
	"context"
)

// Add puts an item into the filter and reports whether it was new: true if it
// was certainly never added to the live filter before, false if it was, or if
// it is one of the false positives. The filter is created if there is none,
// unless Config.MustExist is set.
//
// It is one request and one billed command, for any handle. If Config.TTL is
// set, the Add that makes the filter is followed by one more request, which
// sets the TTL. In a Bare filter with a TTL, each handle's first Add is
// followed by an EXPIRE.
//
// A *MismatchError or ErrNotFilter means that the key holds something else.
// That is found out by the same command that sets the item's bits, so that
// another filter may then have k more bits set and a longer string; no "no" of
// its becomes wrong. A string that is no filter may have its first 16 bytes
// changed as well: filters want keys of their own. The handle refuses to write
// from then on, without a request, until Exists or Create finds the key free or
// holding its own filter.
//
// ErrUncertain means that the item is in, but that new or seen is not known.
// True with an error means that it was new and is in, but that the filter has
// no TTL yet. After any other error the item may or may not be in; to add it
// again is harmless, but may then answer "seen".
func (f *Filter) Add(ctx context.Context, item string) (added bool, err error) {
	ctx = f.rec.label(ctx, "bloom.Add")
	return f.add(ctx, item, nil)
}

func (f *Filter) add(ctx context.Context, item string, l learner) (added bool, err error) {
	if err := f.rec.mayWrite(); err != nil {
		return false, err
	}
	q := newRequest(&f.rec).single(item)
	defer q.free()
	q.learner = l
	q.beginWrite(newBirth(), false)
	q.setItem(item)
	write(ctx, q.self[:])
	if !q.wrote.ok || q.wrote.uncertain() {
		return false, q.err
	}
	added, err = q.added[0], q.err
	f.watchFill(ctx, q.wrote)
	return added, err
}
