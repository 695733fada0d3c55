package bloom_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

var schemes = []bloom.Scheme{bloom.SchemeBlocked, bloom.SchemeXXH3, bloom.SchemeFNV1a}

// withoutBirth checks the second word of a plain filter against the format, and
// returns the string with that word zeroed.
func withoutBirth(t *testing.T, stored string, settled bool) string {
	t.Helper()
	word := ""
	for _, b := range []byte(stored[8:16]) {
		word += fmt.Sprintf("%08b", b)
	}
	if word[0] != '1' || word[53:63] != "0000000000" || (word[63] == '1') != settled {
		t.Errorf("second word %s, want 1, 42 random bits, the rate, 10 zeros and bit 127 to be %t", word, settled)
	}
	if stored[16:24] != strings.Repeat("\x00", 8) {
		t.Errorf("third word %x, want zeros", stored[16:24])
	}
	return stored[:8] + strings.Repeat("\x00", 8) + stored[16:]
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
				rt.Fatalf("Create = %v, %v, want true", created, err)
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

// A filter made by Add ends with its last set bit. The rest reads as zeros.
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

// storedVectors are the parts of testdata/v1.json about stored strings.
type storedVectors struct {
	Blocked, XXH3, FNV1a []vectorItem
	Header               []struct {
		M            uint64
		K            int
		Kind, Scheme int
		Seed         uint64 `json:"seed,string"`
		Bytes        string `json:"first_8_bytes_hex"`
	}
}

// mostVectorBits is the size of the largest filter to store: larger ones test
// nothing more, and are slow to compare.
const mostVectorBits = 1 << 17

func readStoredVectors(t *testing.T) (v storedVectors) {
	t.Helper()
	data, err := os.ReadFile("testdata/v1.json")
	noError(t, err)
	noError(t, json.Unmarshal(data, &v))
	return v
}

// The stored bits of an item equal the vectors of another implementation.
func TestStoredItemsOfVectors(t *testing.T) {
	vectors := readStoredVectors(t)
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c, items := s.Client(), 0
		for scheme, all := range map[bloom.Scheme][]vectorItem{
			bloom.SchemeBlocked: vectors.Blocked, bloom.SchemeXXH3: vectors.XXH3, bloom.SchemeFNV1a: vectors.FNV1a,
		} {
			for _, v := range all {
				if v.M > mostVectorBits {
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
		if items != 323 {
			t.Errorf("compared %d items, want 323", items)
		}
	})
}

// The stored headers equal the vectors of another implementation.
func TestStoredHeadersOfVectors(t *testing.T) {
	vectors := readStoredVectors(t)
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c, headers := s.Client(), 0
		for _, v := range vectors.Header {
			scheme := bloom.Scheme(v.Scheme)
			if v.Kind != 0 || !slices.Contains(schemes, scheme) || v.M > mostVectorBits {
				continue
			}
			headers++
			s.FlushAll()
			f := handle(t, c, bloom.Config{Bits: v.M, Hashes: v.K, Seed: v.Seed, Scheme: scheme})
			create(t, f, true)
			got := withoutBirth(t, stored(t, s), false)
			if h := hex.EncodeToString([]byte(got[:8])); h != v.Bytes {
				t.Errorf("%v: header %s, want %s", f, h, v.Bytes)
			}
			if want := 24 + (v.M+7)/8; uint64(len(got)) != want {
				t.Errorf("%v: %d bytes, want %d", f, len(got), want)
			}
		}
		if headers != 19 {
			t.Errorf("compared %d headers, want 19", headers)
		}
	})
}

// A Local and its stream have the bytes of the format's description.
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

// Open and Exists read a string made from the format's description alone, with
// a second word of zero.
func TestReadsWhatTheFormatSays(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, g := range []bloom.Geometry{
			{Bits: 53 * 40, Hashes: 6, Seed: 99},
			{Bits: 2000, Hashes: 5, Scheme: bloom.SchemeXXH3, Seed: 99},
			{Bits: 2000, Hashes: 5, Scheme: bloom.SchemeFNV1a},
		} {
			items := numbered("theirs", 100)
			do(t, s, "SET", key, stringOf(g, bloom.LayoutHeaded, items...))
			f, err := bloom.Open(t.Context(), s.Client(), key, bloom.Config{Seed: g.Seed})
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
