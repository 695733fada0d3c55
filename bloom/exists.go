package bloom

import (
	"context"

	"github.com/upbloom/upbloom/bloom/internal/engine"
)

// Exists reports whether the item is in the filter. If it returns false without
// an error, the item was never added to the live filter. If it returns true,
// the item was added, or is a false positive; [Config.FPRate] is the share of
// those.
//
// It is one request and one billed command; [ReadsNearestFirst] may need a
// second. A missing filter is [ErrNotFound] and not a "no", unless
// [Config.MissingIsEmpty] is set. A filter made with another [Config] is a
// [*MismatchError]. [Config.Reads] says which copy of a global database is
// asked; by default a full one refuses: see [Reads].
func (f *Filter) Exists(ctx context.Context, item string) (bool, error) {
	ctx = f.rec.Label(ctx, "bloom.Exists")
	return f.exists(ctx, item, nil)
}

func (h *handle) exists(ctx context.Context, item string, o engine.Observer) (bool, error) {
	found, err := h.rec.Read(ctx, item, engine.Call{Observer: o})
	if found {
		return true, nil
	}
	return false, h.allowMissing(err)
}
