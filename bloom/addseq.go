package bloom

import (
	"context"
	"fmt"
	"iter"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// AddResult is what [Filter.AddSeq] or [Local.AddSeq] did. It is plain data.
type AddResult struct {
	// Items is how many items of the sequence are in, counted from its start;
	// equal items count each time. To go on after an error, skip so many.
	Items uint64
	// New is how many items were certainly new, those of a failed round too.
	New uint64
	// Uncertain is how many of Items may have been new as well: an attempt to
	// add them got no answer, and a later one found them.
	Uncertain uint64
}

// AddSeq adds the items of a sequence of any length, as [Filter.AddAll] does
// and at its cost. It works in rounds, and holds one round in memory: as many
// items as [Config.BatchParallel] requests carry. The function of
// [MoveProgress] is called with the number of items added, and -1 for their
// total. For a million items, [Filter.Load] is an order of magnitude faster,
// but does not know which were new.
//
// A lost answer ends nothing: if items may have been new, AddSeq counts them in
// [AddResult.Uncertain] and goes on. At the end of the sequence the error is
// then [ErrUncertain], and [InFilter] returns true for it.
//
// If a round fails, AddSeq reads no further items. The error is a [*BatchError]
// about the items of this round alone, and InFilter returns false for it. The
// round begins at [AddResult.Items] in the sequence, and
// [BatchError.Remaining] returns those of its items that are not certainly in.
// If the filter went away between two requests, the error is [ErrRecreated],
// [ErrNotFound] with [Config.MustExist], or that of the other data at its key.
// [AddResult] is then zero: begin again.
func (f *Filter) AddSeq(ctx context.Context, items iter.Seq[string], opts ...MoveOption) (AddResult, error) {
	ctx = f.rec.Label(ctx, "bloom.AddSeq")
	c := f.moveConfig(opts)
	var result AddResult
	part := min(max(1, f.batchBytes()/f.rec.Items.ItemBytes(true)), engine.MaxPartItems)
	most := uint64(part) * uint64(min(f.batchParallel(), engine.MaxPartItems))
	var round []string
	var birth int64 // of the filter of the earlier rounds
	var unsure error
	add := func() error {
		if len(round) == 0 {
			return nil
		}
		if err := f.rec.MayWrite(); err != nil {
			if result.Items > 0 { // the handle has met other data since
				result, err = AddResult{}, fault.MayHaveRun(err)
			}
			return err
		}
		b := f.newBatch(round, true, nil)
		// Every round compares its birth number with that of the rounds before.
		filter := &b.Lanes[0]
		b.Split, filter.Birth = true, birth
		added, err := f.run(ctx, b)
		if filter.Gone {
			unchanged := result.Items == 0 && upstash.SafeToRetry(err)
			if result = (AddResult{}); unchanged {
				return b.Err
			}
			return fault.MayHaveRun(b.Err)
		}
		for _, isNew := range added {
			if isNew {
				result.New++
			}
		}
		if failed, ok := fault.As[*BatchError](err); ok {
			if b.Fatal {
				failed.more, failed.later = true, result.Items > 0
				return err
			}
			result.Uncertain += uint64(failed.Count(ItemUncertain))
			unsure = failed.Err
		}
		birth = filter.Birth
		result.Items += uint64(len(round))
		round = round[:0]
		if c.Progress != nil {
			c.Progress(int64(result.Items), -1)
		}
		return nil
	}
	for item := range items {
		if round = append(round, item); uint64(len(round)) < most {
			continue
		}
		if err := add(); err != nil {
			return result, err
		}
	}
	err := add()
	if err == nil && unsure != nil {
		err = &uncertainError{result, unsure}
	}
	return result, err
}

// uncertainError is the error of an AddSeq that has added the whole sequence.
type uncertainError struct {
	result AddResult
	err    error
}

func (e *uncertainError) Error() string {
	return fmt.Sprintf("bloom: %d of %d items done, %d %v: %s", e.result.Items-e.result.Uncertain,
		e.result.Items, e.result.Uncertain, ItemUncertain, fault.WordsOf(e.err))
}

func (e *uncertainError) Unwrap() error     { return e.err }
func (e *uncertainError) SafeToRetry() bool { return false }

// Remaining takes the items of the failed batch, and returns those not
// certainly in. Adding them again is harmless, but an item whose state was
// unknown may then answer "seen", and a [Cuckoo] may store a second copy of it.
// If the number of items is not the batch's, Remaining returns all of them.
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
