package bloom

import (
	"context"

	"github.com/upbloom/upbloom/bloom/internal/fault"
)

// Create makes the filter with its whole string and its TTL. The string does
// not grow later: no later [Filter.Add] can make it too large for the database.
// Create reports whether it made the filter. If a filter of the same geometry
// was there, it returns false. If the key holds another filter, the error is a
// [*MismatchError], and [ErrNotFilter] if it holds other data. Create leaves
// both untouched.
//
// It is one request, a script: two billed commands if the filter is there, four
// if Create makes it, and one more if it has a TTL. If several clients create
// the same key at once, only one gets true: the birth number says which of them
// made the filter, also after a lost reply. Nobody gets true if that call ends
// in an error. A Bare filter has no birth number, and Create returns a
// [*ConfigError].
//
// If a later deployment gets true, the filter was gone: what had been added is
// "new" again.
//
// To fill a filter, do not rely on a true: the program may end before it acts on
// it, and until the end of the fill the filter says "no" about all that is not in
// yet. Make it by [Filter.Load] alone, of a handle without [Config.MustExist]. It
// is then there whole or not at all, and another Load after an error does no harm.
//
// Create is repeated after a lost reply. If others delete the filter between two
// attempts, the second makes it again, empty.
func (f *Filter) Create(ctx context.Context) (created bool, err error) {
	ctx = f.rec.Label(ctx, "bloom.Create")
	if !f.rec.Headed() {
		return false, fault.Untouched(configErrorf("Layout",
			"is bare: only a filter with a header can be created; just Add"))
	}
	return f.create(ctx, headerBits+f.rec.geo.Bits, 0)
}

// create makes a string of so many bits, with the kind's own word.
func (h *handle) create(ctx context.Context, bits uint64, word int64) (created bool, err error) {
	created, err = h.rec.Create(ctx, bits, word)
	if large, ok := fault.As[*RecordTooLargeError](err); ok {
		large.Bytes = (bits + 7) / 8
	}
	return created, err
}
