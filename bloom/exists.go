package bloom

import (
	"context"
	"errors"
)

// Exists reports whether the item is in the filter. False means that it was
// never added to the live filter; true means that it was, or that it is one of
// the false positives, of which Config.FPRate is the share.
//
// It is one request and one billed command. A filter that is not there is
// ErrNotFound and not a "no", unless Config.MissingIsEmpty says so; one that
// was made with another Config is a *MismatchError. Config.Reads says which
// copy of a global database is asked.
func (f *Filter) Exists(ctx context.Context, item string) (bool, error) {
	ctx = f.rec.label(ctx, "bloom.Exists")
	return f.exists(ctx, item, nil)
}

func (f *Filter) exists(ctx context.Context, item string, l learner) (bool, error) {
	q := newRequest(&f.rec).single(item)
	defer q.free()
	q.learner = l
	q.beginRead()
	q.getItem(item)
	lookUp(ctx, q.self[:])
	if len(q.found) > 0 && q.found[0] {
		return true, nil
	}
	return false, f.missing(q.err)
}

// missing turns ErrNotFound into an empty filter if the Config wants that.
func (f *Filter) missing(err error) error {
	if f.cfg.MissingIsEmpty && errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
