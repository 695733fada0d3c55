package proof

import (
	"slices"
	"strconv"
	"testing"

	"github.com/upbloom/upbloom/bloom"
)

// isApart fails if the others and more cells together have all cells of an
// item.
func isApart(t *testing.T, g bloom.Geometry, items, others []string, more ...uint64) {
	t.Helper()
	for _, item := range items {
		cells := slices.Clone(more)
		for _, other := range others {
			if other != item {
				cells = g.Positions(cells, other)
			}
		}
		apart := func(p uint64) bool { return !slices.Contains(cells, p) }
		if !slices.ContainsFunc(g.Positions(nil, item), apart) {
			t.Errorf("%v: %s is found if the others are in, want a cell of its own", g, item)
		}
	}
}

// TestScalableItemsApart proves a fact the model relies on: the items that calls
// ask for are no false positives.
func TestScalableItemsApart(t *testing.T) {
	for n := range 6 {
		s := Scalables{Common: Common{Seed: uint64(n%2) * secretSeed}, FPRate: []float64{0.5, 0.3, 0.05}[n/2], Layers: 4}
		smudged := geometryOf(smudgeConfig)
		for i := range s.Layers {
			g := s.layer(i)
			var cells []uint64
			if i == 0 {
				for _, item := range ownItems {
					cells = smudged.Positions(cells, item)
				}
			}
			isApart(t, g, ownItems, slices.Concat(ownItems, s.more()), cells...)
		}
	}
}

// TestShardedItemsApart is TestScalableItemsApart for shards. One shard may
// have all items.
func TestShardedItemsApart(t *testing.T) {
	all := allItems(itemCount)
	smudged := geometryOf(smudgeConfig)
	var cells []uint64
	for _, item := range all {
		cells = smudged.Positions(cells, item)
	}
	for _, seed := range []uint64{0, secretSeed} {
		s := Shardeds{Common: Common{Seed: seed}, Shards: 2}
		isApart(t, s.geometry(), all, all, cells...)
	}
}

// TestLongItemsApart proves a fact the model relies on: no two items of a Long
// filter have a cell in common, and its string moves in several parts.
func TestLongItemsApart(t *testing.T) {
	for _, seed := range []uint64{0, secretSeed} {
		f := Filters{Common: Common{Seed: seed}, Long: true, Bits: longBits, Hashes: longHashes}
		g, has := f.geometry(), make(map[uint64]bool)
		all := bits{}
		for _, item := range ownItems {
			for _, at := range g.Positions(nil, item) {
				has[at] = true
			}
			all = all.with(f.cells(Add, item))
		}
		if want := len(ownItems) * longHashes; len(has) != want || all.count() != want {
			t.Errorf("the items have %d cells, and %d in the model, want %d", len(has), all.count(), want)
		}
		if parts := (g.Bytes(bloom.LayoutHeaded) + partBytes - 1) / partBytes; parts < 3 {
			t.Errorf("the string has %d parts, want 3", parts)
		}
		l := localOf(g, ownItems[1:2])
		if got, want := cellsOf(l), f.cells(Add, ownItems[1]); got != want {
			t.Errorf("a Local has the cells %v, want %v", got, want)
		}
		l.Add("a stranger")
		if !cellsOf(l).has(bitsOf([]uint64{fromNowhere}, MaxBits)) {
			t.Error("a cell from nowhere is not noticed")
		}
	}
}

// TestCheckScalable checks histories of a filter of up to three layers.
func TestCheckScalable(t *testing.T) {
	checkAll(t, named{&Scalables{FPRate: 0.5, Layers: 3}, letters}, []sample{
		{"added, found after it grew", true, "add a: new; fill: did Count=1; addall/More=15 b: new; " +
			"stats: Count=2; exists a: yes"},
		{"lost when it grew", false, "add a: new; fill: did Count=1; exists a: no"},
		{"new in two layers", false, "add a: new; fill: did Count=1; add a: new"},
		{"it grew without need", false, "add a: new; stats: Count=2"},
		{"it grew too far", false, "add a: new; fill: did Count=1; fill: did Count=2; fill: did Count=3; " +
			"stats: Count=4"},
		{"it shrank", false, "addall/More=1400 a: new; stats: Count=2; stats: Count=1"},
		{"deleted, and none is missing", true, "add a: new; delete: did; cardinality: missing"},
		{"none is missing, and was not deleted", false, "add a: new; cardinality: missing"},
		{"opened", true, "add a: new; open: fits"},
		{"few items are no reason to grow", false, "addall/More=15 a: new; addall/More=15 b: new; " +
			"stats: Count=2"},
		{"opened, and there is none", false, "open: fits"},
		{"it has no TTL", false, "add a: new; setttl: did; hasttl: none"},
		{"its layers are not what the string counts", false, "add a: new; " +
			"layers: yes Count=1 Alarm=layer_0_took_2_items,_and_has_1"},
		{"it has a TTL after Persist", false, "add a: new; persist: not; hasttl: has"},
	})
}

// TestWrongLayers compares strings with what their words say. A Fill has taken
// all of the first layer but three items.
func TestWrongLayers(t *testing.T) {
	s := &Scalables{FPRate: 0.05, Layers: 3}
	of := func(n, taken int, layers ...[]string) *layered {
		value := make([]byte, s.offset(3)/8)
		for i, items := range layers {
			for _, item := range items {
				for _, p := range s.layer(i).Positions(nil, item) {
					at := s.offset(i) + p
					value[at/8] |= 128 >> (at % 8)
				}
			}
		}
		return &layered{
			value: string(value), birth: 7, capacity: 1<<16 | 9<<11 | 1952, n: n, taken: taken,
			filled: map[string]string{"7:1": " " + strconv.Itoa(layerItems-3)},
		}
	}
	a, b := s.more()[:3], s.more()[3:5]
	both := append(slices.Clone(a), b...)
	for _, tt := range []struct {
		name string
		l    *layered
		ok   bool
	}{
		{"two layers", of(2, 2, a, b), true},
		{"one layer", of(1, layerItems-1, a[:2]), true},
		{"the newest is not counted", of(2, 0, a, b), false},
		{"found items are counted", of(2, 3, a, b), false},
		{"it began before the first was full", of(2, 2, a[:2], b), false},
		{"the first has more than it is for", of(2, 0, both), false},
		{"an item in both", of(2, 3, a, append(slices.Clone(b), a[0])), false},
		{"a layer that is not there", of(1, layerItems, a, b), false},
		{"full, and there is no next one", of(1, layerItems+2, both), false},
	} {
		if wrong := s.wrongIn(tt.l); (wrong == "") != tt.ok {
			t.Errorf("%s: %q", tt.name, wrong)
		}
	}
}

// TestCheckSharded checks histories of two shards. Items a and b are in one each. In the
// two histories with a session y, an Add of x met other data, which are gone, and then
// shard 1 was evicted.
func TestCheckSharded(t *testing.T) {
	if causes[5] != bloom.ErrRecreated {
		t.Fatal("Cause 6 is another one")
	}
	s := &Shardeds{Common: Common{MustExist: true}, Shards: 2, Spread: 2}
	in := make(map[string]string)
	for _, item := range allItems(itemCount) {
		in[[]string{"a", "b"}[s.shardOf()(item)]] = item
	}
	checkAll(t, named{s, in}, []sample{
		{"created, added, found", true, "create: made; addall a b: new new; existsall a b: yes yes; " +
			"stats: Counts=6,6"},
		{"one is lost", false, "create: made; addall a b: new new; existsall a b: yes no"},
		{"counted wrong", false, "create: made; add a: new; stats: Counts=6,6"},
		{"one database is down", true, "create: made; addall a b: partly new new done undone; " +
			"existsall a b: yes no"},
		{"one was down, and its item is in", false, "create: made; addall a b: partly new new done undone; " +
			"existsall a b: yes yes"},
		{"one was done, and is lost", false, "create: made; addall a b: partly new new done undone; " +
			"exists a: no"},
		{"one was made anew", true, "create: made; " +
			"3-8 addall a b: partly new new unsure unsure ErrGone ErrAnew; 4-5 delete: did; " +
			"6-7 create: made; exists a: no"},
		{"the cause of its context was such an error", true, "create: made; " +
			"addall/Cause=6 a b: partly new new done unsure ErrGone ErrAnew; existsall a b: yes yes"},
		{"one was made anew, and the other's item counts as in", false, "create: made; " +
			"3-8 addall a b: partly new new done unsure ErrGone ErrAnew; 4-5 delete: did; 6-7 create: made; " +
			"exists a: no"},
		{"evicted", true, "create: made; add a: new; clear: did; exists a: missing Shards=0; exists b: no; " +
			"create: missing Shards=0"},
		{"evicted, and no", false, "create: made; add a: new; clear: did; exists a: no"},
		{"the other was evicted", false, "create: made; clear/Shard=1: did; exists a: missing Shards=0"},
		{"an Add made a shard", false, "add a: new"},
		{"made twice", false, "1-4 create: made; 2-3 create: made"},
		{"made once, and found", true, "create: made; create: found"},
		{"never made", true, "exists a: missing Shards=0"},
		{"made by nobody", false, "1-4 create: found; 2-3 create: found"},
		{"made by an unknown one", true, "create: unknown; create: found"},
		{"half made", true, "create: unknown; exists a: no; exists b: missing Shards=1"},
		{"made anew, and items were lost", false, "create: made; addall a b: new new; clear: did; " +
			"create: made"},
		{"made anew by a late attempt", true, "create: made lost; addall a b: new new; clear: did; " +
			"create: found; exists a: no"},
		{"made anew, and all was lost", true, "create: made; add a: new; clear: did; create: made"},
		{"half made, and opened", false, "1-8 create: unknown; 2-3 exists b: missing Shards=1; " +
			"4-5 open: fits; 6-7 exists b: missing Shards=1"},
		{"made, and opened", true, "1-8 create: unknown; 2-3 exists b: missing Shards=1; 4-5 open: fits; " +
			"6-7 exists b: no"},
		{"half deleted, and opened", false, "create: made; delete: unknown; exists b: missing Shards=1; " +
			"open: fits"},
		{"half deleted while another made it, and opened", true, "create: made; 3-10 delete: unknown; " +
			"4-9 create: unknown; 5-6 exists b: missing Shards=1; 7-8 open: fits"},
		{"evicted in part, and opened", true, "create: made; clear/Shard=1: did; open: fits; " +
			"exists b: missing Shards=1"},
		{"lost, and nothing was added", false, "create: unknown; create: missing Shards=1"},
		{"lost, and items were added to a whole filter", false, "1-6 create: missing Shards=0; " +
			"2-3 create: made; 4-5 add a: new"},
		{"a Create that misses a shard tells the handle of the others", true, "y>overwrite: no; " +
			"add a: foreign Shards=0; y>clear: did; y>create: made; y>add a: new; y>clear/Shard=1: did; " +
			"create: missing Shards=1; add a: seen"},
		{"nobody tells the handle, and it writes", false, "y>overwrite: no; add a: foreign Shards=0; " +
			"y>clear: did; y>create: made; y>add a: new; y>clear/Shard=1: did; add a: seen"},
		{"deleted, and one is there", false, "create: made; delete: did; exists b: no"},
		{"another number of shards", true, "other.create: made; exists a: foreign Shards=0"},
		{"another number of shards, and no", false, "other.create: made; exists a: no"},
		{"another number of shards deletes ours", false, "create: made; other.delete: did; " +
			"exists a: missing Shards=0"},
		{"other order, not found", true, "create: made; exists/Turned a: missing Shards=0"},
		{"other order, and no", false, "create: made; exists/Turned a: no"},
		{"other order, opened", false, "create: made; open/Turned: fits"},
		{"opened with another number of shards", false, "create: made; open: differs"},
		{"another number of shards, opened", true, "other.create: made; open: differs"},
		{"other order, made", false, "create: made; create/Turned: made"},
		{"loaded", true, "create: made; load a b: found Count=12; add b: seen"},
		{"loaded, and lost", false, "create: made; load a b: found Count=12; exists b: no"},
		{"one shard loaded, and counted wrong", false, "create: made; merge a b: found Count=5"},
		{"one shard loaded, and the other too", false, "create: made; merge a b: found Count=6; exists b: yes"},
	})
}

// TestShardsIn reads the shards from error texts.
func TestShardsIn(t *testing.T) {
	for text, want := range map[string][]int{
		"": nil, "bloom: shard 1 of 4: no": {1}, "x: bloom: shard 0, 2 of 3 not found: never": {0, 2},
	} {
		if got := shardsIn(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
