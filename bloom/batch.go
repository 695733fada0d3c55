package bloom

import (
	"context"

	"github.com/upbloom/upbloom/bloom/internal/engine"
)

// AddAll adds items and reports for each whether it was new, as if they had
// been added one after another: of equal ones only the first can be new.
//
// It sends as few requests as [Config.BatchBytes] allows, each one billed
// command (with [Config.MustExist] a script, of three or more), and up to
// [Config.BatchParallel] of them at once. 1,000 items at 1 in 100 take about
// 100 KB, so one request carries about 10,000. Without items it sends nothing.
// Beside the items it needs two bytes an item, and a few megabytes for each
// request under way.
//
// If a request fails, the error is a [*BatchError]. It says what is known of
// each item, and the answers of the items that are done come with it. If the
// filter vanishes between two requests, the BatchError wraps [ErrRecreated],
// [ErrNotFound] with Config.MustExist, or the error of the other data at its
// key. All items that were sent are then [ItemUnknown]. It is the birth number
// that shows this: it does not show acknowledged writes that the database lost
// between two requests.
func (f *Filter) AddAll(ctx context.Context, items []string) ([]bool, error) {
	ctx = f.rec.Label(ctx, "bloom.AddAll")
	return f.addAll(ctx, items, nil)
}

func (h *handle) addAll(ctx context.Context, items []string, o engine.Observer) ([]bool, error) {
	if len(items) == 0 {
		return nil, nil
	}
	if err := h.rec.MayWrite(); err != nil {
		return nil, err
	}
	return h.run(ctx, h.newBatch(items, true, o))
}

func (h *handle) removeAll(ctx context.Context, items []string) ([]bool, error) {
	if len(items) == 0 {
		return nil, nil
	}
	if err := h.rec.MayWrite(); err != nil {
		return nil, err
	}
	b := h.newBatch(items, true, nil)
	b.Removing = true
	return h.run(ctx, b)
}

// ExistsAll reports for each item whether it is in the filter, with the
// promises of Exists and the requests of AddAll. 1,000 items at 1 in 100 take
// about 50 KB. Each answer is that of Exists at a moment of the call: if a
// Replace comes between two requests, some are of the old filter.
func (f *Filter) ExistsAll(ctx context.Context, items []string) ([]bool, error) {
	ctx = f.rec.Label(ctx, "bloom.ExistsAll")
	return f.existsAll(ctx, items, nil)
}

func (h *handle) existsAll(ctx context.Context, items []string, o engine.Observer) ([]bool, error) {
	if len(items) == 0 {
		return nil, nil
	}
	return h.run(ctx, h.newBatch(items, false, o))
}

// newBatch makes the batch of items that all go to the handle's record.
func (h *handle) newBatch(items []string, adding bool, o engine.Observer) *engine.Batch {
	b := &engine.Batch{
		Lanes: make([]engine.Lane, 1), Items: items, Observer: o, Adding: adding,
		Bytes: h.batchBytes(), Parallel: h.batchParallel(), Missing: h.allowMissing,
	}
	b.Lanes[0].Rec = &h.rec.Record
	return b
}

// run runs a batch.
func (h *handle) run(ctx context.Context, b *engine.Batch) ([]bool, error) {
	b.Run(ctx)
	if b.Adding {
		h.notify(ctx, b.Wrote)
	}
	if b.Err == nil {
		return b.Answers, nil
	}
	return b.Answers, &BatchError{Items: statesOf(b), Err: b.Err, reads: !b.Adding}
}

// statesOf returns what is known of the items of a batch.
func statesOf(b *engine.Batch) []ItemState {
	states := make([]ItemState, len(b.States))
	for i, s := range b.States {
		states[i] = ItemState(s)
	}
	return states
}
