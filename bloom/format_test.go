package bloom_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

var schemes = []bloom.Scheme{bloom.SchemeBlocked, bloom.SchemeXXH3, bloom.SchemeFNV1a}

// The encoder of this file is written from the description of the format alone
// and shares no code with the package: bits are characters, and the arithmetic
// is math/big's.

const headBits = 192

// headerOf is the first 24 bytes of a filter that another program wrote: 53
// bits of header, 11 zeros, a word of zeros, and one that is zero for kind 0.
func headerOf(kind, version int, g bloom.Geometry) string {
	tag := uint64(0)
	if g.Seed != 0 {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], g.Seed)
		tag = 1 + xxh3.Hash(b[:])%127
	}
	bits := fmt.Sprintf("1%02b%02b%03b%06b%07b%032b", kind, version, g.Scheme, g.Hashes, tag, g.Bits)
	bits += strings.Repeat("0", 11+64)
	if kind != 0 {
		bits += "1" // of the kind's own word
	}
	return packed(bits + strings.Repeat("0", headBits-len(bits)))
}

// withoutBirth holds the second word of a plain filter of ours against the
// format, and returns the string with zeros instead of it.
func withoutBirth(t *testing.T, stored string, settled bool) string {
	t.Helper()
	word := ""
	for _, b := range []byte(stored[8:16]) {
		word += fmt.Sprintf("%08b", b)
	}
	if word[0] != '1' || word[53:63] != "0000000000" || (word[63] == '1') != settled {
		t.Errorf("second word %s, want 1, 52 random bits, 10 zeros and bit 127 to be %t", word, settled)
	}
	if stored[16:24] != strings.Repeat("\x00", 8) {
		t.Errorf("third word %x, want zeros", stored[16:24])
	}
	return stored[:8] + strings.Repeat("\x00", 8) + stored[16:]
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
	for i := 0; len(out) < g.Hashes; i++ {
		if g.Scheme == bloom.SchemeBlocked {
			out = append(out, pairOf(x, g.Bits/53)...)
		} else {
			out = append(out, new(big.Int).Mod(x, m).Uint64())
		}
		x.Add(x, y).Mod(x, wrap)
		y.Add(y, big.NewInt(int64(i+1))).Mod(y, wrap)
	}
	return out
}

// pairOf is the two bits of a word that x chooses.
func pairOf(x *big.Int, words uint64) []uint64 {
	q, w := new(big.Int).DivMod(x, new(big.Int).SetUint64(words), new(big.Int))
	q, a := q.DivMod(q, big.NewInt(53), new(big.Int))
	b := q.Mod(q, big.NewInt(52)).Uint64()
	if b >= a.Uint64() {
		b++
	}
	return []uint64{53*w.Uint64() + a.Uint64(), 53*w.Uint64() + b}
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

// stringOf is the whole Redis string of a filter with the items in it, its
// second word zero.
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
				Scheme: rapid.SampledFrom(schemes).Draw(rt, "scheme"),
				TTL:    rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(rt, "ttl"),
			}
			if cfg.Scheme == bloom.SchemeBlocked {
				cfg.Bits, cfg.Hashes = 53*(1+cfg.Bits/53), 2*(1+cfg.Hashes/3)
			}
			if cfg.Scheme != bloom.SchemeFNV1a {
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
			got := withoutBirth(t, stored(t, s), cfg.TTL != 0)
			if want := stringOf(f.Geometry(), bloom.LayoutHeaded, items...); got != want {
				rt.Fatalf("stored\n%x, want\n%x", got, want)
			}
		})
	})
}

// A filter that Add made is as long as its last set bit needs; the rest reads
// as zeros.
func TestAddGrowsTheString(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, scheme := range schemes {
			s.FlushAll()
			f := handle(t, s.Client(), bloom.Config{Capacity: 1000, FPRate: 0.01, Scheme: scheme})
			add(t, f, "item", true)
			want := strings.TrimRight(stringOf(f.Geometry(), bloom.LayoutHeaded, "item"), "\x00")
			if got := withoutBirth(t, stored(t, s), false); got != want {
				t.Errorf("%v: stored\n%x, want\n%x", scheme, got, want)
			}
		}
	})
}

// vectorItem is an item of testdata/v1.json; fnv1a has no seed.
type vectorItem struct {
	Item      string
	Seed      uint64 `json:"seed,string"`
	M         uint64
	K         int
	Positions []uint64
}

// Stored strings are those of the vectors, which another implementation made.
func TestStoredBytesOfVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Blocked, XXH3, FNV1a []vectorItem
		Header               []struct {
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
		for scheme, all := range map[bloom.Scheme][]vectorItem{
			bloom.SchemeBlocked: vectors.Blocked, bloom.SchemeXXH3: vectors.XXH3, bloom.SchemeFNV1a: vectors.FNV1a,
		} {
			for _, v := range all {
				if v.M > most {
					continue
				}
				items++
				s.FlushAll()
				f := handle(t, c, bloom.Config{Bits: v.M, Hashes: v.K, Seed: v.Seed, Scheme: scheme})
				add(t, f, v.Item, true)
				exists(t, f, v.Item, true)
				cells := make([]byte, v.M/8+1)
				for _, p := range v.Positions {
					cells[p/8] |= 0x80 >> (p % 8)
				}
				want := strings.TrimRight(string(cells), "\x00")
				if got := stored(t, s)[24:]; got != want {
					t.Errorf("%v: body\n%x, want\n%x", f, got, want)
				}
			}
		}
		for _, v := range vectors.Header {
			scheme := bloom.Scheme(v.Scheme)
			if v.Kind != 0 || !slices.Contains(schemes, scheme) || v.M > most {
				continue
			}
			headers++
			s.FlushAll()
			f := handle(t, c, bloom.Config{Bits: v.M, Hashes: v.K, Seed: v.Seed, Scheme: scheme})
			if _, err := f.Create(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := withoutBirth(t, stored(t, s), false)
			if h := hex.EncodeToString([]byte(got[:8])); h != v.Bytes {
				t.Errorf("%v: header %s, want %s", f, h, v.Bytes)
			}
			if want := 24 + (v.M+7)/8; uint64(len(got)) != want {
				t.Errorf("%v: %d bytes, want %d", f, len(got), want)
			}
		}
		if items != 323 || headers != 19 {
			t.Errorf("%d items and %d headers were held against vectors, want 323 and 19", items, headers)
		}
	})
}

// A Local and its stream are the same bytes, as the format frames them.
func TestStreamIsTheFormat(t *testing.T) {
	for _, g := range []bloom.Geometry{
		{Bits: 53 * 40, Hashes: 6, Seed: 99},
		{Bits: 2001, Hashes: 5, Scheme: bloom.SchemeXXH3},
		{Bits: 2000, Hashes: 5, Scheme: bloom.SchemeFNV1a},
	} {
		items := numbered("item", 100)
		l := bloom.NewLocal(g)
		for _, item := range items {
			l.Add(item)
		}
		want := stringOf(g, bloom.LayoutHeaded, items...)
		want = "\x89upbloom" + want[:8] + string(binary.BigEndian.AppendUint64(nil, uint64(len(want)))) + want
		want += string(binary.BigEndian.AppendUint64(nil, xxh3.HashString(want)))
		if got, err := l.MarshalBinary(); err != nil || string(got) != want {
			t.Errorf("%v: %v, stream\n%x, want\n%x", g, err, got, want)
		}
	}
}

// Open and Exists find what the format's description alone makes, with a second
// word of zero.
func TestReadsWhatTheFormatSays(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, g := range []bloom.Geometry{
			{Bits: 53 * 40, Hashes: 6, Seed: 99},
			{Bits: 2000, Hashes: 5, Scheme: bloom.SchemeXXH3, Seed: 99},
			{Bits: 2000, Hashes: 5, Scheme: bloom.SchemeFNV1a},
		} {
			items := numbered("theirs", 100)
			do(t, s, "SET", key, stringOf(g, bloom.LayoutHeaded, items...))
			f, err := bloom.Open(t.Context(), s.Client(), key, bloom.OpenSeed(g.Seed))
			if err != nil || f.Geometry() != g {
				t.Fatalf("Open = %v, %v, want %v", f, err, g)
			}
			found, err := f.ExistsAll(t.Context(), items)
			if err != nil || count(found) != len(items) {
				t.Errorf("%v: %d of %d found, %v", g, count(found), len(items), err)
			}
			exists(t, f, "never", false)
		}
	})
}
