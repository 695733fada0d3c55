package cells

import (
	"math"
	"testing"
)

// TestAddMod: a sum of more than 2^64 is the right one, too.
func TestAddMod(t *testing.T) {
	const m = math.MaxUint64 - 58 // the largest prime below 2^64
	for _, tt := range []struct{ a, b, m, want uint64 }{
		{2, 4, 7, 6},
		{3, 4, 7, 0},
		{6, 6, 7, 5},
		{0, 0, 1, 0},
		{m - 1, m - 1, m, m - 2},
		{m - 1, 1, m, 0},
		{m / 2, m / 2, m, m - 1},
	} {
		if got := AddMod(tt.a, tt.b, tt.m); got != tt.want {
			t.Errorf("AddMod(%d, %d, %d) = %d, want %d", tt.a, tt.b, tt.m, got, tt.want)
		}
	}
}
