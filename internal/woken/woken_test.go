package woken_test

import (
	"context"
	"slices"
	"testing"

	"github.com/upbloom/upbloom/internal/woken"
)

// TestUp: who goes on gets which number. Up and Among do nothing outside of
// such tests.
func TestUp(t *testing.T) {
	ctx := context.Background()
	woken.Up(ctx)
	woken.Up(woken.Among(ctx, 3))
	var got []int
	ctx = woken.With(ctx, func(number int) { got = append(got, number) })
	woken.Up(ctx)
	woken.Up(woken.Among(ctx, 3))
	woken.Up(ctx)
	if !slices.Equal(got, []int{0, 3, 0}) {
		t.Errorf("went on with the numbers %v", got)
	}
}
