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
		{Geometry{}, "0 bits (0 B), k=0, blocked"},
		{Geometry{Bits: 53, Hashes: 2}, "53 bits (7 B), k=2, blocked"},
		{Geometry{Bits: 107484, Hashes: 4, Seed: 1}, "107,484 bits (13.1 KiB), k=4, blocked, seeded"},
		{Geometry{Bits: 1, Hashes: 1, Scheme: SchemeXXH3}, "1 bits (1 B), k=1, xxh3"},
		{Geometry{Bits: 8184, Hashes: 7, Scheme: SchemeXXH3}, "8,184 bits (1023 B), k=7, xxh3"},
		{Geometry{Bits: 8192, Hashes: 7, Scheme: SchemeXXH3}, "8,192 bits (1.0 KiB), k=7, xxh3"},
		{
			Geometry{Bits: 1<<32 - 192, Hashes: 30, Scheme: SchemeFNV1a},
			"4,294,967,104 bits (512.0 MiB), k=30, fnv1a",
		},
		{Geometry{Bits: 1 << 33, Hashes: 1, Scheme: 9}, "8,589,934,592 bits (0 B), k=1, Scheme(9)"},
		{
			Geometry{Bits: math.MaxUint64, Hashes: 1},
			"18,446,744,073,709,551,615 bits (2.0 EiB), k=1, blocked",
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
		{Geometry{}, 24, 0},
		{Geometry{Bits: 1}, 25, 1},
		{Geometry{Bits: 8}, 25, 1},
		{Geometry{Bits: 9}, 26, 2},
		{Geometry{Bits: 1<<32 - 192}, 512 << 20, 512<<20 - 24},
		{Geometry{Bits: 1 << 32}, 512<<20 + 24, 512 << 20},
		{Geometry{Bits: 3, Scheme: schemeXXH3Count4}, 26, 2},
		{Geometry{Bits: 3, Scheme: schemeXXH3Count8}, 27, 3},
		{Geometry{Bits: math.MaxUint64}, 1<<61 + 24, 1 << 61},
	} {
		if h, b := c.g.Bytes(LayoutHeaded), c.g.Bytes(LayoutBare); h != c.headed || b != c.bare {
			t.Errorf("%+v: %d and %d bytes, want %d and %d", c.g, h, b, c.headed, c.bare)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{SchemeBlocked.String(), "blocked"},
		{SchemeXXH3.String(), "xxh3"},
		{SchemeFNV1a.String(), "fnv1a"},
		{schemeXXH3Count8.String(), "xxh3/8-bit"},
		{SchemeCuckoo.String(), "cuckoo"},
		{Scheme(9).String(), "Scheme(9)"},
		{LayoutHeaded.String(), "headed"},
		{LayoutBare.String(), "bare"},
		{Layout(9).String(), "Layout(9)"},
		{KindFilter.String(), "filter"},
		{KindShard.String(), "shard"},
		{KindLayers.String(), "layers"},
		{KindWindow.String(), "window"},
		{Kind(9).String(), "Kind(9)"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// Each scheme has its own formulas for rates and estimates.
func TestGeometryRates(t *testing.T) {
	blocked := Geometry{Bits: 1_074_734, Hashes: 4}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"blocked at capacity", blocked.FalsePositiveRate(100_000), 0.0099984},
		{"blocked at twice the capacity", blocked.FalsePositiveRate(200_000), 0.0777537},
		{"blocked, live, a third full", blocked.LiveFalsePositiveRate(358_245), 0.013131},
		{"blocked, items", blocked.EstimateItems(333_986), 100_000},
		{"xxh3", Geometry{95_851, 7, SchemeXXH3, 0}.FalsePositiveRate(10_000), 0.01003902},
		{"fnv1a", Geometry{95_851, 7, SchemeFNV1a, 0}.FalsePositiveRate(10_000), 0.01003902},
		{"xxh3, live", Geometry{1000, 7, SchemeXXH3, 0}.LiveFalsePositiveRate(500), 1.0 / 128},
		{"xxh3, items", Geometry{1000, 7, SchemeXXH3, 0}.EstimateItems(500), 1000 * math.Ln2 / 7},
	} {
		if math.Abs(c.got-c.want) > 1e-3*c.want {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestBlockedRateEdges(t *testing.T) {
	g := Geometry{Bits: 53 * 1000, Hashes: 4}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"empty", g.FalsePositiveRate(0), 0},
		{"far above capacity", g.FalsePositiveRate(math.MaxUint64), 1},
		{"live, empty", g.LiveFalsePositiveRate(0), 0},
		{"live, full", g.LiveFalsePositiveRate(g.Bits), 1},
		{"live, beyond", g.LiveFalsePositiveRate(g.Bits + 1), 1},
		{"no words", Geometry{Bits: 52, Hashes: 4}.FalsePositiveRate(1), 1},
		{"no words, live", Geometry{Bits: 52, Hashes: 4}.LiveFalsePositiveRate(0), 1},
		{"no hashes", Geometry{Bits: 53, Hashes: 1}.FalsePositiveRate(1), 1},
		{"no hashes, live", Geometry{Bits: 53}.LiveFalsePositiveRate(0), 1},
		// Two bits of a word that is half full: 2^-(5459/2756).
		{"live, half full", Geometry{Bits: 5300, Hashes: 2}.LiveFalsePositiveRate(2650), 0.253355},
		// One item in so many words: about 53/2756 u.
		{"small", Geometry{Bits: 53 << 26, Hashes: 2}.FalsePositiveRate(1), 1.08146e-11},
	} {
		if math.Abs(c.got-c.want) > 1e-4*c.want {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}
