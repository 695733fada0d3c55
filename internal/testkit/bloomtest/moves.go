package bloomtest

import (
	"fmt"
	"iter"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/door"
)

// Mails returns the e-mail addresses from Mail(from) to Mail(to-1).
func Mails(from, to int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := from; i < to; i++ {
			if !yield(Mail(i)) {
				return
			}
		}
	}
}

// Mail returns the i-th address.
func Mail(i int) string { return fmt.Sprintf("user-%d@example.com", i) }

// Middling is a filter of 13 KB.
func Middling() bloom.Config { return bloom.Config{Capacity: 10_000, FPRate: 0.01} }

// InParts makes a filter of 13 KB travel in 7 parts, one after the other.
func InParts() bloom.MoveOption { return Parts(2000, 1) }

// Parts makes a filter travel in parts of so many bytes, so many at once.
func Parts(bytes, parallel int) bloom.MoveOption {
	return door.InParts(bytes, parallel).(bloom.MoveOption)
}

// Batched has a filter send requests of so many bytes in a batch, so many at
// once; 0 leaves its own number.
func Batched[F any](f F, bytes, parallel int) F {
	door.SetBatch(f, bytes, parallel)
	return f
}

// WantMails checks that all mails of a range are found.
func WantMails(t *testing.T, f *bloom.Filter, from, to int) {
	t.Helper()
	var items []string
	for m := range Mails(from, to) {
		items = append(items, m)
	}
	found, err := f.ExistsAll(t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
	if n := Count(found); n != to-from {
		t.Errorf("%d of %d items are found, want all", n, to-from)
	}
}

// LocalOf makes a Local of the size of f, with a range of mails.
func LocalOf(f *bloom.Filter, from, to int) *bloom.Local {
	l := bloom.NewLocal(f.Geometry())
	for m := range Mails(from, to) {
		l.Add(m)
	}
	return l
}
