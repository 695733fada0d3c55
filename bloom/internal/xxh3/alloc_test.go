//go:build !race

package xxh3

import "testing"

func TestAllocations(t *testing.T) {
	for _, n := range []int{20, 200, 2000} {
		b := noise(n)
		s := string(b)
		each := testing.AllocsPerRun(100, func() {
			Sum128(s, 7)
			Sum64(b)
			var h Hasher
			_, _ = h.Write(b)
			h.Sum64()
		})
		if each != 0 {
			t.Errorf("%d bytes: %v allocations", n, each)
		}
	}
}
