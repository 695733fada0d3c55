//go:build !race

package bloom

import (
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/cells"
)

func TestPositionsAllocateNothing(t *testing.T) {
	items := []string{"", "user-123@example.com", strings.Repeat("x", 10_000)}
	dst, words := make([]uint64, 0, maxHashes), make([]cells.Word, 0, maxHashes)
	for _, scheme := range schemes {
		for _, hashes := range []int{4, 62} {
			for _, seed := range []uint64{0, 42} {
				g := Geometry{Bits: 10_746_333, Hashes: hashes, Scheme: scheme, Seed: seed}
				for _, item := range items {
					n := testing.AllocsPerRun(100, func() { dst = g.Positions(dst[:0], item) })
					if n != 0 || len(dst) != hashes {
						t.Errorf("%v, item of %d bytes: %v allocations, want 0; %d positions",
							g, len(item), n, len(dst))
					}
					n = testing.AllocsPerRun(100, func() { words = g.appendWords(words[:0], item) })
					if n != 0 || len(words) != hashes/2 {
						t.Errorf("%v, item of %d bytes: %v allocations, want 0; %d words",
							g, len(item), n, len(words))
					}
				}
			}
		}
	}
}

func TestConfigGeometryAllocatesNothing(t *testing.T) {
	for _, scheme := range schemes {
		cfg := Config{Capacity: 1_000_000, FPRate: 0.001, Scheme: scheme}
		n := testing.AllocsPerRun(100, func() {
			if _, err := cfg.Geometry(); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%v: %v allocations, want 0", scheme, n)
		}
	}
}

func TestHeaderAllocatesNothing(t *testing.T) {
	g := Geometry{Bits: 10_746_333, Hashes: 4, Seed: 42}
	n := testing.AllocsPerRun(100, func() {
		if info, err := parseHeader(encodeHeader(KindFilter, g)); err != nil || info.geometry(42) != g {
			t.Fatalf("the header of %v says %v, %v", g, info, err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
