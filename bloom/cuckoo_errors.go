package bloom

import (
	"fmt"

	"github.com/upbloom/upbloom/bloom/internal/fault"
)

// A fullError is ErrFull about one item of a request, none of which was added.
type fullError struct {
	item, items int  // its index, and how many there were
	copies      bool // its places hold nothing but copies of it
	slots       int  // of a bucket
}

func (e *fullError) Error() string {
	which := "the item"
	if e.items > 1 {
		which = fmt.Sprintf("item %d of %d in a request", e.item+1, e.items)
	}
	if e.copies {
		return fmt.Sprintf("bloom: %s is in the cuckoo filter as often as it can be, about %d times, and"+
			" nothing was added: remove it as often as you add it", which, 2*e.slots)
	}
	return fmt.Sprintf("%v (no place for %s)", ErrFull, which)
}

func (e *fullError) Is(target error) bool { return target == ErrFull }
func (e *fullError) SafeToRetry() bool    { return true }

// A copiesError is ErrUncertain of a write to a Cuckoo. It is not known whether
// the write has run, and running it twice is not the same as once.
type copiesError struct {
	err      error
	removing bool
}

func (e *copiesError) Error() string {
	if e.removing {
		return "bloom: it is not known whether a copy of the item was removed; to remove it again may" +
			" take another copy, or another item's: " + fault.WordsOf(e.err)
	}
	return "bloom: it is not known whether the item was added; to add it again may store a second" +
		" copy, which takes a second Remove: " + fault.WordsOf(e.err)
}

func (e *copiesError) Is(target error) bool { return target == ErrUncertain }
func (e *copiesError) Unwrap() error        { return e.err }
func (e *copiesError) SafeToRetry() bool    { return false }
