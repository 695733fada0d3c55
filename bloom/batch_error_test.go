package bloom

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/engine"
)

func TestInFilter(t *testing.T) {
	other := errors.New("other")
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, true},
		{ErrUncertain, true},
		{&engine.TTLError{Err: other}, true},
		{fmt.Errorf("%w; %w", ErrUncertain, &engine.TTLError{Err: other}), true},
		{ErrNotFound, false},
		{other, false},
		{&BatchError{Items: []ItemState{ItemDone, ItemUncertain}, Err: ErrUncertain}, true},
		// The first failure is harmless, but a later one was not.
		{&BatchError{Items: []ItemState{ItemUncertain, ItemUnknown}, Err: ErrUncertain}, false},
		{&BatchError{Items: []ItemState{ItemDone, ItemNotDone}, Err: other}, false},
	} {
		if got := InFilter(c.err); got != c.want {
			t.Errorf("InFilter(%v) = %v, want %v", c.err, got, c.want)
		}
	}
}

// Remaining of another batch's items is all of them: an item too much is
// harmless, one too few is lost.
func TestRemainingOfAnotherBatch(t *testing.T) {
	e := &BatchError{Items: []ItemState{ItemDone, ItemNotDone}}
	for _, tt := range []struct{ items, want []string }{
		{[]string{"a", "b"}, []string{"b"}},
		{[]string{"a"}, []string{"a"}},
		{[]string{"a", "b", "c"}, []string{"a", "b", "c"}},
		{nil, nil},
	} {
		if got := e.Remaining(tt.items); !slices.Equal(got, tt.want) {
			t.Errorf("Remaining(%q) = %q, want %q", tt.items, got, tt.want)
		}
	}
}
