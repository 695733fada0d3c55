package bloom

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/upbloom/upbloom/bloom/internal/cells"
)

func drawGeometry(t *rapid.T, scheme Scheme) Geometry {
	g := Geometry{
		Bits: rapid.OneOf(
			rapid.Uint64Range(1, 1000),
			rapid.Uint64Range(1, maxStringBits),
			rapid.Uint64Min(1),
			rapid.SampledFrom([]uint64{1, 2, 53, 106, maxStringBits - headerBits, 1 << 63, math.MaxUint64}),
		).Draw(t, "bits"),
		Hashes: rapid.IntRange(1, maxHashes).Draw(t, "hashes"),
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
			if more := g; more.Hashes < maxHashes-1 {
				more.Hashes += 2
				if !slices.Equal(more.Positions(nil, item)[:g.Hashes], got) {
					t.Fatalf("%v: other positions for %q with more of them", g, item)
				}
			}
		}))
	}
}

// The format's definition of each scheme, computed with big integers.
func TestPositionsAgainstDefinition(t *testing.T) {
	t.Run("scheme=blocked", rapid.MakeCheck(func(t *rapid.T) {
		g := drawGeometry(t, SchemeBlocked)
		item := rapid.String().Draw(t, "item")
		hi, lo := cells.Digest(item, g.Seed)
		x, y := bigUint(hi), bigUint(lo)
		wrap := new(big.Int).Lsh(big.NewInt(1), 64)
		words := bigUint(g.Bits / 53)
		got := g.Positions(nil, item)
		for i := range g.Hashes / 2 {
			q, w := new(big.Int).DivMod(x, words, new(big.Int))
			high, a := new(big.Int).DivMod(q, big.NewInt(53), new(big.Int))
			b := new(big.Int).Mod(high, big.NewInt(52))
			if b.Cmp(a) >= 0 {
				b.Add(b, big.NewInt(1))
			}
			base := w.Mul(w, big.NewInt(53)).Uint64()
			if want := []uint64{base + a.Uint64(), base + b.Uint64()}; !slices.Equal(got[2*i:2*i+2], want) {
				t.Fatalf("word %d has bits %d, want %d", i, got[2*i:2*i+2], want)
			}
			x.Mod(x.Add(x, y), wrap)
			y.Mod(y.Add(y, big.NewInt(int64(i)+1)), wrap)
		}
	}))
	t.Run("scheme=xxh3", rapid.MakeCheck(func(t *rapid.T) {
		g := drawGeometry(t, SchemeXXH3)
		item := rapid.String().Draw(t, "item")
		hi, lo := cells.Digest(item, g.Seed)
		x, y := bigUint(hi), bigUint(lo)
		wrap := new(big.Int).Lsh(big.NewInt(1), 64)
		for i, got := range g.Positions(nil, item) {
			if want := new(big.Int).Mod(x, bigUint(g.Bits)).Uint64(); got != want {
				t.Fatalf("position %d is %d, want %d", i, got, want)
			}
			x.Mod(x.Add(x, y), wrap)
			y.Mod(y.Add(y, big.NewInt(int64(i)+1)), wrap)
		}
	}))
	t.Run("scheme=fnv1a", rapid.MakeCheck(func(t *rapid.T) {
		g := drawGeometry(t, SchemeFNV1a)
		item := rapid.String().Draw(t, "item")
		h1, h2 := cells.FNV1aPair(item)
		for i, got := range g.Positions(nil, item) {
			sum := new(big.Int).Mul(big.NewInt(int64(i)), bigUint(h2))
			sum.Add(sum, bigUint(h1))
			if want := sum.Mod(sum, bigUint(g.Bits)).Uint64(); got != want {
				t.Fatalf("position %d is %d, want %d", i, got, want)
			}
		}
	}))
}

func bigUint(n uint64) *big.Int { return new(big.Int).SetUint64(n) }

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

func TestPositionsDependOnSeed(t *testing.T) {
	g := Geometry{Bits: 1 << 32, Hashes: 7, Scheme: SchemeXXH3}
	seen := map[uint64]bool{}
	for seed := range uint64(1000) {
		g.Seed = seed
		seen[g.Positions(nil, "item")[0]] = true
	}
	// In 1,000 draws from 2^32 cells, two are equal once in 8,600 tries.
	if len(seen) < 999 {
		t.Errorf("1,000 seeds have %d first positions, want at least 999", len(seen))
	}
}

// Positions reach both ends of the largest filter. A 32-bit sum would overflow
// there.
func TestPositionsCoverLargestFilter(t *testing.T) {
	const m = maxStringBits - headerBits
	for _, scheme := range schemes {
		g := Geometry{Bits: m, Hashes: maxHashes, Scheme: scheme}
		lowest, highest := uint64(m), uint64(0)
		var dst []uint64
		for i := range 2000 {
			dst = g.Positions(dst[:0], "item"+strconv.Itoa(i))
			lowest, highest = min(lowest, slices.Min(dst)), max(highest, slices.Max(dst))
		}
		// The chance that 126,000 draws miss the outer 1/1,000 at one end is
		// e^-126.
		if highest >= m || lowest > m/1000 || highest < m-m/1000 {
			t.Errorf("%v: positions from %d to %d of %d", scheme, lowest, highest, uint64(m))
		}
	}
}
