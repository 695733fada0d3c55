package bloom

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/format"
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
		Hashes: rapid.IntRange(1, format.MaxHashes).Draw(t, "hashes"),
		Bits:   rapid.Uint64Range(1, 3000).Draw(t, "bits"),
	}
	if g.Scheme == SchemeBlocked {
		g.Bits *= wordBits
		g.Hashes += g.Hashes % 2
		g.Hashes = min(g.Hashes, format.MaxHashes-1)
	}
	if g.Scheme != SchemeFNV1a {
		g.Seed = rapid.Uint64().Draw(t, "seed")
	}
	return g
}

// A Redis string gets the same bytes by SETBIT of bit 192+p for each position p
// of each item. Add and Exists answer from the bits before.
func TestLocalIsTheRedisString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawLocalGeometry(t)
		l := NewLocal(g)
		want := make([]byte, g.Bytes(LayoutHeaded))
		format.SetWords(want, g.header(KindFilter), 0)
		items := rapid.SliceOf(rapid.StringN(0, 8, -1)).Draw(t, "items")
		for _, item := range items {
			isNew := false
			for _, p := range g.Positions(nil, item) {
				at, bit := format.HeaderBytes+p/8, byte(0x80)>>(p%8)
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
		if !bytes.Equal(l.raw(), want) || l.setBits() != countBits(want[format.HeaderBytes:]) {
			t.Fatalf("%d bits set, want %d", l.setBits(), countBits(want[format.HeaderBytes:]))
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
		{Bits: format.Scheme(SchemeBlocked).MaxCells(format.HeaderBits), Hashes: 2},
		{Bits: format.Scheme(SchemeXXH3).MaxCells(format.HeaderBits), Hashes: 1, Scheme: SchemeXXH3},
	} {
		l := NewLocal(g)
		if g.Scheme == SchemeBlocked {
			l.learnWord(g.Bits/wordBits-1, 1)
		} else {
			l.setCell(g.Bits - 1)
		}
		last := format.HeaderBits + g.Bits - 1
		if got, want := l.raw()[last/8], byte(0x80)>>(last%8); got != want {
			t.Errorf("%v: the last byte is %08b, want %08b", g, got, want)
		}
	}
}

func TestLocalStats(t *testing.T) {
	g, err := Config{Capacity: 1000, FPRate: 0.01, Seed: 3}.Geometry()
	noError(t, err)
	l := NewLocal(g)
	for i := range 500 {
		l.Add(nthItem("user", i))
	}
	s := l.Stats()
	if s.Geometry != g || !s.Seeded || s.Bytes != g.Bytes(LayoutHeaded) || s.TTL != 0 || s.Saturated {
		t.Errorf("Stats = %+v, want a seeded filter of %v", s, g)
	}
	if s.SetBits != countBits(l.Bytes()[format.HeaderBytes:]) || s.Items < 470 || s.Items > 530 {
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
		noError(t, a.Merge(b))
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
	for format.SeedTag(other) != format.SeedTag(seed) {
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
		"too many bits":     {Bits: format.MaxStringBits, Hashes: 7, Scheme: SchemeXXH3},
		"far too many bits": {Bits: math.MaxUint64 - math.MaxUint64%53, Hashes: 4},
		"counters":          {Bits: 530, Hashes: 4, Scheme: Scheme(format.Counters4)},
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
	if s := l.Stats(); !reflect.DeepEqual(s, Stats{}) {
		t.Errorf("Stats of a zero Local: %+v", s)
	}
	if n, err := l.WriteTo(io.Discard); n != 0 || err == nil {
		t.Error("a zero Local was written")
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
		for i := range format.HeaderBytes {
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

// largeLocal returns an empty Local large enough to find words ahead.
func largeLocal(tb testing.TB) *Local {
	g, err := Config{Capacity: 1_700_000, FPRate: 0.01, Seed: 11}.Geometry()
	if err != nil {
		tb.Fatal(err)
	}
	l := NewLocal(g)
	if !l.isLarge() {
		tb.Fatalf("%v is not large", g)
	}
	return l
}

// Batches answer as one item after another does, even if items are in them
// twice, and leave the same string.
func TestLocalBatchesAreAsOneByOne(t *testing.T) {
	large := largeLocal(t).Geometry()
	rapid.Check(t, func(t *rapid.T) {
		g := drawLocalGeometry(t)
		ahead := g.Scheme == SchemeBlocked && rapid.Bool().Draw(t, "ahead")
		if rapid.IntRange(0, 19).Draw(t, "large") == 0 {
			g, ahead = large, false // the public calls look ahead by themselves
		}
		one, all, seq := NewLocal(g), NewLocal(g), NewLocal(g)
		item := rapid.Custom(func(t *rapid.T) string {
			return nthItem("item", rapid.IntRange(0, 99).Draw(t, "item"))
		})
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			items := rapid.SliceOfN(item, 0, 200).Draw(t, "items")
			want := addedOneByOne(one, items)
			gatherer := newGatherer(seq)
			var got []bool
			if ahead {
				got = make([]bool, len(items))
				all.addAhead(items, got)
				gatherer.group = seq.group()
			} else {
				got = all.AddAll(items)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("AddAll(%q) = %v, want %v", items, got, want)
			}
			for _, item := range items {
				gatherer.add(item)
			}
			result := gatherer.flush()
			if want := (AddResult{Items: uint64(len(items)), New: uint64(countTrue(want))}); result != want {
				t.Fatalf("the gatherer of %q says %+v, want %+v", items, result, want)
			}
		}
		if !bytes.Equal(all.buf, one.buf) || !bytes.Equal(seq.buf, one.buf) {
			t.Fatal("the string is another than that of items added one by one")
		}
		asked := rapid.SliceOfN(item, 0, 200).Draw(t, "asked")
		found := all.ExistsAll(asked)
		if ahead {
			all.existAhead(asked, found)
		}
		for i, item := range asked {
			if found[i] != one.Exists(item) {
				t.Fatalf("ExistsAll says %v of %q, Exists the opposite", found[i], item)
			}
		}
	})
}

func addedOneByOne(l *Local, items []string) (added []bool) {
	for _, item := range items {
		added = append(added, l.Add(item))
	}
	return added
}

func countTrue(answers []bool) (n int) {
	for _, yes := range answers {
		if yes {
			n++
		}
	}
	return n
}

// A batch of a large filter, of several groups and a rest.
func TestLargeLocalBatches(t *testing.T) {
	all, one := largeLocal(t), largeLocal(t)
	items := make([]string, 3*all.group()+5)
	for i := range items {
		items[i] = nthItem("user", i%20)
	}
	want := addedOneByOne(one, items)
	if got := all.AddAll(items); !slices.Equal(got, want) || countTrue(got) != 20 {
		t.Errorf("AddAll says %d new ones: %v", countTrue(got), got)
	}
	seq := largeLocal(t)
	if got := seq.AddSeq(slices.Values(items)); got.Items != uint64(len(items)) || got.New != uint64(countTrue(want)) {
		t.Errorf("AddSeq = %+v", got)
	}
	if !bytes.Equal(all.buf, one.buf) || !bytes.Equal(seq.buf, one.buf) {
		t.Error("the string is another than that of items added one by one")
	}
	asked := []string{items[0], "other", items[1]}
	if got := all.ExistsAll(asked); !slices.Equal(got, []bool{true, false, true}) {
		t.Errorf("ExistsAll = %v", got)
	}
}

func TestLocalBatchesWithoutItems(t *testing.T) {
	for _, l := range []*Local{new(Local), NewLocal(Geometry{Bits: 530, Hashes: 2}), largeLocal(t)} {
		if got := l.AddAll(nil); got != nil {
			t.Errorf("%v: AddAll = %v", l, got)
		}
		if got := l.ExistsAll([]string{}); got != nil {
			t.Errorf("%v: ExistsAll = %v", l, got)
		}
		if got := l.AddSeq(slices.Values([]string{})); got != (AddResult{}) || l.setBits() != 0 {
			t.Errorf("%v: AddSeq = %+v", l, got)
		}
	}
	if got := new(Local).ExistsAll([]string{"a"}); !slices.Equal(got, []bool{false}) {
		t.Errorf("ExistsAll of a zero Local = %v", got)
	}
}

// The reciprocal never finds too high a quotient. For the first two remainders
// alone it may be one too low. A wrong guess at the branch that corrects it
// costs as much as a word of an item.
func TestReciprocalIsSeldomLow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.Uint64Range(1, format.Scheme(SchemeBlocked).MaxCells(format.HeaderBits)/wordBits).Draw(t, "words")
		x := rapid.Uint64().Draw(t, "x") * 0x9E3779B97F4A7C15 // rapid likes small numbers
		if rapid.Bool().Draw(t, "edge") {
			x -= x % words
			x += rapid.Uint64Range(0, min(3, words-1)).Draw(t, "rest")
		}
		inverse, shift := reciprocal(words)
		q, _ := bits.Mul64(x, inverse)
		if low := x/words - q>>shift; low > 1 || low == 1 && x%words > 1 {
			t.Fatalf("%d / %d: %d, want %d", x, words, q>>shift, x/words)
		}
	})
}

// wordAt multiplies by a reciprocal. It finds the word and the bits of the
// definition, which divides, even at the ends of both ranges.
func TestWordAtAgreesWithTheDefinition(t *testing.T) {
	edges := []uint64{0, 1, 52, 53, 1 << 32, 1 << 63, math.MaxUint64 - 1, math.MaxUint64}
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.OneOf(
			rapid.Uint64Range(1, format.Scheme(SchemeBlocked).MaxCells(format.HeaderBits)/wordBits),
			rapid.SampledFrom([]uint64{1, 2, 3, 1 << 20, format.Scheme(SchemeBlocked).MaxCells(format.HeaderBits) / wordBits}),
		).Draw(t, "words")
		x := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom(edges), rapid.Custom(func(t *rapid.T) uint64 {
			times := rapid.Uint64Range(0, math.MaxUint64/words).Draw(t, "times")
			return words*times - rapid.Uint64Range(0, 1).Draw(t, "less")
		})).Draw(t, "x")
		w, a, b := cells.BlockedBits(x, words)
		inverse, shift := reciprocal(words)
		bit, pair := wordAt(x, words, inverse, shift, sharedPairs())
		if bit != format.HeaderBits+wordBits*w || pair != 1<<(63-a)|1<<(63-b) {
			t.Fatalf("bit %d, pair %x, want word %d, bits %d and %d", bit, pair, w, a, b)
		}
	})
}
