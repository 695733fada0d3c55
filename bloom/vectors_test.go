package bloom

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// vectors are made by another implementation, in JavaScript, and pin the stored format. They
// never change for version 1: a test that fails here has found filters that no longer match.
type vectors struct {
	XXH3 []struct {
		Item      string   `json:"item"`
		Seed      uint64   `json:"seed,string"`
		M         uint64   `json:"m"`
		K         int      `json:"k"`
		Digest    string   `json:"xxh3_128"` // high 64 bits, then low
		Positions []uint64 `json:"positions"`
	} `json:"xxh3_v1"`
	FNV1a []struct {
		Item      string   `json:"item"`
		M         uint64   `json:"m"`
		K         int      `json:"k"`
		Positions []uint64 `json:"positions"`
	} `json:"fnv1a_article"`
	Header []struct {
		M       uint64 `json:"m"`
		K       int    `json:"k"`
		Kind    Kind   `json:"kind"`
		Scheme  Scheme `json:"scheme"`
		Seed    uint64 `json:"seed,string"`
		SeedTag uint8  `json:"seed_tag"`
		Word    uint64 `json:"header_u53,string"`
		Bytes   string `json:"first_8_bytes_hex"`
	} `json:"header"`
	Sizing []struct {
		N uint64  `json:"n"`
		P float64 `json:"p"`
		M uint64  `json:"m"`
		K int     `json:"k"`
	} `json:"sizing"`
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
	if len(v.XXH3) < 272 || len(v.FNV1a) < 136 || len(v.Header) < 200 || len(v.Sizing) < 12 {
		t.Fatalf("vectors are missing: %d, %d, %d, %d",
			len(v.XXH3), len(v.FNV1a), len(v.Header), len(v.Sizing))
	}
	return v
}

func TestVectorsXXH3(t *testing.T) {
	for _, v := range loadVectors(t).XXH3 {
		sum := digest(v.Item, v.Seed).Bytes()
		if got := hex.EncodeToString(sum[:]); got != v.Digest {
			t.Errorf("digest(%q, %d) = %s, want %s", v.Item, v.Seed, got, v.Digest)
		}
		g := Geometry{Bits: v.M, Hashes: v.K, Seed: v.Seed}
		if got := g.Positions(nil, v.Item); !slices.Equal(got, v.Positions) {
			t.Errorf("%v of %q: %d, want %d", g, v.Item, got, v.Positions)
		}
	}
}

func TestVectorsFNV1a(t *testing.T) {
	for _, v := range loadVectors(t).FNV1a {
		g := Geometry{Bits: v.M, Hashes: v.K, Scheme: SchemeFNV1a}
		if got := g.Positions(nil, v.Item); !slices.Equal(got, v.Positions) {
			t.Errorf("%v of %q: %d, want %d", g, v.Item, got, v.Positions)
		}
	}
}

func TestVectorsHeader(t *testing.T) {
	parsed := 0
	for _, v := range loadVectors(t).Header {
		g := Geometry{Bits: v.M, Hashes: v.K, Scheme: v.Scheme, Seed: v.Seed}
		if got := seedTag(v.Seed); got != v.SeedTag {
			t.Errorf("seedTag(%d) = %d, want %d", v.Seed, got, v.SeedTag)
		}
		word := encodeHeader(v.Kind, g)
		if word != v.Word {
			t.Errorf("encodeHeader(%v, %v) = %d, want %d", v.Kind, g, word, v.Word)
		}
		// A u53 at bit 0 is the top 53 bits of the first eight bytes.
		first := binary.BigEndian.AppendUint64(nil, word<<11)
		if got := hex.EncodeToString(first); got != v.Bytes {
			t.Errorf("%v, %v: first bytes %s, want %s", v.Kind, g, got, v.Bytes)
		}
		// Some vectors have more counters than a string holds: encoded, but never stored.
		if v.M > maxCells(v.Scheme, LayoutHeaded) {
			continue
		}
		parsed++
		info, err := parseHeader(word)
		if err != nil || info.kind != v.Kind || info.geometry(v.Seed) != g {
			t.Errorf("parseHeader(%d) = %+v, %v, want %v, %v", word, info, err, v.Kind, g)
		}
	}
	if parsed < 180 {
		t.Errorf("parsed %d headers, want at least 180", parsed)
	}
}

func TestVectorsSizing(t *testing.T) {
	for _, v := range loadVectors(t).Sizing {
		m := OptimalBits(v.N, v.P)
		if k := OptimalHashes(m, v.N); m != v.M || k != v.K {
			t.Errorf("n=%d p=%v: m=%d k=%d, want m=%d k=%d", v.N, v.P, m, k, v.M, v.K)
		}
		g, err := Config{Capacity: v.N, FPRate: v.P}.Geometry()
		if want := (Geometry{Bits: v.M, Hashes: v.K}); err != nil || g != want {
			t.Errorf("n=%d p=%v: %v, %v, want %v", v.N, v.P, g, err, want)
		}
	}
}
