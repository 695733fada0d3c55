package bloom

import (
	"fmt"
	"strconv"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// ItemState is what is known of one item after a batch that failed. The zero
// value is [ItemNotDone].
type ItemState uint8

const (
	// ItemNotDone: the item was not sent or was refused, and the filter has what
	// it had before; or its look-up brought no answer.
	ItemNotDone = ItemState(engine.NotDone)
	// ItemDone: the item's answer holds.
	ItemDone = ItemState(engine.Done)
	// ItemUncertain: the item is in, but whether it was new is not known.
	ItemUncertain = ItemState(engine.Uncertain)
	// ItemUnknown: the item may have been added or removed, and has no answer.
	ItemUnknown = ItemState(engine.Unknown)
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
// that items may not have been new, or that the TTL is not set. Use it if you
// only record items, and do not ask whether they are new.
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
	return err == nil || fault.Is(err, ErrUncertain) || fault.Is(err, ErrNoTTL)
}
