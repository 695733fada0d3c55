package bloom

import (
	"context"

	"github.com/upbloom/upbloom/bloom/internal/engine"
)

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
	ctx = f.rec.Label(ctx, "bloom.Add")
	return f.add(ctx, item, nil)
}

func (h *handle) add(ctx context.Context, item string, o engine.Observer) (added bool, err error) {
	return h.writeOne(ctx, item, o, false)
}

// writeOne adds an item, or removes it if the shape can do that.
func (h *handle) writeOne(ctx context.Context, item string, o engine.Observer, removing bool) (bool, error) {
	added, wrote, err := h.rec.Write(ctx, item, engine.Call{Observer: o, Removing: removing})
	if !wrote.Uncertain {
		h.notify(ctx, wrote)
	}
	return added, err
}
