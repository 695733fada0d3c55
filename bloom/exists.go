package bloom

import "context"

// Exists reports whether the item is in the filter. False means that the item
// was never added to the live filter. True means that it was, or that it is a
// false positive; Config.FPRate is the share of those.
//
// It is one request and one billed command; ReadsNearestFirst may need a second.
// A missing filter is ErrNotFound and not a "no", unless Config.MissingIsEmpty
// is set. A filter that was made with another Config is a *MismatchError.
// Config.Reads says which copy of a global database is asked.
func (f *Filter) Exists(ctx context.Context, item string) (bool, error) {
	ctx = f.rec.label(ctx, "bloom.Exists")
	return f.exists(ctx, item, nil)
}

func (h *handle) exists(ctx context.Context, item string, o *mirrorCall) (bool, error) {
	q := newRequest(&h.rec).single(item)
	defer q.free()
	q.observer = o
	q.aim(ctx, false)
	q.beginRead()
	q.getItem(item)
	lookUp(ctx, q.self[:])
	if len(q.found) > 0 && q.found[0] {
		return true, nil
	}
	return false, h.allowMissing(q.err)
}
