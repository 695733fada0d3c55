package format

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// sampleHeader is the header of a blocked filter of 10,746,333 bits, k=4.
const sampleHeader = 1<<52 | 1<<48 | 4<<39 | 10_746_333

func TestParseHeaderRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		word uint64
		says string
	}{
		{"nothing", 0, "no header"},
		{"no marker", sampleHeader &^ Marker, "no header"},
		{"ASCII text", 0x48656c6c6f20576f >> 11, "no header"},
		{"54 bits", sampleHeader | 1<<53, "no header"},
		{"64 bits", sampleHeader | 1<<63, "no header"},
		{"version 0", sampleHeader &^ (3 << versionShift), "version 0"},
		{"version 3", sampleHeader | 3<<versionShift, "version 3"},
		{"an Add to https:/", sampleHeader + 0x68747470733a2f>>3, "an Add has changed"},
		{"scheme 6", sampleHeader | 6<<schemeShift, "Scheme(6)"},
		{"scheme 7", sampleHeader | 7<<schemeShift, "Scheme(7)"},
		{"no hashes", sampleHeader &^ (63 << hashesShift), "k=0"},
		{"no cells", sampleHeader &^ (1<<32 - 1), " 0 cells"},
		{"odd hashes", sampleHeader | 1<<hashesShift, "k=5"},
		{"half a word", sampleHeader + 1, "10746334 cells"},
		{"too many words", sampleHeader - 10_746_333 + 53*81_037_117, "4294967201 cells"},
		{"too many cells", sampleHeader | 4<<schemeShift | (1<<32 - 191), "cells"},
		{"too many counters", sampleHeader | 2<<schemeShift | 1<<30, "cells"},
		{"fnv1a with a seed", sampleHeader | 1<<schemeShift | 1<<seedTagShift, "seed"},
		{"cuckoo with one slot", sampleHeader ^ 5<<schemeShift ^ 5<<hashesShift, "k=1"},
		{"cuckoo with six slots", sampleHeader ^ 5<<schemeShift ^ 2<<hashesShift, "k=6"},
		{"cuckoo without a bucket", sampleHeader&^(1<<32-1) | 5<<schemeShift, " 0 cells"},
		{"cuckoo with half a bucket", sampleHeader + 1 | 5<<schemeShift, "10746334 cells"},
	} {
		got, err := ParseHeader(c.word)
		if !errors.Is(err, ErrNotFilter) || !strings.Contains(err.Error(), c.says) ||
			!strings.HasSuffix(err.Error(), "; use a key that holds nothing else") {
			t.Errorf("%s: %+v, %v, want ErrNotFilter that says %q, and an advice", c.name, got, err, c.says)
		}
	}
}

func TestParseHeaderLimits(t *testing.T) {
	for _, h := range []Header{
		{Bits: 53, Hashes: 2},
		{Bits: 4_294_967_095, Hashes: 62},
		{Bits: 1, Hashes: 1, Scheme: XXH3},
		{Bits: 1<<32 - 192, Hashes: 63, Scheme: XXH3},
		{Bits: 1<<32 - 192, Hashes: 63, Scheme: FNV1a},
		{Bits: 1<<30 - 48, Hashes: 63, Scheme: Counters4},
		{Bits: 1<<29 - 24, Hashes: 63, Scheme: Counters8},
		{Bits: 4_294_967_095, Hashes: 5, Scheme: Buckets},
	} {
		for h.Kind = Filter; h.Kind <= Window; h.Kind++ {
			want := h
			if h.Kind == Filter && h.Scheme == Buckets {
				want.Kind = Cuckoo
			}
			got, err := ParseHeader(h.Word())
			if err != nil || got != want {
				t.Errorf("parsed %+v, %v, want %+v", got, err, want)
			}
		}
		h.Kind = Window
		h.Bits++
		if got, err := ParseHeader(h.Word()); h.Bits > 2 && err == nil {
			t.Errorf("%+v is accepted: %+v", h, got)
		}
	}
}

// The sum of any two header words overflows a u53. Therefore INCRBY with
// OVERFLOW FAIL is "set if zero". The same holds for birth numbers.
func TestHeadersNeverAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawHeader(t), drawHeader(t)
		if sum := a + b; sum < 1<<53 {
			t.Fatalf("%#x + %#x fits a u53", a, b)
		}
		rate, random := rapid.Uint64Range(0, RateMask).Draw(t, "rate"), rapid.Uint64()
		c, d := NewBirth(random.Draw(t, "random"), rate), NewBirth(random.Draw(t, "random"), rate)
		if c>>53 != 0 || d>>53 != 0 || c+d < 1<<53 || uint64(c)&RateMask != rate || uint64(d)&RateMask != rate {
			t.Fatalf("birth numbers %#x and %#x, want two of 53 bits with the top one set and the rate %d",
				c, d, rate)
		}
	})
}

func drawHeader(t *rapid.T) uint64 {
	h := Header{
		Scheme: Scheme(rapid.Uint8Range(0, 5).Draw(t, "scheme")),
		Hashes: rapid.IntRange(1, MaxHashes).Draw(t, "hashes"),
		Kind:   Kind(rapid.Uint8Range(0, 3).Draw(t, "kind")),
	}
	h.Bits = rapid.Uint64Range(1, h.Scheme.MaxCells(HeaderBits)).Draw(t, "bits")
	if h.Scheme.OfWords() {
		h.Bits = max(h.Bits-h.Bits%WordBits, WordBits)
		h.Hashes = 2 + 2*(h.Hashes%2)
	}
	if h.Scheme != FNV1a {
		h.SeedTag = SeedTag(rapid.Uint64().Draw(t, "seed"))
	}
	return h.Word()
}

// Only the seed 0 has the tag 0. Other seeds spread over the other 127 tags.
func TestSeedTag(t *testing.T) {
	if got := SeedTag(0); got != 0 {
		t.Errorf("SeedTag(0) = %d, want 0", got)
	}
	var count [128]int
	for seed := uint64(1); seed <= 127*100; seed++ {
		count[SeedTag(seed)]++
	}
	if count[0] != 0 {
		t.Errorf("%d seeds have tag 0", count[0])
	}
	// 100 each are expected; 50 off is five standard deviations.
	for tag, n := range count[1:] {
		if n < 50 || n > 150 {
			t.Errorf("tag %d: %d of 12,700 seeds", tag+1, n)
		}
	}
}

func FuzzParseHeader(f *testing.F) {
	f.Add(uint64(sampleHeader))
	for _, s := range []Scheme{FNV1a, Counters4, Counters8, XXH3, Buckets, 6, 7} {
		f.Add(uint64(sampleHeader) | uint64(s)<<schemeShift)
	}
	f.Fuzz(func(t *testing.T, word uint64) {
		h, err := ParseHeader(word)
		if err != nil {
			if !errors.Is(err, ErrNotFilter) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		if again := h.Word(); again != word {
			t.Fatalf("%#x re-encodes to %#x", word, again)
		}
		if Bytes(HeaderBits, h.Bits, h.Scheme.CellBits()) > MaxStringBits/8 || h.Hashes < 1 || h.Hashes > MaxHashes {
			t.Fatalf("%#x: accepted %+v", word, h)
		}
		if h.Scheme == Blocked && (h.Bits%WordBits != 0 || h.Hashes%2 != 0) {
			t.Fatalf("%#x: accepted %+v", word, h)
		}
	})
}
