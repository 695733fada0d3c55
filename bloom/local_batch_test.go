package bloom

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

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
