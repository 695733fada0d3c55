package bloom

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"pgregory.net/rapid"
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
		{Geometry{Bits: 3, Scheme: Scheme(format.Counters4)}, 26, 2},
		{Geometry{Bits: 3, Scheme: Scheme(format.Counters8)}, 27, 3},
		{Geometry{Bits: math.MaxUint64}, 1<<61 + 24, 1 << 61},
	} {
		if h, b := c.g.Bytes(LayoutHeaded), c.g.Bytes(LayoutBare); h != c.headed || b != c.bare {
			t.Errorf("%+v: %d and %d bytes, want %d and %d", c.g, h, b, c.headed, c.bare)
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

func drawGeometry(t *rapid.T, scheme Scheme) Geometry {
	g := Geometry{
		Bits: rapid.OneOf(
			rapid.Uint64Range(1, 1000),
			rapid.Uint64Range(1, format.MaxStringBits),
			rapid.Uint64Min(1),
			rapid.SampledFrom([]uint64{1, 2, 53, 106, format.MaxStringBits - format.HeaderBits, 1 << 63, math.MaxUint64}),
		).Draw(t, "bits"),
		Hashes: rapid.IntRange(1, format.MaxHashes).Draw(t, "hashes"),
		Scheme: scheme,
	}
	if scheme != SchemeFNV1a {
		g.Seed = rapid.Uint64().Draw(t, "seed")
	}
	if scheme == SchemeBlocked {
		g.Bits = max(g.Bits-g.Bits%wordBits, wordBits)
		g.Hashes = max(g.Hashes&^1, 2)
	}
	return g
}

var schemes = []Scheme{SchemeBlocked, SchemeXXH3, SchemeFNV1a}

func TestPositionsProperties(t *testing.T) {
	for _, scheme := range schemes {
		t.Run("scheme="+scheme.String(), rapid.MakeCheck(func(t *rapid.T) {
			g := drawGeometry(t, scheme)
			item := rapid.String().Draw(t, "item")
			prefix := rapid.SliceOf(rapid.Uint64()).Draw(t, "prefix")

			got := g.Positions(slices.Clone(prefix), item)
			if !slices.Equal(got[:len(prefix)], prefix) {
				t.Fatal("Positions changed what was in dst")
			}
			got = got[len(prefix):]
			if len(got) != g.Hashes {
				t.Fatalf("%d positions, want %d", len(got), g.Hashes)
			}
			for _, p := range got {
				if p >= g.Bits {
					t.Fatalf("position %d of %d bits", p, g.Bits)
				}
			}
			if !slices.Equal(g.Positions(nil, item), got) {
				t.Fatalf("%v: other positions for %q the second time", g, item)
			}
			// More hashes do not move the first ones.
			if more := g; more.Hashes < format.MaxHashes-1 {
				more.Hashes += 2
				if !slices.Equal(more.Positions(nil, item)[:g.Hashes], got) {
					t.Fatalf("%v: other positions for %q with more of them", g, item)
				}
			}
		}))
	}
}

// The words of an item cover its positions: each word once, each position in
// its word's mask.
func TestWordsArePositions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGeometry(t, SchemeBlocked)
		item := rapid.String().Draw(t, "item")
		want := map[uint64]int64{}
		for _, p := range g.Positions(nil, item) {
			want[p/53] |= 1 << (52 - p%53)
		}
		words := g.appendWords([]cells.Word{{Index: 7, Mask: 7}}, item)
		if words[0] != (cells.Word{Index: 7, Mask: 7}) || len(words)-1 != len(want) {
			t.Fatalf("%v: words %v behind the first, want %v", g, words, want)
		}
		for _, w := range words[1:] {
			if want[w.Index] != w.Mask {
				t.Fatalf("%v: word %d has the mask %b, want %b", g, w.Index, w.Mask, want[w.Index])
			}
		}
	})
}

// The two bits of a word always differ, and every pair of different bits
// occurs.
func TestBlockedBits(t *testing.T) {
	pairs := map[[2]uint64]bool{}
	for x := range uint64(53 * 52) {
		w, a, b := cells.BlockedBits(3*x+2, 3)
		if w != 2 || a == b || a > 52 || b > 52 {
			t.Fatalf("cells.BlockedBits(%d, 3) = %d, %d, %d", 3*x+2, w, a, b)
		}
		pairs[[2]uint64{a, b}] = true
	}
	if len(pairs) != 53*52 {
		t.Errorf("%d pairs of bits, want %d", len(pairs), 53*52)
	}
}

func TestPositionsWithoutGeometry(t *testing.T) {
	for _, g := range []Geometry{
		{},
		{Bits: 0, Hashes: 7},
		{Bits: 100, Hashes: 0},
		{Bits: 100, Hashes: -1},
		{Bits: 0, Hashes: 7, Scheme: SchemeFNV1a},
		{Bits: 0, Hashes: 7, Scheme: SchemeXXH3},
		{Bits: 52, Hashes: 4},
		{Bits: 53, Hashes: 1},
	} {
		if got := g.Positions([]uint64{42}, "item"); !slices.Equal(got, []uint64{42}) {
			t.Errorf("%v: %d, want dst alone", g, got)
		}
	}
}

func TestOptimalBitsEdges(t *testing.T) {
	for _, c := range []struct {
		n    uint64
		p    float64
		want uint64
	}{
		{0, 0.01, 10}, // as for one item
		{1, 0.01, 10},
		{1, 0.999, 1},
		{1000, 1, 1},
		{1000, 1.5, 1},
		{1000, math.Inf(1), 1},
		{0, 1, 1},
		{1000, 0, math.MaxUint64},
		{0, 0, math.MaxUint64},
		{1000, -0.1, math.MaxUint64},
		{1000, math.Inf(-1), math.MaxUint64},
		{1000, math.NaN(), 0},
		{1, 1e-300, 1438},
		{math.MaxUint64, 0.01, math.MaxUint64},
		{math.MaxUint64 / 2, 0.01, math.MaxUint64},
	} {
		if got := OptimalBits(c.n, c.p); got != c.want {
			t.Errorf("OptimalBits(%d, %v) = %d, want %d", c.n, c.p, got, c.want)
		}
	}
}

func TestOptimalHashesEdges(t *testing.T) {
	for _, c := range []struct {
		m, n uint64
		want int
	}{
		{0, 0, 1},
		{0, 10, 1},
		{1, math.MaxUint64, 1},
		{10, 0, 7}, // as for one item
		{10, 1, 7},
		{465, 1000, 1}, // rounds to 0: every look-up would be found
		{math.MaxUint64, 1, math.MaxInt32},
		{math.MaxUint64, math.MaxUint64, 1},
	} {
		if got := OptimalHashes(c.m, c.n); got != c.want {
			t.Errorf("OptimalHashes(%d, %d) = %d, want %d", c.m, c.n, got, c.want)
		}
	}
}

// Over the whole range of rates the size is usable, and its rate is as asked,
// apart from the rounding of k that OptimalBits documents.
func TestSizingWholeRange(t *testing.T) {
	rates := []float64{
		0.999, 0.99, 0.9, 0.8, 0.7, 0.6, 0.5, 0.3, 0.2, 0.1, 0.05, 0.01,
		1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9,
	}
	for _, n := range []uint64{1, 2, 10, 1000, 1e6, 50e6} {
		for _, p := range rates {
			m := OptimalBits(n, p)
			k := OptimalHashes(m, n)
			if m < 1 || k < 1 || k > format.MaxHashes {
				t.Fatalf("n=%d p=%v: m=%d k=%d", n, p, m, k)
			}
			allowed := 1.05
			if p > 0.5 {
				allowed = 1.12
			}
			if got := classic(m, k).FalsePositiveRate(n); got > p*allowed {
				t.Errorf("n=%d p=%v: m=%d k=%d has a rate of %v", n, p, m, k, got)
			}
			if _, err := (Config{Capacity: n, FPRate: p, Scheme: SchemeXXH3}).Geometry(); err != nil {
				t.Errorf("n=%d p=%v: %v", n, p, err)
			}
		}
	}
}

// classic is a geometry of m independent bits and k positions an item.
func classic(m uint64, k int) Geometry { return Geometry{Bits: m, Hashes: k, Scheme: SchemeXXH3} }

func TestRatesAndEstimates(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"FPR at capacity", classic(95851, 7).FalsePositiveRate(10000), 0.01003902},
		{"FPR at twice the capacity", classic(95851, 7).FalsePositiveRate(20000), 0.1574508},
		{"FPR of an empty filter", classic(95851, 7).FalsePositiveRate(0), 0},
		{"FPR far below capacity", classic(1<<32, 1).FalsePositiveRate(1), 1.0 / (1 << 32)},
		{"FPR far above capacity", classic(8, 2).FalsePositiveRate(math.MaxUint64), 1},
		{"FPR without bits", classic(0, 7).FalsePositiveRate(10), 1},
		{"FPR without hashes", classic(8, 0).FalsePositiveRate(10), 1},
		{"FPR of negative hashes", classic(8, -1).FalsePositiveRate(0), 1},

		{"live, half full", classic(1000, 7).LiveFalsePositiveRate(500), 1.0 / 128},
		{"live, empty", classic(1000, 7).LiveFalsePositiveRate(0), 0},
		{"live, saturated", classic(1000, 7).LiveFalsePositiveRate(1000), 1},
		{"live, beyond", classic(1000, 7).LiveFalsePositiveRate(1001), 1},
		{"live, without bits", classic(0, 7).LiveFalsePositiveRate(0), 1},
		{"live, without hashes", classic(10, 0).LiveFalsePositiveRate(1), 1},

		{"items, empty", EstimateItems(1000, 7, 0), 0},
		{"items, one of many", EstimateItems(1<<32, 1, 1), 1},
		{"items, half full", EstimateItems(1000, 7, 500), 1000 * math.Ln2 / 7},
		{"items, one bit short", EstimateItems(1000, 7, 999), 1000 * math.Log(1000) / 7},
		{"items, saturated", EstimateItems(1000, 7, 1000), inf},
		{"items, beyond", EstimateItems(1000, 7, 1001), inf},
		{"items, without bits", EstimateItems(0, 7, 0), 0},
		{"items, without hashes", EstimateItems(1000, 0, 1), inf},
		{"items, largest", EstimateItems(math.MaxUint64, 1, math.MaxUint64), inf},
	} {
		if c.got != c.want && !(math.Abs(c.got-c.want) <= 1e-5*c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

// No input leads to NaN, a negative number or a rate above 1.
func TestSizingTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, n := rapid.Uint64().Draw(t, "m"), rapid.Uint64().Draw(t, "n")
		k := rapid.Int().Draw(t, "k")
		if bits := OptimalBits(n, rapid.Float64().Draw(t, "p")); bits == 0 {
			t.Fatal("OptimalBits is 0")
		}
		if got := OptimalHashes(m, n); got < 1 || got > math.MaxInt32 {
			t.Fatalf("OptimalHashes is %d", got)
		}
		blocked := Geometry{Bits: m, Hashes: k}
		for _, rate := range []float64{
			classic(m, k).FalsePositiveRate(n), classic(m, k).LiveFalsePositiveRate(n),
			blocked.FalsePositiveRate(n), blocked.LiveFalsePositiveRate(n),
		} {
			if !(rate >= 0 && rate <= 1) {
				t.Fatalf("rate %v", rate)
			}
		}
		if items := EstimateItems(m, k, n); !(items >= 0) {
			t.Fatalf("EstimateItems is %v", items)
		}
	})
}

// The formulas are inverses: the expected fill of n items leads back to n, and
// its live rate is the expected rate.
func TestEstimateInvertsFill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1000, 1e6).Draw(t, "n")
		p := rapid.Float64Range(1e-6, 0.5).Draw(t, "p")
		m := OptimalBits(n, p)
		k := OptimalHashes(m, n)
		fill := -math.Expm1(-float64(k) * float64(n) / float64(m))
		set := uint64(math.Round(fill * float64(m)))
		if got := EstimateItems(m, k, set); math.Abs(got-float64(n)) > 0.01*float64(n) {
			t.Fatalf("n=%d m=%d k=%d set=%d: estimated %v", n, m, k, set, got)
		}
		want := classic(m, k).FalsePositiveRate(n)
		if got := classic(m, k).LiveFalsePositiveRate(set); math.Abs(got-want) > 0.05*want {
			t.Fatalf("n=%d m=%d k=%d set=%d: live %v, want %v", n, m, k, set, got, want)
		}
	})
}

// Positions ends for every Hashes.
func TestPositionsOfAnyHashes(t *testing.T) {
	for _, scheme := range []Scheme{SchemeBlocked, SchemeFNV1a, SchemeXXH3} {
		for _, hashes := range []int{1000, math.MaxInt} { // the second may need all memory
			g := Geometry{Bits: 5300, Hashes: hashes, Scheme: scheme}
			if n := len(g.Positions(nil, "item")); n < 62 || n > 63 {
				t.Fatalf("%v of %d: %d positions, want 63 at most", scheme, hashes, n)
			}
		}
	}
}

// Few items of SchemeXXH3 have more false positives than FPRate, as its doc says.
func TestXXH3OfFewItems(t *testing.T) {
	const filters, strangers = 5000, 300
	rng := rand.New(rand.NewPCG(1, 2))
	var pos []uint64
	for _, tt := range []struct {
		capacity uint64
		rate     float64
		times    float64
	}{{1, 0.01, 1.6}, {10, 0.01, 1.1}, {1, 0.0001, 6.5}, {10, 0.0001, 1.4}} {
		g, err := Config{Capacity: tt.capacity, FPRate: tt.rate, Scheme: SchemeXXH3}.Geometry()
		if err != nil {
			t.Fatal(err)
		}
		draw := func() []uint64 {
			pos = g.Positions(pos[:0], strconv.FormatUint(rng.Uint64(), 36))
			return pos
		}
		found := 0
		set := make([]bool, g.Bits)
		for range filters {
			clear(set)
			for range tt.capacity {
				for _, p := range draw() {
					set[p] = true
				}
			}
			for range strangers {
				if !slices.ContainsFunc(draw(), func(p uint64) bool { return !set[p] }) {
					found++
				}
			}
		}
		asked := tt.rate * filters * strangers
		got, fivefold := float64(found)/asked, 5*math.Sqrt(tt.times/asked)
		t.Logf("%d items at %v: %.2f times FPRate", tt.capacity, tt.rate, got)
		if math.Abs(got-tt.times) > 0.05+fivefold {
			t.Errorf("%d items at %v: %.2f times FPRate, want %v", tt.capacity, tt.rate, got, tt.times)
		}
	}
}
