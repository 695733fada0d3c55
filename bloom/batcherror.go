package bloom

import (
	"fmt"
	"strconv"

	"github.com/upbloom/upbloom/upstash"
)

// ItemState is what is known of one item after a batch that failed. The zero
// value is ItemNotDone.
type ItemState uint8

const (
	// ItemNotDone: the item was not sent or was refused, so that the filter is
	// as before; or its look-up brought no answer.
	ItemNotDone ItemState = iota
	// ItemDone: the item's answer holds.
	ItemDone
	// ItemUncertain: the item is in, but whether it was new is not known.
	ItemUncertain
	// ItemUnknown: the item may have been added, and has no answer.
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

// BatchError is returned by AddAll, AddSeq and ExistsAll if one of their requests
// failed. To call again with the items that are not done is harmless, but an
// item whose state is unknown may then answer "seen". It is plain data.
type BatchError struct {
	// Items has the state of each item of the batch, by its index.
	Items []ItemState
	// Err is the first failure. It is reached by errors.Is and errors.As.
	Err error
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
	return text + ": " + e.Err.Error()
}

// SafeToRetry reports whether certainly nothing of the batch was done, so that a
// second call takes no new item for a seen one. It is what upstash.SafeToRetry
// returns for the error.
func (e *BatchError) SafeToRetry() bool {
	return e.Count(ItemNotDone) == len(e.Items) && upstash.SafeToRetry(e.Err)
}

// Unwrap returns the first failure.
func (e *BatchError) Unwrap() error { return e.Err }

// InFilter reports whether all items of an Add or AddAll that returned err are
// in the filter: true for nil, and for an error that only says that new or
// seen is not known, or that the TTL is not set. It is for a caller that only
// records what it did, and does not ask whether that was new.
func InFilter(err error) bool {
	if batch, ok := as[*BatchError](err); ok {
		return batch.Count(ItemDone)+batch.Count(ItemUncertain) == len(batch.Items)
	}
	if _, ok := as[takenError](err); ok {
		return false
	}
	if _, ok := as[*copiesError](err); ok {
		return false
	}
	resent, ok := as[*resentError](err)
	return err == nil || is(err, ErrUncertain) || is(err, ErrNoTTL) || ok && resent.in
}
