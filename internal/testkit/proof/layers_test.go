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
	var items []string
	for n := range itemCount + len(lastItems) {
		items = append(items, scalableItem(n))
	}
	for n := range 6 {
		s := Scalables{Common: Common{Seed: uint64(n%2) * secretSeed}, FPRate: []float64{0.5, 0.3, 0.05}[n/2], Layers: 4}
		smudged := geometryOf(smudgeConfig)
		for i := range s.Layers {
			g := s.layer(i)
			var cells []uint64
			if i == 0 {
				for _, item := range items {
					cells = smudged.Positions(cells, item)
				}
			}
			isApart(t, g, items, append(slices.Clone(items), s.more()...), cells...)
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
		for n := range itemCount + 1 {
			for _, at := range g.Positions(nil, longItem(n)) {
				has[at] = true
			}
			all = all.with(f.cells(Add, longItem(n)))
		}
		if want := (itemCount + 1) * longHashes; len(has) != want || all.count() != want {
			t.Errorf("the items have %d cells, and %d in the model, want %d", len(has), all.count(), want)
		}
		if parts := (g.Bytes(bloom.LayoutHeaded) + partBytes - 1) / partBytes; parts < 3 {
			t.Errorf("the string has %d parts, want 3", parts)
		}
		l := localOf(g, []string{longItem(1)})
		if got, want := cellsOf(l), f.cells(Add, longItem(1)); got != want {
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
	const a, b, c = "item-0", "item-1", "item-2"
	const isNew, yes, no = true, true, false
	layers := func(n int) Result { return counted(n, told(true)) }
	wrong := layers(1)
	wrong.Alarm = "layer 0 took 2 items, and has 1"
	batch := func(from, to int64, more int, r Result, items ...string) one {
		o := call(from, to, AddAll, r, items...)
		o.call.More = more
		return o
	}
	for _, tt := range []struct {
		name  string
		right bool
		calls []one
	}{
		{"added, found after it grew", true, []one{
			call(1, 2, Add, told(isNew), a), call(3, 4, Fill, layers(1)),
			batch(5, 6, manyMore, told(isNew), b), call(7, 8, Stats, layers(2)), call(9, 10, Exists, told(yes), a),
		}},
		{"lost when it grew", false, []one{
			call(1, 2, Add, told(isNew), a), call(3, 4, Fill, layers(1)), call(5, 6, Exists, told(no), a),
		}},
		{"new in two layers", false, []one{
			call(1, 2, Add, told(isNew), a), call(3, 4, Fill, layers(1)), call(5, 6, Add, told(isNew), a),
		}},
		{"it grew without need", false, []one{call(1, 2, Add, told(isNew), a), call(3, 4, Stats, layers(2))}},
		{"it grew too far", false, []one{
			call(1, 2, Add, told(isNew), a), call(3, 4, Fill, layers(1)), call(5, 6, Fill, layers(2)),
			call(7, 8, Fill, layers(3)), call(9, 10, Stats, layers(4)),
		}},
		{"it shrank", false, []one{
			batch(1, 2, bigMore, told(isNew), a), call(3, 4, Stats, layers(2)), call(5, 6, Stats, layers(1)),
		}},
		{"deleted, and none is missing", true, []one{
			call(1, 2, Add, told(isNew), a), call(3, 4, Delete, told(true)), call(5, 6, Cardinality, ended(Missing)),
		}},
		{"none is missing, and was not deleted", false, []one{
			call(1, 2, Add, told(isNew), a), call(5, 6, Cardinality, ended(Missing)),
		}},
		{"opened", true, []one{call(1, 2, Add, told(isNew), a), call(3, 4, Open, told(true))}},
		{"few items are no reason to grow", false, []one{
			batch(1, 2, manyMore, told(isNew), a), batch(3, 4, manyMore, told(isNew), b), call(5, 6, Stats, layers(2)),
		}},
		{"opened, and there is none", false, []one{call(3, 4, Open, told(true))}},
		{"it has no TTL", false, []one{
			call(1, 2, Add, told(isNew), a), call(3, 4, SetTTL, told(true)), call(5, 6, HasTTL, told(false)),
		}},
		{"its layers are not what the string counts", false, []one{
			call(1, 2, Add, told(isNew), a), call(3, 4, Layers, wrong),
		}},
		{"it has a TTL after Persist", false, []one{
			call(1, 2, Add, told(isNew), a), call(3, 4, Persist, told(false)), call(5, 6, HasTTL, told(true)),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checkOf(t, &Scalables{FPRate: 0.5, Layers: 3}, tt.right, tt.calls)
		})
	}
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

// TestCheckSharded checks histories of two shards.
func TestCheckSharded(t *testing.T) {
	const isNew, seen, yes, no, made, was = true, false, true, false, true, false
	s := &Shardeds{Common: Common{MustExist: true}, Shards: 2, Spread: 2}
	var in [2]string // an item of each shard
	for _, item := range allItems(itemCount) {
		in[s.shardOf()(item)] = item
	}
	a, b := in[0], in[1]
	shard := func(n int, o one) one { o.call.Shard = n; return o }
	turned := func(o one) one { o.call.Turned = true; return o }
	caused := func(o one) one {
		o.call.Cause = 1 + slices.IndexFunc(causes, func(err error) bool { return err == bloom.ErrRecreated })
		return o
	}
	missing := func(shards ...int) Result { return Result{End: Missing, Tried: 1, Shards: shards} }
	partly := func(first, second bloom.ItemState) Result {
		return Result{End: Partly, Tried: 1, Yes: []bool{true, true}, States: []bloom.ItemState{first, second}}
	}
	anew := func(first, second bloom.ItemState) Result {
		r := partly(first, second)
		r.ErrGone, r.ErrAnew = true, true
		return r
	}
	stats := func(n ...int) Result { return Result{End: Answered, Tried: 1, Counts: n} }
	created := call(1, 2, Create, told(made))
	byOther := func(o one) one { o.session = "y"; return o }
	refused := []one{ // the handle's Add met other data, which are gone, and then shard 1 was evicted
		byOther(shard(0, call(1, 2, Overwrite, told(false)))), call(3, 4, Add, Result{End: Mismatch, Tried: 1, Shards: []int{0}}, a),
		byOther(shard(0, call(5, 6, Clear, told(true)))), byOther(call(7, 8, Create, told(made))),
		byOther(call(9, 10, Add, told(isNew), a)), byOther(shard(1, call(11, 12, Clear, told(true)))),
	}
	for _, tt := range []struct {
		name  string
		right bool
		calls []one
	}{
		{"created, added, found", true, []one{
			created, call(3, 4, AddAll, told(isNew, isNew), a, b), call(5, 6, ExistsAll, told(yes, yes), a, b),
			call(7, 8, Stats, stats(6, 6)),
		}},
		{"one is lost", false, []one{
			created, call(3, 4, AddAll, told(isNew, isNew), a, b), call(5, 6, ExistsAll, told(yes, no), a, b),
		}},
		{"counted wrong", false, []one{created, call(3, 4, Add, told(isNew), a), call(5, 6, Stats, stats(6, 6))}},
		{"one database is down", true, []one{
			created, call(3, 4, AddAll, partly(bloom.ItemDone, bloom.ItemNotDone), a, b),
			call(5, 6, ExistsAll, told(yes, no), a, b),
		}},
		{"one was down, and its item is in", false, []one{
			created, call(3, 4, AddAll, partly(bloom.ItemDone, bloom.ItemNotDone), a, b),
			call(5, 6, ExistsAll, told(yes, yes), a, b),
		}},
		{"one was done, and is lost", false, []one{
			created, call(3, 4, AddAll, partly(bloom.ItemDone, bloom.ItemNotDone), a, b),
			call(5, 6, Exists, told(no), a),
		}},
		{"one was made anew", true, []one{
			created, call(3, 8, AddAll, anew(bloom.ItemUnknown, bloom.ItemUnknown), a, b), call(4, 5, Delete, told(true)),
			call(6, 7, Create, told(made)), call(9, 10, Exists, told(no), a),
		}},
		{"the cause of its context was such an error", true, []one{
			created, caused(call(3, 4, AddAll, anew(bloom.ItemDone, bloom.ItemUnknown), a, b)),
			call(5, 6, ExistsAll, told(yes, yes), a, b),
		}},
		{"one was made anew, and the other's item counts as in", false, []one{
			created, call(3, 8, AddAll, anew(bloom.ItemDone, bloom.ItemUnknown), a, b), call(4, 5, Delete, told(true)),
			call(6, 7, Create, told(made)), call(9, 10, Exists, told(no), a),
		}},
		{"evicted", true, []one{
			created, call(3, 4, Add, told(isNew), a), shard(0, call(5, 6, Clear, told(true))),
			call(7, 8, Exists, missing(0), a), call(9, 10, Exists, told(no), b), call(11, 12, Create, missing(0)),
		}},
		{"evicted, and no", false, []one{
			created, call(3, 4, Add, told(isNew), a), shard(0, call(5, 6, Clear, told(true))),
			call(7, 8, Exists, told(no), a),
		}},
		{"the other was evicted", false, []one{
			created, shard(1, call(5, 6, Clear, told(true))), call(7, 8, Exists, missing(0), a),
		}},
		{"an Add made a shard", false, []one{call(3, 4, Add, told(isNew), a)}},
		{"made twice", false, []one{call(1, 4, Create, told(made)), call(2, 3, Create, told(made))}},
		{"made by nobody", false, []one{call(1, 4, Create, told(was)), call(2, 3, Create, told(was))}},
		{"made by an unknown one", true, []one{call(1, 4, Create, opened()), call(5, 6, Create, told(was))}},
		{"half made", true, []one{
			call(1, 4, Create, opened()), call(5, 6, Exists, told(no), a), call(7, 8, Exists, missing(1), b),
		}},
		{"made anew, and items were lost", false, []one{
			created, call(3, 4, AddAll, told(isNew, isNew), a, b), shard(0, call(5, 6, Clear, told(true))),
			call(7, 8, Create, told(made)),
		}},
		{"made anew by a late attempt", true, []one{
			call(1, 2, Create, lost(1, told(made))), call(3, 4, AddAll, told(isNew, isNew), a, b),
			shard(0, call(5, 6, Clear, told(true))), call(7, 8, Create, told(was)), call(9, 10, Exists, told(no), a),
		}},
		{"made anew, and all was lost", true, []one{
			created, call(3, 4, Add, told(isNew), a), shard(0, call(5, 6, Clear, told(true))),
			call(7, 8, Create, told(made)),
		}},
		{"half made, and opened", false, []one{
			call(1, 8, Create, opened()), call(2, 3, Exists, missing(1), b), call(4, 5, Open, told(true)),
			call(6, 7, Exists, missing(1), b),
		}},
		{"made, and opened", true, []one{
			call(1, 8, Create, opened()), call(2, 3, Exists, missing(1), b), call(4, 5, Open, told(true)),
			call(6, 7, Exists, told(no), b),
		}},
		{"half deleted, and opened", false, []one{
			created, call(3, 4, Delete, opened()), call(5, 6, Exists, missing(1), b), call(7, 8, Open, told(true)),
		}},
		{"half deleted while another made it, and opened", true, []one{
			created, call(3, 10, Delete, opened()), call(4, 9, Create, opened()),
			call(5, 6, Exists, missing(1), b), call(7, 8, Open, told(true)),
		}},
		{"evicted in part, and opened", true, []one{
			created, shard(1, call(3, 4, Clear, told(true))), call(5, 6, Open, told(true)),
			call(7, 8, Exists, missing(1), b),
		}},
		{"lost, and nothing was added", false, []one{call(1, 4, Create, opened()), call(5, 6, Create, missing(1))}},
		{"lost, and items were added to a whole filter", false, []one{
			call(1, 20, Create, missing(0)), call(2, 3, Create, told(made)), call(4, 5, Add, told(isNew), a),
		}},
		{"a Create that misses a shard tells the handle of the others", true, append(refused[:6:6],
			call(13, 14, Create, missing(1)), call(15, 16, Add, told(seen), a),
		)},
		{"nobody tells the handle, and it writes", false, append(refused[:6:6], call(15, 16, Add, told(seen), a))},
		{"deleted, and one is there", false, []one{
			created, call(3, 4, Delete, told(true)), call(5, 6, Exists, told(no), b),
		}},
		{"another number of shards", true, []one{
			call(1, 2, OtherCreate, told(made)), call(3, 4, Exists, Result{End: Mismatch, Tried: 1, Shards: []int{0}}, a),
		}},
		{"another number of shards, and no", false, []one{
			call(1, 2, OtherCreate, told(made)), call(3, 4, Exists, told(no), a),
		}},
		{"another number of shards deletes ours", false, []one{
			created, call(3, 4, OtherDelete, told(true)), call(5, 6, Exists, missing(0), a),
		}},
		{"other order, not found", true, []one{created, turned(call(3, 4, Exists, missing(0), a))}},
		{"other order, and no", false, []one{created, turned(call(3, 4, Exists, told(no), a))}},
		{"other order, opened", false, []one{created, turned(call(3, 4, Open, told(true)))}},
		{"opened with another number of shards", false, []one{created, call(3, 4, Open, told(false))}},
		{"another number of shards, opened", true, []one{
			call(1, 2, OtherCreate, told(made)), call(3, 4, Open, told(false)),
		}},
		{"other order, made", false, []one{created, turned(call(3, 4, Create, told(made)))}},
		{"loaded", true, []one{
			created, call(3, 4, Load, counted(12, told(was)), a, b), call(5, 6, Add, told(seen), b),
		}},
		{"loaded, and lost", false, []one{
			created, call(3, 4, Load, counted(12, told(was)), a, b), call(5, 6, Exists, told(no), b),
		}},
		{"one shard loaded, and counted wrong", false, []one{created, call(3, 4, Merge, counted(5, told(was)), a, b)}},
		{"one shard loaded, and the other too", false, []one{
			created, call(3, 4, Merge, counted(6, told(was)), a, b), call(5, 6, Exists, told(yes), b),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { checkOf(t, s, tt.right, tt.calls) })
	}
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
