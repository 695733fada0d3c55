package bloom

import (
	"context"
	"slices"

	"github.com/upbloom/upbloom/upstash"
)

// sendPart sends one request of a batch and notes what came of it.
func (b *batch) sendPart(ctx context.Context, p *part) {
	if b.adding {
		write(ctx, p.q.self[:])
		b.tookAdds(p)
	} else {
		lookUp(ctx, p.q.self[:])
		b.tookReads(p)
	}
	b.drop(p)
}

// drop answers the items that waited for those of p, and frees p.
func (b *batch) drop(p *part) {
	b.mu.Lock()
	b.flying = slices.DeleteFunc(b.flying, func(other *part) bool { return other == p })
	b.mu.Unlock()
	// Nothing is appended to p.same any more. The second of equal items is
	// seen, so that its answer stays false.
	for _, s := range p.same {
		b.states[s.item] = b.states[s.first]
		if b.states[s.first] == ItemUncertain {
			b.states[s.item] = ItemDone // it follows itself: seen, for certain
		}
	}
	p.q.free()
}

// tookAdds notes the answers of a part of an AddAll.
func (b *batch) tookAdds(p *part) {
	q := p.q
	if q.wrote.ok {
		b.mu.Lock()
		b.wrote.ok = true
		b.wrote.items += q.wrote.items
		b.wrote.newItems += q.wrote.newItems
		b.wrote.newOnes += q.wrote.newOnes
		b.mu.Unlock()
	}
	if q.wrote.ok && b.parts && b.h.rec.headed() && b.isRecreated(q.wrote.birth) {
		b.lost()
		b.fail(ErrRecreated, true)
	}
	switch {
	case q.wrote.uncertain():
		b.mark(p, ItemUncertain)
		b.fail(q.err, false)
		return
	case !q.wrote.ok:
		if is(q.err, ErrNotFound) {
			b.lost()
		}
		b.mark(p, stateAfterAdd(q))
		b.fail(q.err, true)
		return
	}
	for n, i := range p.index {
		b.answers[i] = q.added[n]
	}
	b.mark(p, ItemDone)
	if q.err != nil {
		b.fail(q.err, true)
	}
}

// isRecreated compares the birth numbers that the parts found.
func (b *batch) isRecreated(birth int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == 0 {
		b.seen = birth
	}
	return b.seen != birth
}

// lost notes that the filter went away: what a part added before is not in it.
func (b *batch) lost() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = true
}

// stateAfterAdd is what is known of the items of a part that failed. If the last
// attempt met another filter, its items are not in ours; but an earlier attempt
// may have put them into ours.
func stateAfterAdd(q *request) ItemState {
	_, answered := as[*upstash.Error](q.err)
	switch {
	case upstash.SafeToRetry(q.err):
		return ItemNotDone
	case q.wrote.maybeRepeated, answered:
		return ItemUnknown
	case isForeign(q.err), is(q.err, ErrNotFound):
		return ItemNotDone
	}
	return ItemUnknown
}

// tookReads notes the answers of a part of an ExistsAll. After a look-up that
// failed, the items are not done, except those that were found all the same.
func (b *batch) tookReads(p *part) {
	q := p.q
	err := q.err
	if err != nil {
		err = b.h.missing(err)
	}
	for n, i := range p.index {
		found := n < len(q.found) && q.found[n]
		b.answers[i] = found
		if found || err == nil {
			b.states[i] = ItemDone
		}
	}
	if err != nil {
		b.fail(err, true)
	}
}

func (b *batch) mark(p *part, state ItemState) {
	for _, i := range p.index {
		b.states[i] = state
	}
}

// fail keeps the first error that matters. After a fatal one no more parts are
// started; those under way end by themselves.
func (b *batch) fail(err error, fatal bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil || fatal && !b.fatal || err == ErrRecreated {
		b.err = err
	}
	b.fatal = b.fatal || fatal
}

func (b *batch) stopped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fatal
}

// result is the answers and what went wrong. If the filter went away, it is not
// known which parts ran before that and which after.
func (b *batch) result() ([]bool, error) {
	if b.err == nil {
		return b.answers, nil
	}
	if b.gone {
		for i, s := range b.states {
			if s != ItemNotDone {
				b.states[i], b.answers[i] = ItemUnknown, false
			}
		}
	}
	return b.answers, &BatchError{Items: b.states, Err: b.err}
}
