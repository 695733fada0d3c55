package bloom

import (
	"context"
	"iter"
)

// AddResult is what an AddSeq did. It is plain data.
type AddResult struct {
	// Items is how many items of the sequence are in, counted from its start,
	// equal ones again: to go on after an error, skip as many.
	Items uint64
	// New is how many of them were new.
	New uint64
}

// AddSeq adds the items of a sequence of any length, as AddAll does and at its
// cost, in rounds of as many items as Config.BatchParallel requests carry: it
// holds no more than one round in memory. MoveProgress is called with the
// number of items added, and -1 for their total. For a million items, Load is
// an order of magnitude faster, and does not know which were new.
//
// If a round fails, the error is its *BatchError: its Items are those of the
// round, which begins at AddResult.Items in the sequence, and
// BatchError.Remaining returns those that are not certainly in. But if the
// filter went away between two requests, the error is ErrRecreated, or
// ErrNotFound with Config.MustExist, and AddResult is zero: begin again.
func (f *Filter) AddSeq(ctx context.Context, items iter.Seq[string], opts ...MoveOption) (AddResult, error) {
	ctx = f.rec.label(ctx, "bloom.AddSeq")
	c := f.moveConfig(opts)
	var result AddResult
	round := make([]string, 0, f.batchParallel()*max(1, f.batchBytes()/f.rec.itemBytes(true)))
	var birth int64 // of the filter that the rounds before went into
	add := func() error {
		if len(round) == 0 {
			return nil
		}
		if err := f.rec.mayWrite(); err != nil {
			return err
		}
		b := f.newAddBatch(round, nil)
		// Whatever the round's size, the next one compares its birth number.
		b.parts, b.seen = true, birth
		added, err := b.run(ctx)
		if b.gone {
			result = AddResult{}
			return b.err
		}
		if err != nil {
			return err
		}
		birth = b.seen
		for _, isNew := range added {
			if isNew {
				result.New++
			}
		}
		result.Items += uint64(len(round))
		round = round[:0]
		if c.progress != nil {
			c.progress(int64(result.Items), -1)
		}
		return nil
	}
	for item := range items {
		if round = append(round, item); len(round) < cap(round) {
			continue
		}
		if err := add(); err != nil {
			return result, err
		}
	}
	err := add()
	return result, err
}

// Remaining returns those of items, the batch that failed, which are not
// certainly in: to add them again is harmless, but those that were unknown may
// then answer "seen". It returns all of items if their number is another than
// the batch's.
func (e *BatchError) Remaining(items []string) []string {
	if len(items) != len(e.Items) {
		return items
	}
	var out []string
	for i, s := range e.Items {
		if s == ItemNotDone || s == ItemUnknown {
			out = append(out, items[i])
		}
	}
	return out
}
