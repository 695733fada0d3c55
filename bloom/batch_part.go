package bloom

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/internal/woken"
	"github.com/upbloom/upbloom/upstash"
)

// sendPart sends one request of a batch and notes what came of it.
func (b *batch) sendPart(ctx context.Context, p *part) {
	reqs := make([]*engine.Request, len(p.pieces))
	for i := range p.pieces {
		reqs[i] = p.pieces[i].q
	}
	if b.adding {
		engine.WriteAll(ctx, reqs)
	} else {
		engine.ReadAll(ctx, reqs)
	}
	if ctx.Err() != nil {
		woken.Up(ctx) // it has ended the other parts too
	}
	for i := range p.pieces {
		if b.adding {
			b.tookAdds(&p.pieces[i])
		} else {
			b.tookReads(&p.pieces[i])
		}
	}
	b.finish(p)
}

// finish answers the items waiting for those of p, and frees p.
func (b *batch) finish(p *part) {
	b.mu.Lock()
	b.flying = slices.DeleteFunc(b.flying, func(other *part) bool { return other == p })
	b.mu.Unlock()
	// Nothing is appended to p.same any more. The second of equal items is
	// seen: its answer stays false.
	for _, s := range p.same {
		b.states[s.item] = b.states[s.first]
		if b.states[s.first] == ItemUncertain {
			b.states[s.item] = ItemDone // it follows itself: seen, for certain
		}
	}
	for _, c := range p.pieces {
		c.q.Free()
	}
}

// tookAdds notes the answers of one record to a part of an AddAll.
func (b *batch) tookAdds(c *piece) {
	q := c.q
	if q.Wrote.Applied {
		b.mu.Lock()
		b.wrote.Applied = true
		b.wrote.Items += q.Wrote.Items
		b.wrote.NewItems += q.Wrote.NewItems
		b.wrote.NewOnes += q.Wrote.NewOnes
		b.wrote.Area = q.Wrote.Area
		b.mu.Unlock()
	}
	if q.Wrote.Applied && b.split && b.h.rec.Headed() && b.isRecreated(c) {
		b.lost(c.lane)
		b.fail(c.lane, ErrRecreated, true)
	}
	if !q.Wrote.Applied {
		switch {
		case fault.Is(q.Err, ErrNotFound):
			b.lost(c.lane)
		case engine.IsForeign(q.Err):
			b.replaced(c.lane)
		}
		b.mark(c, stateAfterAdd(q))
		b.fail(c.lane, q.Err, true)
		return
	}
	for n, i := range c.index {
		b.answers[i], b.states[i] = q.Added[n], ItemDone
		if q.Uncertain[n] {
			b.states[i] = ItemUncertain
		}
	}
	if q.Err != nil {
		b.fail(c.lane, q.Err, !q.Wrote.Uncertain)
	}
}

// isRecreated compares the birth numbers found by the parts.
func (b *batch) isRecreated(c *piece) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &b.lanes[c.lane]
	if l.birth == 0 {
		l.birth = c.q.Wrote.Birth
	}
	return l.birth != c.q.Wrote.Birth
}

// lost notes that the filter went away: an earlier part's items are not in it.
func (b *batch) lost(lane int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lanes[lane].gone = true
}

// replaced notes that other data are at the key. If an earlier part met the
// filter, it is lost.
func (b *batch) replaced(lane int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lanes[lane].birth != 0 {
		b.lanes[lane].gone = true
	}
}

// stateAfterAdd is the state of the items of a failed part. If the last attempt
// met another filter, its items are not in ours; but an earlier attempt may
// have put them into ours.
func stateAfterAdd(q *engine.Request) ItemState {
	_, answered := fault.As[*upstash.Error](q.Err)
	step, ok := fault.As[*engine.StepError](q.Err)
	switch {
	case ok && (step.NotSent || step.Grew && upstash.SafeToRetry(step.Err)), upstash.SafeToRetry(q.Err):
		return ItemNotDone
	case q.Wrote.MaybeRepeated, answered:
		return ItemUnknown
	case engine.IsForeign(q.Err), fault.Is(q.Err, ErrNotFound):
		return ItemNotDone
	}
	return ItemUnknown
}

// tookReads notes the answers of one record to a part of an ExistsAll. After a
// failed look-up, the items are not done, except those found all the same.
func (b *batch) tookReads(c *piece) {
	q := c.q
	err := q.Err
	if err != nil {
		err = b.h.allowMissing(err)
	}
	for n, i := range c.index {
		found := n < len(q.Found) && q.Found[n]
		b.answers[i] = found
		if found || err == nil {
			b.states[i] = ItemDone
		}
	}
	if err != nil {
		b.fail(c.lane, err, true)
	}
}

func (b *batch) mark(c *piece, state ItemState) {
	for _, i := range c.index {
		b.states[i] = state
	}
}

// fail keeps the first error of any weight. That of a part which was never sent
// does not explain the unknown items of another. After a fatal one no more is
// sent to the record; what is under way ends by itself.
func (b *batch) fail(lane int, err error, fatal bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, unsent := fault.As[*upstash.CallError](b.err)
	unsent = unsent && upstash.SafeToRetry(b.err) && !upstash.SafeToRetry(err)
	if b.err == nil || fatal && (!b.fatal || unsent) || err == ErrRecreated {
		if b.err = err; b.name != nil {
			b.err = b.name(lane, err)
		}
	}
	b.fatal = b.fatal || fatal
	if fatal {
		b.lanes[lane].stopped.Store(true)
	}
}

// stopped reports whether nothing more is sent to any record.
func (b *batch) stopped() bool {
	for i := range b.lanes {
		if !b.lanes[i].stopped.Load() {
			return false
		}
	}
	return true
}

// result returns the answers and the error. If a filter went away, nobody knows
// which parts ran before that and which after.
func (b *batch) result() ([]bool, error) {
	if b.err == nil {
		return b.answers, nil
	}
	for i, item := range b.items {
		if b.lanes[b.lane(item)].gone && b.states[i] != ItemNotDone {
			b.states[i], b.answers[i] = ItemUnknown, false
		}
	}
	return b.answers, &BatchError{Items: b.states, Err: b.err, reads: !b.adding}
}

// ItemState is what is known of one item after a batch that failed. The zero
// value is [ItemNotDone].
type ItemState uint8

const (
	// ItemNotDone: the item was not sent or was refused, and the filter has what
	// it had before; or its look-up brought no answer.
	ItemNotDone ItemState = iota
	// ItemDone: the item's answer holds.
	ItemDone
	// ItemUncertain: the item is in, but whether it was new is not known.
	ItemUncertain
	// ItemUnknown: the item may have been added or removed, and has no answer.
	ItemUnknown
)

// String returns the state in words.
func (s ItemState) String() string {
	switch s {
	case ItemNotDone:
		return "not done"
	case ItemDone:
		return "done"
	case ItemUncertain:
		return "uncertain"
	case ItemUnknown:
		return "unknown"
	}
	return "ItemState(" + strconv.Itoa(int(s)) + ")"
}

// MarshalText returns what String returns, for JSON and log/slog.
func (s ItemState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// BatchError is returned by AddAll, AddSeq, RemoveAll and ExistsAll if one of
// their requests failed. Calling again with the items not done is harmless, but
// an item whose state is unknown may then answer "seen". In a [Cuckoo] a second
// copy of such an item may be added or removed. It is plain data.
type BatchError struct {
	// Items has the state of each item of the batch, by its index.
	Items []ItemState
	// Err is the first failure; one that may have run goes before one that was
	// never sent. It is reached by errors.Is and errors.As.
	Err error

	reads bool // it is an ExistsAll's
	more  bool // it is an AddSeq's, whose sequence was not read to its end
	later bool // and earlier rounds have added items
}

// Count is the number of items in a state.
func (e *BatchError) Count(s ItemState) int {
	n := 0
	for _, state := range e.Items {
		if state == s {
			n++
		}
	}
	return n
}

// Error says how far the batch came, and the first failure.
func (e *BatchError) Error() string {
	text := fmt.Sprintf("bloom: %d of %d items done", e.Count(ItemDone), len(e.Items))
	for _, s := range []ItemState{ItemUncertain, ItemUnknown, ItemNotDone} {
		if n := e.Count(s); n > 0 {
			text += fmt.Sprintf(", %d %v", n, s)
		}
	}
	return text + ": " + fault.WordsOf(e.Err)
}

// SafeToRetry reports whether certainly nothing of the batch was done, nor of
// the earlier rounds of an AddSeq: a second call then takes no new item for a
// seen one. After ExistsAll it returns true, because look-ups change nothing.
// [upstash.SafeToRetry] returns the same for the error.
func (e *BatchError) SafeToRetry() bool {
	return e.reads || !e.later && e.Count(ItemNotDone) == len(e.Items) && upstash.SafeToRetry(e.Err)
}

// Unwrap returns the first failure.
func (e *BatchError) Unwrap() error { return e.Err }

// InFilter reports whether all items of an Add, AddAll or AddSeq that returned
// err are in the filter. It is true for nil. It is also true if err says only
// that items may not have been new, or that a later step failed: the TTL is not
// set, or a [Scalable] did not grow. Use it if you only record items, and do not
// ask whether they are new.
func InFilter(err error) bool {
	if batch, ok := fault.As[*BatchError](err); ok {
		return !batch.more && batch.Count(ItemDone)+batch.Count(ItemUncertain) == len(batch.Items)
	}
	if _, ok := fault.As[engine.TakenError](err); ok {
		return false
	}
	if _, ok := fault.As[*copiesError](err); ok {
		return false
	}
	if growth, ok := fault.As[*growthError](err); ok {
		return growth.in
	}
	step, ok := fault.As[*engine.StepError](err)
	return err == nil || fault.Is(err, ErrUncertain) || fault.Is(err, ErrNoTTL) || ok && step.InFilter
}
