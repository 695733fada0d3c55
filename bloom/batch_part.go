package bloom

import (
	"context"
	"errors"
	"fmt"

	"github.com/upbloom/upbloom/upstash"
)

// sendPart sends one request of a batch and notes what came of it.
func (b *batch) sendPart(ctx context.Context, s *scratch, part []int) {
	defer putScratch(s)
	err := b.send(ctx, s, part)
	if err == nil {
		return
	}
	state := b.stateAfter(err)
	for _, i := range part {
		if b.states[i] == ItemNotDone {
			b.states[i] = state
		}
	}
	b.fail(err, state != ItemUncertain)
}

// stateAfter tells what is known of the items of a part that failed. A look-up
// leaves them as they were, and what went into another filter is not in ours.
func (b *batch) stateAfter(err error) ItemState {
	switch {
	case errors.Is(err, ErrUncertain):
		return ItemUncertain
	case !b.adding, isForeign(err), upstash.SafeToRetry(err):
		return ItemNotDone
	}
	return ItemUnknown
}

func (b *batch) sendAdd(ctx context.Context, s *scratch, part []int) error {
	w, err := b.f.write(ctx, s)
	if len(w.old) == 0 {
		return err
	}
	if w.uncertain() {
		if err != nil {
			return fmt.Errorf("%w; %w", ErrUncertain, err)
		}
		return ErrUncertain
	}
	b.answer(part, func(bits []upstash.NullInt64) bool { return !allSet(bits) }, w.old)
	return err
}

func (b *batch) sendExists(ctx context.Context, s *scratch, part []int) error {
	bits, err := b.f.read(ctx, s)
	if err != nil {
		if err = b.f.missing(err); err != nil {
			return err
		}
		// All answers stay false: the Config takes a missing filter for empty.
		for _, i := range part {
			b.states[i] = ItemDone
		}
		return nil
	}
	b.answer(part, allSet, bits)
	return nil
}

// answer gives each item of a part what its k bits say.
func (b *batch) answer(part []int, judge func([]upstash.NullInt64) bool, bits []upstash.NullInt64) {
	k := b.f.geo.Hashes
	for n, i := range part {
		b.answers[i] = judge(bits[n*k : (n+1)*k])
		b.states[i] = ItemDone
	}
}

// copySame answers the duplicates: of an added item the second is seen, of an
// item that was looked up it is the same.
func (b *batch) copySame() {
	for _, s := range b.same {
		b.states[s.item] = b.states[s.first]
		if b.adding && b.states[s.first] == ItemUncertain {
			b.states[s.item] = ItemDone // it follows itself: seen, for certain
		}
		b.answers[s.item] = !b.adding && b.answers[s.first]
	}
}

// fail keeps the first error that matters. After a fatal one no more parts are
// started; those under way end by themselves.
func (b *batch) fail(err error, fatal bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil || fatal && !b.fatal {
		b.err = err
	}
	b.fatal = b.fatal || fatal
}

func (b *batch) stopped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fatal
}

func (b *batch) result() ([]bool, error) {
	if b.err == nil {
		return b.answers, nil
	}
	return b.answers, &BatchError{Items: b.states, Err: b.err}
}
