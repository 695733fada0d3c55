package proof

import (
	"testing"

	"github.com/upbloom/upbloom/bloom"
)

// TestCheckCuckoo accepts right histories and rejects wrong ones.
func TestCheckCuckoo(t *testing.T) {
	a, b := cuckooTableOf(2).items[0], cuckooTableOf(2).items[1]
	n := int64(0)
	next := func(v Verb, r Result, items ...string) *called { // after those before
		n += 2
		return &called{call: Call{Verb: v, Items: items}, result: r, from: n, to: n + 1}
	}
	yes := func(v Verb, items ...string) *called {
		r := Result{End: Answered, Tried: 1}
		for range max(1, len(items)) {
			r.Yes = append(r.Yes, true)
		}
		return next(v, r, items...)
	}
	no := func(v Verb, items ...string) *called {
		c := yes(v, items...)
		clear(c.result.Yes)
		return c
	}
	ends := func(v Verb, e End, items ...string) *called { return next(v, Result{End: e, Tried: 1}, items...) }
	count := func(n int) *called { return next(Count, Result{End: Answered, Count: n}) }
	const intact, damaged = false, true
	stats := func(n int, is bool) *called {
		return next(Stats, Result{End: Answered, Count: n, Yes: []bool{is}})
	}
	full := func(items ...string) *called {
		return next(AddAll, Result{
			End: Partly, Full: true, Tried: 1, Yes: make([]bool, len(items)),
			States: make([]bloom.ItemState, len(items)),
		}, items...)
	}
	unknown := func(v Verb, item string) *called {
		return next(v, Result{End: Uncertain, Tried: 1, Maybe: 1}, item)
	}
	added := Result{End: Answered, Tried: 1, Yes: []bool{true, false, false, false, false}}
	twice := Result{End: Answered, Tried: 2, Yes: []bool{true}}
	for name, h := range map[string]struct {
		ok    bool
		calls []*called
	}{
		"one copy": {true, []*called{
			yes(Add, a), yes(Exists, a), yes(Remove, a), no(Exists, a),
		}},
		"two copies": {true, []*called{
			yes(Add, a), no(Add, a), yes(Remove, a), yes(Exists, a), count(1),
		}},
		"a copy is lost": {false, []*called{
			yes(Add, a), no(Add, a), yes(Remove, a), no(Exists, a),
		}},
		"removed twice": {false, []*called{
			yes(Add, a), yes(Remove, a), yes(Remove, a),
		}},
		"an item of nobody": {false, []*called{yes(Add, a), yes(Exists, b)}},
		"two are new":       {false, []*called{yes(Add, a), yes(Add, a)}},
		"equal items":       {false, []*called{yes(AddAll, a, a)}},
		"a wrong count":     {false, []*called{yes(Add, a), count(2)}},
		"full": {true, []*called{
			yes(Add, b), full(a, a, a, a, a), yes(Add, a),
		}},
		"full with room": {false, []*called{yes(Add, b), full(a, a)}},
		"full, and written": {false, []*called{
			yes(Add, b), full(a, a, a, a, a), no(Add, a),
		}},
		"beyond full": {false, []*called{next(AddAll, added, a, a, a, a, a)}},
		"it may have run": {true, []*called{
			yes(Create), unknown(Add, a), yes(Exists, a), yes(Remove, a), no(Exists, a),
		}},
		"or not": {true, []*called{
			yes(Create), unknown(Add, a), no(Exists, a), yes(Exists, a),
		}},
		"it ran twice": {false, []*called{
			yes(Create), unknown(Add, a), yes(Remove, a), yes(Remove, a),
		}},
		"removed by a repeat": {false, []*called{
			yes(Add, a), no(Add, a), unknown(Remove, a), yes(Exists, a), yes(Remove, a), no(Exists, a), yes(Exists, a),
		}},
		"sent twice":           {false, []*called{next(Add, twice, a)}},
		"uncertain of nothing": {false, []*called{next(Add, Result{End: Uncertain}, a)}},
		"gone":                 {false, []*called{yes(Add, a), ends(Exists, Missing, a)}},
		"deleted": {true, []*called{
			yes(Add, a), yes(Delete), ends(Exists, Missing, a), no(Delete),
		}},
		"other data": {false, []*called{yes(Add, a), ends(Exists, Mismatch, a)}},
		"overwritten": {true, []*called{
			yes(Add, a), ends(Overwrite, Answered), ends(Remove, Mismatch, a),
		}},
		"opened":                  {true, []*called{yes(Create), yes(Open)}},
		"opened, and not made":    {false, []*called{yes(Open)}},
		"opened, and gone":        {false, []*called{yes(Add, a), ends(Open, Missing)}},
		"opened in another shape": {false, []*called{yes(Add, a), no(Open)}},
		"damage": {true, []*called{
			yes(Add, a), yes(Smudge, b), no(Exists, a), stats(1, damaged),
		}},
		"damage is not told": {false, []*called{
			yes(Add, a), yes(Smudge, b), stats(1, intact),
		}},
		"no damage": {false, []*called{
			yes(Add, a), no(Smudge, b), stats(1, damaged),
		}},
		"another Config wrote": {false, []*called{yes(Create), yes(AddOther, a)}},
		"another Config":       {true, []*called{yes(Create), ends(AddOther, Mismatch, a)}},
		"away and back": {true, []*called{
			yes(Add, a), ends(Rename, Answered), ends(Exists, Missing, a),
		}},
	} {
		history := NewHistory(&Cuckoos{Slots: 2})
		history.calls = h.calls
		if err := history.Check(); (err == nil) != h.ok {
			t.Errorf("%s: Check() = %v, want it right: %v", name, err, h.ok)
		}
	}
}

// Near a region that lags, a Count may be an old one only if the caller takes
// what the region says.
func TestCheckCuckooNearARegion(t *testing.T) {
	item := cuckooTableOf(2).items[0]
	yes := Result{End: Answered, Tried: 1, Yes: []bool{true}}
	for _, near := range []bool{false, true} {
		history := NewHistory(&Cuckoos{Common: Common{Lag: true, ReadsNearest: near}, Slots: 2})
		history.calls = []*called{
			{call: Call{Verb: Add, Items: []string{item}}, result: yes, from: 1, to: 2},
			{call: Call{Verb: Remove, Items: []string{item}}, result: yes, from: 3, to: 4},
			{call: Call{Verb: Count}, result: Result{End: Answered, Count: 1}, from: 5, to: 6},
		}
		if err := history.Check(); (err == nil) != near {
			t.Errorf("Check() = %v, want an old count to be right: %v", err, near)
		}
	}
}

// TestCuckooItems proves two facts about the items: they fill few buckets, and
// with short fingerprints two of them are of one class.
func TestCuckooItems(t *testing.T) {
	for slots, classes := range map[int]int{2: itemCount + 1, 3: itemCount + 1, 4: itemCount + 1, 5: itemCount} {
		table := cuckooTableOf(slots)
		if len(table.items) != itemCount || len(table.within) != classes || len(table.within) > maxClasses {
			t.Errorf("%d slots: %d items, %d classes, want %d and %d", slots, len(table.items), len(table.within),
				itemCount, classes)
		}
		var copies [maxClasses]uint8
		class := table.class[table.items[0]]
		copies[class] = uint8(2 * slots)
		if table.within[class]&(table.within[class]-1) == 0 {
			copies[class] = uint8(slots) // in one bucket alone
		}
		if !table.fits(&copies) {
			t.Errorf("%d slots: %d copies of one item do not fit, want them to", slots, copies[class])
		}
		if copies[class]++; table.fits(&copies) {
			t.Errorf("%d slots: %d copies of one item fit, want them not to", slots, copies[class])
		}
	}
}
