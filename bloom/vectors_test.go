package bloom

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/cells"
)

// vectors fix the stored format. Another implementation, in JavaScript, made
// them. They never change for version 1: if a test fails here, stored filters
// no longer match.
type vectors struct {
	Blocked []struct {
		keyed
		Words []struct {
			Word uint64 `json:"word"`
			Mask int64  `json:"mask_u53,string"`
		} `json:"words"`
	} `json:"blocked"`
	XXH3   []keyed `json:"xxh3"`
	FNV1a  []keyed `json:"fnv1a"`
	Header []struct {
		M       uint64 `json:"m"`
		K       int    `json:"k"`
		Kind    uint8  `json:"kind"`
		Scheme  uint8  `json:"scheme"`
		Seed    uint64 `json:"seed,string"`
		SeedTag uint8  `json:"seed_tag"`
		Word    uint64 `json:"header_u53,string"`
		Bytes   string `json:"first_8_bytes_hex"`
	} `json:"header"`
	Sizing        []sized `json:"sizing"`
	BlockedSizing []struct {
		sized
		Units   uint64  `json:"words_an_item_20_bits"`
		Words   uint64  `json:"words"`
		Rate    float64 `json:"rate_at_capacity"`
		AtTwice float64 `json:"rate_at_twice"`
	} `json:"blocked_sizing"`
}

// keyed is an item and its positions in a geometry. fnv1a has no seed and no
// digest.
type keyed struct {
	Item      string   `json:"item"`
	Seed      uint64   `json:"seed,string"`
	M         uint64   `json:"m"`
	K         int      `json:"k"`
	Digest    string   `json:"xxh3_128"` // high 64 bits, then low
	Positions []uint64 `json:"positions"`
}

// sized is the size for n items at rate p.
type sized struct {
	N uint64  `json:"n"`
	P float64 `json:"p"`
	M uint64  `json:"m"`
	K int     `json:"k"`
}

func loadVectors(t *testing.T) vectors {
	t.Helper()
	data, err := os.ReadFile("testdata/v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ got, want int }{
		"blocked":        {len(v.Blocked), 204},
		"xxh3":           {len(v.XXH3), 272},
		"fnv1a":          {len(v.FNV1a), 136},
		"header":         {len(v.Header), 248},
		"sizing":         {len(v.Sizing), 12},
		"blocked_sizing": {len(v.BlockedSizing), 12},
	} {
		if c.got != c.want {
			t.Fatalf("%s has %d vectors, want %d", name, c.got, c.want)
		}
	}
	return v
}

// check compares the digest, unless the scheme has none, and the positions.
func (v keyed) check(t *testing.T, s Scheme) {
	t.Helper()
	if s != SchemeFNV1a {
		x, y := cells.Digest(v.Item, v.Seed)
		if got := fmt.Sprintf("%016x%016x", x, y); got != v.Digest {
			t.Errorf("cells.Digest(%q, %d) = %s, want %s", v.Item, v.Seed, got, v.Digest)
		}
	}
	g := Geometry{Bits: v.M, Hashes: v.K, Scheme: s, Seed: v.Seed}
	if got := g.Positions(nil, v.Item); !slices.Equal(got, v.Positions) {
		t.Errorf("%v of %q: %d, want %d", g, v.Item, got, v.Positions)
	}
}

func TestVectorsBlocked(t *testing.T) {
	for _, v := range loadVectors(t).Blocked {
		v.check(t, SchemeBlocked)
		var want []cells.Word
		for _, w := range v.Words { // a repeated word counts once
			i := slices.IndexFunc(want, func(c cells.Word) bool { return c.Index == w.Word })
			if i < 0 {
				i, want = len(want), append(want, cells.Word{Index: w.Word})
			}
			want[i].Mask |= w.Mask
		}
		g := Geometry{Bits: v.M, Hashes: v.K, Seed: v.Seed}
		if got := g.appendWords(nil, v.Item); !slices.Equal(got, want) {
			t.Errorf("%v of %q: words %v, want %v", g, v.Item, got, want)
		}
	}
}

func TestVectorsXXH3(t *testing.T) {
	for _, v := range loadVectors(t).XXH3 {
		v.check(t, SchemeXXH3)
	}
}

func TestVectorsFNV1a(t *testing.T) {
	for _, v := range loadVectors(t).FNV1a {
		v.check(t, SchemeFNV1a)
	}
}

func TestVectorsHeader(t *testing.T) {
	parsed := 0
	for _, v := range loadVectors(t).Header {
		kind, scheme := Kind(v.Kind), Scheme(v.Scheme)
		g := Geometry{Bits: v.M, Hashes: v.K, Scheme: scheme, Seed: v.Seed}
		if got := seedTag(v.Seed); got != v.SeedTag {
			t.Errorf("seedTag(%d) = %d, want %d", v.Seed, got, v.SeedTag)
		}
		word := encodeHeader(kind, g)
		if word != v.Word {
			t.Errorf("encodeHeader(%v, %v) = %d, want %d", kind, g, word, v.Word)
		}
		// A u53 at bit 0 is the top 53 bits of the first eight bytes.
		first := binary.BigEndian.AppendUint64(nil, word<<11)
		if got := hex.EncodeToString(first); got != v.Bytes {
			t.Errorf("%v, %v: first bytes %s, want %s", kind, g, got, v.Bytes)
		}
		info, err := parseHeader(word)
		if v.M > maxCells(scheme, LayoutHeaded) {
			// More cells than a string holds: encoded, but never stored.
			if err == nil {
				t.Errorf("parseHeader(%d) accepts %v", word, g)
			}
			continue
		}
		parsed++
		if err != nil || info.kind != kind || info.geometry(v.Seed) != g {
			t.Errorf("parseHeader(%d) = %+v, %v, want %v, %v", word, info, err, kind, g)
		}
	}
	if parsed != 223 {
		t.Errorf("parsed %d headers, want 223", parsed)
	}
}

func TestVectorsSizing(t *testing.T) {
	for _, v := range loadVectors(t).Sizing {
		m := OptimalBits(v.N, v.P)
		if k := OptimalHashes(m, v.N); m != v.M || k != v.K {
			t.Errorf("n=%d p=%v: m=%d k=%d, want m=%d k=%d", v.N, v.P, m, k, v.M, v.K)
		}
		for _, s := range []Scheme{SchemeXXH3, SchemeFNV1a} {
			v.check(t, s)
		}
	}
}

func TestVectorsBlockedSizing(t *testing.T) {
	for _, v := range loadVectors(t).BlockedSizing {
		v.check(t, SchemeBlocked)
		if got := cells.BlockedUnits(v.K/2, v.P); got != v.Units || v.M != wordBits*v.Words {
			t.Errorf("p=%v: %d units and %d words, want %d and %d",
				v.P, got, v.M/wordBits, v.Units, v.Words)
		}
		g := Geometry{Bits: v.M, Hashes: v.K}
		for n, want := range map[uint64]float64{v.N: v.Rate, 2 * v.N: v.AtTwice} {
			// The rates are estimates and decide nothing, so they may differ in
			// the last few digits.
			if got := g.FalsePositiveRate(n); math.Abs(got/want-1) > 1e-12 {
				t.Errorf("%v with %d items: rate %v, want %v", g, n, got, want)
			}
		}
	}
}

// check compares the size that follows from a Config.
func (v sized) check(t *testing.T, s Scheme) {
	t.Helper()
	g, err := Config{Capacity: v.N, FPRate: v.P, Scheme: s}.Geometry()
	if want := (Geometry{Bits: v.M, Hashes: v.K, Scheme: s}); err != nil || g != want {
		t.Errorf("n=%d p=%v: %v, %v, want %v", v.N, v.P, g, err, want)
	}
}
