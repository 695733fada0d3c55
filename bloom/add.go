package bloom

import (
	"context"
	"fmt"
)

// Add puts an item into the filter and reports whether it was new: true where
// it was certainly never added before, false where it was, or where it is one
// of the false positives. The filter is created where there is none.
//
// It is one request and one billed command. Where Config.TTL is set, a
// handle's first Add is one request and two commands, and an Add that finds
// the filter gone and makes it anew is followed by one more request, for its
// TTL.
//
// A *MismatchError or ErrNotFilter means that the key holds something else.
// That is found out by the same command that sets the item's bits, so that
// another filter may then have k more bits set and a longer string; it still
// gives no wrong "no". A string that is no filter may have its first 7 bytes
// changed as well: filters want keys of their own. The handle refuses to write
// from then on, without a request, until Exists or Create finds the key free or
// holding its own filter.
//
// ErrUncertain means that the item is in, but that new or seen is not known.
// True with an error means that it was new and is in, but that the filter has
// no TTL yet. After any other error the item may or may not be in; to add it
// again is harmless, but may then answer "seen".
func (f *Filter) Add(ctx context.Context, item string) (added bool, err error) {
	s := getScratch()
	defer putScratch(s)
	f.beginWrite(&s.cmd)
	f.setItem(s, item)
	w, err := f.write(ctx, s)
	if len(w.old) == 0 {
		return false, err
	}
	if w.uncertain() {
		if err != nil {
			return false, fmt.Errorf("%w; %w", ErrUncertain, err)
		}
		return false, ErrUncertain
	}
	return !allSet(w.old), err
}
