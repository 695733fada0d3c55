package bloom

import (
	"math"
	"testing"
)

func TestGeometryString(t *testing.T) {
	for _, c := range []struct {
		g    Geometry
		want string
	}{
		{Geometry{}, "0 bits (0 B), k=0, xxh3"},
		{Geometry{Bits: 1, Hashes: 1}, "1 bits (1 B), k=1, xxh3"},
		{Geometry{Bits: 8184, Hashes: 7}, "8,184 bits (1023 B), k=7, xxh3"},
		{Geometry{Bits: 8192, Hashes: 7}, "8,192 bits (1.0 KiB), k=7, xxh3"},
		{Geometry{Bits: 95851, Hashes: 7}, "95,851 bits (11.7 KiB), k=7, xxh3"},
		{Geometry{Bits: 95851, Hashes: 7, Seed: 1}, "95,851 bits (11.7 KiB), k=7, xxh3, seeded"},
		{
			Geometry{Bits: 1<<32 - 128, Hashes: 30, Scheme: SchemeFNV1a},
			"4,294,967,168 bits (512.0 MiB), k=30, fnv1a",
		},
		{Geometry{Bits: 1 << 33, Hashes: 1, Scheme: 9}, "8,589,934,592 bits (0 B), k=1, Scheme(9)"},
		{
			Geometry{Bits: math.MaxUint64, Hashes: 1},
			"18,446,744,073,709,551,615 bits (2.0 EiB), k=1, xxh3",
		},
	} {
		if got := c.g.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestGeometryBytes(t *testing.T) {
	for _, c := range []struct {
		g            Geometry
		headed, bare uint64
	}{
		{Geometry{}, 16, 0},
		{Geometry{Bits: 1}, 17, 1},
		{Geometry{Bits: 8}, 17, 1},
		{Geometry{Bits: 9}, 18, 2},
		{Geometry{Bits: 1<<32 - 128}, 512 << 20, 512<<20 - 16},
		{Geometry{Bits: 1 << 32}, 512<<20 + 16, 512 << 20},
		{Geometry{Bits: 3, Scheme: schemeXXH3Count4}, 18, 2},
		{Geometry{Bits: 3, Scheme: schemeXXH3Count8}, 19, 3},
		{Geometry{Bits: math.MaxUint64}, 1<<61 + 16, 1 << 61},
	} {
		if h, b := c.g.Bytes(LayoutHeaded), c.g.Bytes(LayoutBare); h != c.headed || b != c.bare {
			t.Errorf("%+v: %d and %d bytes, want %d and %d", c.g, h, b, c.headed, c.bare)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{SchemeXXH3.String(), "xxh3"},
		{SchemeFNV1a.String(), "fnv1a"},
		{schemeXXH3Count8.String(), "xxh3/8-bit"},
		{Scheme(9).String(), "Scheme(9)"},
		{LayoutHeaded.String(), "headed"},
		{LayoutBare.String(), "bare"},
		{Layout(9).String(), "Layout(9)"},
		{KindFilter.String(), "filter"},
		{KindShard.String(), "shard"},
		{KindLayer.String(), "layer"},
		{KindPane.String(), "pane"},
		{Kind(9).String(), "Kind(9)"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
