//go:build !race

package bloom

import (
	"strings"
	"testing"
)

func TestPositionsAllocateNothing(t *testing.T) {
	items := []string{"", "user-123@example.com", strings.Repeat("x", 10_000)}
	dst := make([]uint64, 0, maxHashes)
	for _, g := range []Geometry{
		{Bits: 9_585_059, Hashes: 7},
		{Bits: 9_585_059, Hashes: 63, Seed: 42},
		{Bits: 9_585_059, Hashes: 63, Scheme: SchemeFNV1a},
	} {
		for _, item := range items {
			n := testing.AllocsPerRun(100, func() { dst = g.Positions(dst[:0], item) })
			if n != 0 {
				t.Errorf("%v, item of %d bytes: %v allocations", g, len(item), n)
			}
		}
	}
}

func TestHeaderAllocatesNothing(t *testing.T) {
	g := Geometry{Bits: 9_585_059, Hashes: 7, Seed: 42}
	n := testing.AllocsPerRun(100, func() {
		if info, err := parseHeader(encodeHeader(KindFilter, g)); err != nil || info.geometry(42) != g {
			t.Fatal(info, err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
