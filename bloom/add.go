package bloom

import "context"

// Add puts an item into the filter and reports whether it was new: true if it
// was certainly never added to the live filter before, false if it was, or if
// it is a false positive. Add creates the filter if there is none, unless
// [Config.MustExist] is set.
//
// It is one request and one billed command (three with MustExist), for a new
// handle too. If [Config.TTL] is set and the Add makes the filter, one more
// request sets the TTL. In a Bare filter with a TTL, an EXPIRE follows the
// first Add of each handle.
//
// After [ErrUncertain] the item is in; whether it was new is unknown. If Add
// returns true with an error, the item was new and is in, but the filter has no
// TTL yet. If the key holds something else, the error is a [*MismatchError] or
// [ErrNotFilter], and the command has set the item's bits there: the package's
// doc says what that harms, under "Errors and retry safety". After any other
// error the item may or may not be in. Adding it again is harmless, but may
// then answer "seen". The empty string is an item as any other: check that an
// id is there.
func (f *Filter) Add(ctx context.Context, item string) (added bool, err error) {
	ctx = f.rec.label(ctx, "bloom.Add")
	return f.add(ctx, item, nil)
}

func (h *handle) add(ctx context.Context, item string, o *mirrorCall) (added bool, err error) {
	return h.writeOne(ctx, item, o, false)
}

// writeOne adds an item, or removes it if the shape can do that.
func (h *handle) writeOne(ctx context.Context, item string, o *mirrorCall, removing bool) (bool, error) {
	if err := h.rec.mayWrite(); err != nil {
		return false, err
	}
	q := newRequest(&h.rec).single(item)
	defer q.free()
	q.observer, q.removing = o, removing
	q.aim(ctx, true)
	q.beginWrite(newBirth(), false)
	q.setItem(item)
	write(ctx, q.self[:])
	if !q.wrote.ok || q.wrote.uncertain() {
		return false, q.err
	}
	h.notify(ctx, q.wrote)
	return q.added[0], q.err
}
