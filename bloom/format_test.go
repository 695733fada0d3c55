package bloom_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// The encoder of this file is written from the description of the format alone
// and shares no code with the package: bits are characters, and the arithmetic
// is math/big's.

// headerOf is the first 16 bytes of a plain filter: 53 bits of header, 11
// zeros, and the second word, which is zero in a new one.
func headerOf(kind, version int, g bloom.Geometry) string {
	tag := uint64(0)
	if g.Seed != 0 {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], g.Seed)
		tag = 1 + xxh3.Hash(b[:])%255
	}
	bits := fmt.Sprintf("1%02b%02b%02b%06b%08b%032b", kind, version, g.Scheme, g.Hashes, tag, g.Bits)
	return packed(bits + strings.Repeat("0", 11+64))
}

// packed makes bytes of bits, the first one being the top bit of the first
// byte.
func packed(bits string) string {
	bits += strings.Repeat("0", (8-len(bits)%8)%8)
	out := make([]byte, len(bits)/8)
	for i := range out {
		n, err := strconv.ParseUint(bits[i*8:i*8+8], 2, 8)
		if err != nil {
			panic(err)
		}
		out[i] = byte(n)
	}
	return string(out)
}

// positionsOf computes an item's cells over the integers.
func positionsOf(g bloom.Geometry, item string) []uint64 {
	wrap := new(big.Int).Lsh(big.NewInt(1), 64)
	m := new(big.Int).SetUint64(g.Bits)
	var out []uint64
	if g.Scheme == bloom.SchemeFNV1a {
		h1, h2 := fnvOf(item, 0xcbf29ce484222325), fnvOf(item, 0x84222325cbf29ce4)
		for i := range g.Hashes {
			sum := new(big.Int).Mul(h2, big.NewInt(int64(i)))
			out = append(out, sum.Add(sum, h1).Mod(sum, m).Uint64())
		}
		return out
	}
	h := xxh3.HashString128Seed(item, g.Seed)
	x, y := new(big.Int).SetUint64(h.Hi), new(big.Int).SetUint64(h.Lo)
	for i := range g.Hashes {
		out = append(out, new(big.Int).Mod(x, m).Uint64())
		x.Add(x, y).Mod(x, wrap)
		y.Add(y, big.NewInt(int64(i+1))).Mod(y, wrap)
	}
	return out
}

func fnvOf(item string, offset uint64) *big.Int {
	wrap := new(big.Int).Lsh(big.NewInt(1), 64)
	h := new(big.Int).SetUint64(offset)
	for _, c := range []byte(item) {
		h.Xor(h, big.NewInt(int64(c)))
		h.Mul(h, big.NewInt(1099511628211)).Mod(h, wrap)
	}
	return h
}

// stringOf is the whole Redis string of a created filter with the items in it.
func stringOf(g bloom.Geometry, layout bloom.Layout, items ...string) string {
	cells := []byte(strings.Repeat("0", int(g.Bits)))
	for _, item := range items {
		for _, p := range positionsOf(g, item) {
			cells[p] = '1'
		}
	}
	if layout == bloom.LayoutBare {
		return packed(string(cells))
	}
	return headerOf(0, 1, g) + packed(string(cells))
}

func TestStoredBytesAreTheFormat(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c := s.Client()
		rapid.Check(t, func(rt *rapid.T) {
			s.FlushAll()
			cfg := bloom.Config{
				Bits:   rapid.Uint64Range(1, 5000).Draw(rt, "bits"),
				Hashes: rapid.IntRange(1, 63).Draw(rt, "hashes"),
				Scheme: rapid.SampledFrom([]bloom.Scheme{bloom.SchemeXXH3, bloom.SchemeFNV1a}).Draw(rt, "scheme"),
			}
			if cfg.Scheme == bloom.SchemeXXH3 {
				cfg.Seed = rapid.Uint64().Draw(rt, "seed")
			}
			items := rapid.SliceOfN(rapid.String(), 0, 20).Draw(rt, "items")
			f := handle(t, c, cfg)
			if created, err := f.Create(t.Context()); err != nil || !created {
				rt.Fatalf("Create = %v, %v", created, err)
			}
			if _, err := f.AddAll(t.Context(), items); err != nil {
				rt.Fatal(err)
			}
			if got, want := stored(t, s), stringOf(f.Geometry(), bloom.LayoutHeaded, items...); got != want {
				rt.Fatalf("stored\n%x, want\n%x", got, want)
			}
		})
	})
}

// A filter that Add made is as long as its last set bit needs; the rest reads
// as zeros.
func TestAddGrowsTheString(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), small())
		add(t, f, "item", true)
		want := strings.TrimRight(stringOf(f.Geometry(), bloom.LayoutHeaded, "item"), "\x00")
		if got := stored(t, s); got != want {
			t.Errorf("stored\n%x, want\n%x", got, want)
		}
	})
}

// TestStoredBytesOfVectors holds stored strings against vectors of another
// implementation.
func TestStoredBytesOfVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		XXH3 []struct {
			Item      string
			Seed      uint64 `json:"seed,string"`
			M         uint64
			K         int
			Positions []uint64
		} `json:"xxh3_v1"`
		Header []struct {
			M            uint64
			K            int
			Kind, Scheme int
			Seed         uint64 `json:"seed,string"`
			Bytes        string `json:"first_8_bytes_hex"`
		}
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	const most = 1 << 17 // bits: more take long to compare, not longer to get wrong
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c, items, headers := s.Client(), 0, 0
		for _, v := range vectors.XXH3 {
			if v.M > most {
				continue
			}
			items++
			s.FlushAll()
			f := handle(t, c, bloom.Config{Bits: v.M, Hashes: v.K, Seed: v.Seed})
			add(t, f, v.Item, true)
			cells := make([]byte, v.M/8+1)
			for _, p := range v.Positions {
				cells[p/8] |= 0x80 >> (p % 8)
			}
			want := strings.TrimRight(string(cells), "\x00")
			if got := stored(t, s)[16:]; got != want {
				t.Errorf("m=%d k=%d: body\n%x, want\n%x", v.M, v.K, got, want)
			}
		}
		for _, v := range vectors.Header {
			if v.Kind != 0 || v.Scheme > 1 || v.M > most || v.Scheme == 1 && v.Seed != 0 {
				continue
			}
			headers++
			s.FlushAll()
			cfg := bloom.Config{Bits: v.M, Hashes: v.K, Seed: v.Seed, Scheme: bloom.Scheme(v.Scheme)}
			f := handle(t, c, cfg)
			if _, err := f.Create(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := stored(t, s)
			if h := hex.EncodeToString([]byte(got[:8])); h != v.Bytes || got[8:16] != strings.Repeat("\x00", 8) {
				t.Errorf("%v: header %x, want %s and 8 zeros", cfg, got[:16], v.Bytes)
			}
			if want := 16 + (v.M+7)/8; uint64(len(got)) != want {
				t.Errorf("%v: %d bytes, want %d", cfg, len(got), want)
			}
		}
		if items < 50 || headers < 5 {
			t.Errorf("only %d items and %d headers were held against vectors", items, headers)
		}
	})
}

// What the format's description alone makes is found by Open and Exists.
func TestReadsWhatTheFormatSays(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		g := bloom.Geometry{Bits: 2000, Hashes: 5, Seed: 99}
		items := numbered("theirs", 100)
		do(t, s, "SET", key, stringOf(g, bloom.LayoutHeaded, items...))
		f, err := bloom.Open(t.Context(), s.Client(), key, bloom.OpenSeed(99))
		if err != nil || f.Geometry() != g {
			t.Fatalf("Open = %v, %v, want %v", f, err, g)
		}
		found, err := f.ExistsAll(t.Context(), items)
		if err != nil || count(found) != len(items) {
			t.Errorf("%d of %d found, %v", count(found), len(items), err)
		}
		exists(t, f, "never", false)
	})
}
