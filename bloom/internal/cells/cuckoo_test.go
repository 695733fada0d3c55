package cells

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The other bucket of the other bucket is the first, and every product is an
// integer that Lua carries exactly.
func TestCuckooPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(2, 5).Draw(t, "k")
		buckets := rapid.Uint64Range(1, 81_037_115).Draw(t, "buckets")
		x, y := rapid.Uint64().Draw(t, "x"), rapid.Uint64().Draw(t, "y")
		fp, first, second := CuckooPlace(x, y, buckets, k)
		if fp < 1 || fp >= 1<<CuckooWidth(k) || first >= buckets || second >= buckets {
			t.Fatalf("fingerprint %d, buckets %d and %d of %d", fp, first, second, buckets)
		}
		if got := CuckooOther(fp, second, buckets); got != first {
			t.Fatalf("the other of the other is %d, not %d", got, first)
		}
		if fp > (1<<53-1)/cuckooFactor {
			t.Fatalf("%d times the factor is above 2^53", fp)
		}
	})
	if widest := uint64(1)<<CuckooWidth(2) - 1; widest*cuckooFactor >= 1<<53 {
		t.Errorf("the widest fingerprint, %d, overflows a Lua number", widest)
	}
}

func TestCuckooHas(t *testing.T) {
	// Five slots of ten bits: 7, 0, 7, 1023, 5, and three unused bits above
	// them.
	word := uint64(7) | 7<<20 | 1023<<30 | 5<<40 | 6<<50
	for fp, want := range map[uint64]bool{7: true, 0: true, 1023: true, 5: true, 1: false, 6: false, 28: false} {
		if got := CuckooHas(word, fp, 5); got != want {
			t.Errorf("fingerprint %d is there: %v, want %v", fp, got, want)
		}
	}
}

func TestCuckooSize(t *testing.T) {
	const n = 1_000_000
	for _, c := range []struct {
		p, bitsAnItem float64
		slots         int
	}{
		{0.5, 11.16, 5},
		{0.01, 11.16, 5},
		{10.0 / 1024, 11.16, 5},
		{math.Nextafter(10.0/1024, 0), 14.1, 4},
		{0.001, 14.1, 4},
		{1e-4, 19.41, 3},
		{1e-6, 31.55, 2},
		{MinCuckooRate, 31.55, 2},
	} {
		m, k, ok := CuckooSize(n, c.p)
		if got := float64(m) / n; !ok || k != c.slots || math.Abs(got-c.bitsAnItem) > 0.01*c.bitsAnItem {
			t.Errorf("p=%v: %.2f bits an item and %d slots, want %v and %d", c.p, got, k, c.bitsAnItem, c.slots)
		}
		if got := CuckooCapacity(m/WordBits, k); got < n || got > n+5 {
			t.Errorf("p=%v: a capacity of %d, want %d", c.p, got, n)
		}
	}
	if _, _, ok := CuckooSize(n, MinCuckooRate/2); ok {
		t.Error("a rate below the lowest is accepted")
	}
	for n, want := range map[uint64]bool{1 << 63 / 100: true, 1<<63/100 + 1: false, 1 << 58: false, 1 << 63: false} {
		if _, _, ok := CuckooSize(n, 0.01); ok != want {
			t.Errorf("%d items: %v, want %v", n, ok, want)
		}
	}
	for _, buckets := range []uint64{0, 1, 16} { // fewer than the spare ones
		if got := CuckooCapacity(buckets, 4); got != 0 {
			t.Errorf("%d buckets hold %d items, want 0", buckets, got)
		}
	}
	if _, _, ok := CuckooSize(math.MaxUint64, 0.01); ok {
		t.Error("a size that overflows is accepted")
	}
}
