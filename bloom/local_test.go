package bloom

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// localGeometries returns geometries of each one-bit scheme, some of odd sizes.
func localGeometries() []Geometry {
	return []Geometry{
		{Bits: 53 * 203, Hashes: 4},
		{Bits: 53 * 32, Hashes: 6, Seed: 99},
		{Bits: 53, Hashes: 2},
		{Bits: 53 * 9, Hashes: 62, Seed: 1},
		{Bits: 9586, Hashes: 7, Scheme: SchemeXXH3},
		{Bits: 1, Hashes: 1, Scheme: SchemeXXH3},
		{Bits: 1003, Hashes: 63, Scheme: SchemeXXH3, Seed: 7},
		{Bits: 9586, Hashes: 7, Scheme: SchemeFNV1a},
		{Bits: 17, Hashes: 3, Scheme: SchemeFNV1a},
	}
}

func drawLocalGeometry(t *rapid.T) Geometry {
	g := Geometry{
		Scheme: rapid.SampledFrom([]Scheme{SchemeBlocked, SchemeXXH3, SchemeFNV1a}).Draw(t, "scheme"),
		Hashes: rapid.IntRange(1, maxHashes).Draw(t, "hashes"),
		Bits:   rapid.Uint64Range(1, 3000).Draw(t, "bits"),
	}
	if g.Scheme == SchemeBlocked {
		g.Bits *= wordBits
		g.Hashes += g.Hashes % 2
		g.Hashes = min(g.Hashes, maxHashes-1)
	}
	if g.Scheme != SchemeFNV1a {
		g.Seed = rapid.Uint64().Draw(t, "seed")
	}
	return g
}

// The bytes are those of a Redis string with SETBIT of bit 192+p for each
// position p of each item. Add and Exists answer from the bits before.
func TestLocalIsTheRedisString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawLocalGeometry(t)
		l := NewLocal(g)
		want := make([]byte, g.Bytes(LayoutHeaded))
		putHeader(want, g)
		items := rapid.SliceOf(rapid.StringN(0, 8, -1)).Draw(t, "items")
		for _, item := range items {
			isNew := false
			for _, p := range g.Positions(nil, item) {
				at, bit := headerBytes+p/8, byte(0x80)>>(p%8)
				isNew = isNew || want[at]&bit == 0
				want[at] |= bit
			}
			if had := l.Exists(item); had != !isNew {
				t.Fatalf("Exists before Add is %v, want %v", had, !isNew)
			}
			if added := l.Add(item); added != isNew {
				t.Fatalf("Add is %v, want %v", added, isNew)
			}
		}
		for _, item := range items {
			if !l.Exists(item) {
				t.Fatal("an item that was added is not there")
			}
		}
		if got := l.Bytes(); !bytes.Equal(got, want) {
			t.Fatalf("the string is\n%x, want\n%x", got, want)
		}
		if !bytes.Equal(l.raw(), want) || l.setBits() != countBits(want[headerBytes:]) {
			t.Fatalf("%d bits set, want %d", l.setBits(), countBits(want[headerBytes:]))
		}
	})
}

func countBits(b []byte) (n uint64) {
	for _, c := range b {
		n += uint64(bits.OnesCount8(c))
	}
	return n
}

// The last word and cell of the largest filter are in its string. The test
// takes 512 MiB of address space but touches only a few pages.
func TestLargestLocal(t *testing.T) {
	if testing.Short() || bits.UintSize == 32 {
		t.Skip("takes 512 MiB of address space")
	}
	for _, g := range []Geometry{
		{Bits: maxCells(SchemeBlocked, LayoutHeaded), Hashes: 2},
		{Bits: maxCells(SchemeXXH3, LayoutHeaded), Hashes: 1, Scheme: SchemeXXH3},
	} {
		l := NewLocal(g)
		if g.Scheme == SchemeBlocked {
			l.learnWord(g.Bits/wordBits-1, 1)
		} else {
			l.setCell(g.Bits - 1)
		}
		last := headerBits + g.Bits - 1
		if got, want := l.raw()[last/8], byte(0x80)>>(last%8); got != want {
			t.Errorf("%v: the last byte is %08b, want %08b", g, got, want)
		}
	}
}

func TestLocalHasTheHeaderOfItsGeometry(t *testing.T) {
	for _, g := range localGeometries() {
		b := NewLocal(g).Bytes()
		if uint64(len(b)) != g.Bytes(LayoutHeaded) {
			t.Errorf("%v: %d bytes, want %d", g, len(b), g.Bytes(LayoutHeaded))
		}
		h, err := parseHeader(load(b, 0) >> 11)
		if err != nil || h.kind != KindFilter || h.geometry(g.Seed) != g {
			t.Errorf("%v: the header says %v, %v", g, h, err)
		}
		if !bytes.Equal(b[8:], make([]byte, len(b)-8)) {
			t.Errorf("%v: an empty filter has bits set behind its header", g)
		}
	}
}

// The rate measured over 20,000 absent items is within four standard errors of
// the formula.
func TestLocalFalsePositives(t *testing.T) {
	const n, asked = 10_000, 20_000
	for _, cfg := range []Config{
		{Capacity: n, FPRate: 0.01},
		{Capacity: n, FPRate: 0.01, Seed: 5},
		{Capacity: n, FPRate: 0.1},
		{Capacity: n, FPRate: 0.01, Scheme: SchemeXXH3},
	} {
		g, err := cfg.Geometry()
		if err != nil {
			t.Fatal(err)
		}
		l := NewLocal(g)
		for i := range n {
			l.Add(nthItem("user", i))
		}
		found := 0
		for i := range asked {
			if l.Exists(nthItem("other", i)) {
				found++
			}
		}
		p := cfg.FPRate
		spread := 4*math.Sqrt(p*asked) + 0.05*p*asked
		if off := math.Abs(float64(found) - p*asked); off > spread {
			t.Errorf("%v: %d of %d found, want %.0f +- %.0f", g, found, asked, p*asked, spread)
		}
		items, err := l.Cardinality()
		if err != nil || math.Abs(float64(items)-n) > 0.02*n {
			t.Errorf("%v: about %d items, %v, want %d", g, items, err, n)
		}
	}
}

func TestLocalStats(t *testing.T) {
	g, err := Config{Capacity: 1000, FPRate: 0.01, Seed: 3}.Geometry()
	if err != nil {
		t.Fatal(err)
	}
	l := NewLocal(g)
	for i := range 500 {
		l.Add(nthItem("user", i))
	}
	s := l.Stats()
	if s.Geometry != g || !s.Seeded || s.Bytes != g.Bytes(LayoutHeaded) || s.TTL != 0 || s.Saturated {
		t.Errorf("Stats = %+v, want a seeded filter of %v", s, g)
	}
	if s.SetBits != countBits(l.Bytes()[headerBytes:]) || s.Items < 470 || s.Items > 530 {
		t.Errorf("%d bits set, about %d items", s.SetBits, s.Items)
	}
	for p := range g.Bits {
		l.setCell(p)
	}
	if _, err := l.Cardinality(); !errors.Is(err, ErrSaturated) {
		t.Errorf("Cardinality of a full filter: %v, want ErrSaturated", err)
	}
	if s := l.Stats(); !s.Saturated || s.SetBits != g.Bits || s.LiveFPRate != 1 {
		t.Errorf("Stats = %+v, want a saturated filter", s)
	}
}

func TestLocalMerge(t *testing.T) {
	for _, g := range localGeometries() {
		a, b, both := NewLocal(g), NewLocal(g), NewLocal(g)
		for i := range 100 {
			a.Add(nthItem("a", i))
			b.Add(nthItem("b", i))
			both.Add(nthItem("a", i))
			both.Add(nthItem("b", i))
		}
		before := b.Bytes()
		if err := a.Merge(b); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), both.Bytes()) || !bytes.Equal(b.Bytes(), before) {
			t.Errorf("%v: the merged filter is another than one with all items", g)
		}
		if err := a.Merge(a); err != nil || !bytes.Equal(a.Bytes(), both.Bytes()) {
			t.Errorf("%v: merged into itself: %v", g, err)
		}
	}
}

func TestLocalMergeRefusesOtherFilters(t *testing.T) {
	g := Geometry{Bits: 53 * 40, Hashes: 4, Seed: 1}
	for name, other := range map[string]Geometry{
		"bits":   {Bits: 53 * 41, Hashes: 4, Seed: 1},
		"hashes": {Bits: 53 * 40, Hashes: 6, Seed: 1},
		"scheme": {Bits: 53 * 40, Hashes: 4, Seed: 1, Scheme: SchemeXXH3},
		// These two seeds have the same tag, but each Local knows its seed.
		"seed": {Bits: 53 * 40, Hashes: 4, Seed: seedOfSameTag(1)},
	} {
		l, o := NewLocal(g), NewLocal(other)
		o.Add("item")
		err := l.Merge(o)
		var m *MismatchError
		if !errors.As(err, &m) || m.Want != g || m.Got != other || m.OtherSeed != (name == "seed") {
			t.Errorf("%s: %v, want a MismatchError", name, err)
			continue
		}
		if l.setBits() != 0 {
			t.Errorf("%s: bits were set", name)
		}
		if text := err.Error(); strings.Contains(text, "key") || !strings.Contains(text, "other") {
			t.Errorf("%s: %q speaks of a key", name, text)
		}
	}
	if err := new(Local).Merge(NewLocal(g)); err == nil {
		t.Error("a zero Local took the items of another geometry")
	}
}

func seedOfSameTag(seed uint64) uint64 {
	other := seed + 1
	for seedTag(other) != seedTag(seed) {
		other++
	}
	return other
}

func TestLocalCloneAndBytesAreCopies(t *testing.T) {
	l := NewLocal(Geometry{Bits: 53 * 40, Hashes: 4})
	l.Add("a")
	twin, b := l.Clone(), l.Bytes()
	l.Add("b")
	if twin.Exists("b") || !twin.Exists("a") || twin.Geometry() != l.Geometry() {
		t.Error("a clone shares its cells")
	}
	if bytes.Equal(b, l.Bytes()) {
		t.Error("Bytes shares the cells")
	}
	clear(b)
	if !l.Exists("a") {
		t.Error("Bytes shares the cells")
	}
}

func TestNewLocalPanicsForImpossibleGeometries(t *testing.T) {
	for name, g := range map[string]Geometry{
		"zero":              {},
		"no hashes":         {Bits: 530},
		"negative hashes":   {Bits: 530, Hashes: -2},
		"too many hashes":   {Bits: 530, Hashes: 64},
		"odd hashes":        {Bits: 530, Hashes: 3},
		"half a word":       {Bits: 531, Hashes: 4},
		"too many bits":     {Bits: maxStringBits, Hashes: 7, Scheme: SchemeXXH3},
		"far too many bits": {Bits: math.MaxUint64 - math.MaxUint64%53, Hashes: 4},
		"counters":          {Bits: 530, Hashes: 4, Scheme: schemeXXH3Count4},
		"cuckoo":            {Bits: 530, Hashes: 5, Scheme: SchemeCuckoo},
		"unknown scheme":    {Bits: 530, Hashes: 4, Scheme: 9},
		"seeded fnv1a":      {Bits: 530, Hashes: 4, Scheme: SchemeFNV1a, Seed: 12345},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				text, _ := recover().(string)
				if !strings.Contains(text, "NewLocal") || !strings.Contains(text, "Config.Geometry") ||
					strings.Contains(text, "12345") {
					t.Errorf("panic with %q", text)
				}
			}()
			NewLocal(g)
		})
	}
}

func TestZeroLocal(t *testing.T) {
	var l Local
	if l.Exists("a") || l.setBits() != 0 || len(l.Bytes()) != 0 || l.Geometry() != (Geometry{}) {
		t.Error("a zero Local holds something")
	}
	if n, err := l.Cardinality(); n != 0 || err != nil {
		t.Errorf("Cardinality of a zero Local: %d, %v", n, err)
	}
	if s := l.Stats(); s != (Stats{}) {
		t.Errorf("Stats of a zero Local: %+v", s)
	}
	if _, err := l.MarshalBinary(); err == nil {
		t.Error("a zero Local was marshalled")
	}
	if err := l.Merge(l.Clone()); err != nil {
		t.Error(err)
	}
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "NewLocal") {
			t.Errorf("Add to a zero Local panics with %q", text)
		}
	}()
	l.Add("a")
}

func TestLocalHidesItsSeed(t *testing.T) {
	l := NewLocal(Geometry{Bits: 530, Hashes: 2, Seed: 123456789})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x"} {
		text := fmt.Sprintf(verb, l)
		if strings.Contains(text, "123456789") || strings.Contains(text, "75bcd15") ||
			!strings.Contains(text, "530 bits") {
			t.Errorf("%s shows %q", verb, text)
		}
	}
}

// A Mirror learns words, and a Snapshot learns parts of a string. Both rebuild
// the same filter, and leave the header alone.
func TestLocalLearnsWordsAndBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawLocalGeometry(t)
		src, byWord, byPart := NewLocal(g), NewLocal(g), NewLocal(g)
		for i := range 50 {
			src.Add(nthItem("user", i))
		}
		for w := range src.words {
			var word int64
			for a := range uint64(wordBits) {
				if src.hasCell(wordBits*w + a) {
					word |= 1 << (wordBits - 1 - a)
				}
			}
			byWord.learnWord(w, word)
		}
		if g.Scheme == SchemeBlocked && !bytes.Equal(byWord.Bytes(), src.Bytes()) {
			t.Fatal("the filter learned by words is another")
		}
		raw := src.Bytes()
		for i := range headerBytes {
			raw[i] = 0xff // belongs to the key
		}
		raw[len(raw)-1] |= 0xff >> ((g.Bits+7)%8 + 1) // after the last cell
		offset := 0
		step := rapid.IntRange(1, len(raw)).Draw(t, "step")
		for part := range slices.Chunk(raw, step) {
			byPart.orBytes(offset, part)
			offset += len(part)
		}
		byPart.orBytes(len(raw), []byte{0xff})
		byPart.orBytes(len(raw)-1, []byte{0, 0xff, 0xff})
		if !bytes.Equal(byPart.buf, src.buf) {
			t.Fatalf("the filter learned by parts of %d bytes is another:\n%x, want\n%x",
				step, byPart.buf, src.buf)
		}
	})
}

func nthItem(name string, i int) string { return name + strconv.Itoa(i) }
