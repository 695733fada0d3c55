package bloom

import (
	"errors"
	"fmt"
	"testing"
)

func TestInFilter(t *testing.T) {
	other := errors.New("other")
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, true},
		{ErrUncertain, true},
		{&ttlError{other}, true},
		{fmt.Errorf("%w; %w", ErrUncertain, &ttlError{other}), true},
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
