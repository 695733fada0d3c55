package proof

import (
	"testing"
	"time"
)

// TestCheckMixed checks histories of a filter with a window or a scalable filter
// beside it.
func TestCheckMixed(t *testing.T) {
	const isNew, seen, missing, unsure = "new", "seen", "missing", "unsure"
	answer := func(what string) Result {
		switch what {
		case missing:
			return Result{End: Missing, Yes: []bool{false}, Safe: true, Err: "no filter"}
		case unsure:
			return Result{End: Uncertain, Yes: []bool{false}, Err: "uncertain"}
		}
		return Result{End: Answered, Yes: []bool{what == isNew}}
	}
	tick := int64(0)
	begin := func(c Call) *called {
		tick += 2
		one := &called{client: "x", call: c, from: tick, to: tick + 1}
		one.began, one.ended = time.Duration(tick)*time.Millisecond, time.Duration(tick+1)*time.Millisecond
		one.result = Result{End: Answered, Tried: 1, Timed: true, Yes: []bool{true}}
		return one
	}
	in := func(into []int, answers ...string) *called {
		c := begin(Call{Verb: AddIn, Items: []string{"item-0"}, Into: into})
		c.result.End, c.result.Yes = Partly, nil
		for _, a := range answers {
			c.result.Each = append(c.result.Each, answer(a))
		}
		return c
	}
	lost := func(c *called) *called { c.result.Maybe, c.result.Tried = 1, 2; return c }
	safe := func(c *called) *called { c.result.Safe, c.result.Err = true, "failed"; return c }
	deleted := func(part int) *called { return begin(Call{Verb: Delete, Shard: part}) }
	both, order, strict, twice := []int{0, intoOther}, []int{intoStrict, 0},
		[]int{intoStrict}, []int{intoOther, intoOtherAgain}
	for name, h := range map[string]struct {
		ok    bool
		calls []*called
	}{
		"new, then seen":                 {true, []*called{in(both, isNew, isNew), in(both, seen, seen)}},
		"one of them was deleted":        {true, []*called{in(both, isNew, isNew), deleted(1), in(both, seen, isNew)}},
		"the other was deleted":          {false, []*called{in(both, isNew, isNew), deleted(0), in(both, seen, isNew)}},
		"new twice in the first":         {false, []*called{in(both, isNew, isNew), in(both, isNew, seen)}},
		"new twice in the other":         {false, []*called{in(both, isNew, isNew), in(both, seen, isNew)}},
		"seen of nobody":                 {false, []*called{in(both, isNew, seen)}},
		"uncertain for no reason":        {false, []*called{in(both, isNew, isNew), in(both, unsure, seen)}},
		"uncertain after a lost answer":  {true, []*called{in(both, isNew, isNew), lost(in(both, unsure, unsure))}},
		"seen after a lost answer":       {false, []*called{lost(in(both, unsure, seen))}},
		"one handle twice":               {true, []*called{in(twice, isNew, seen)}},
		"one handle twice, both new":     {false, []*called{in(twice, isNew, isNew)}},
		"must exist, and missing":        {true, []*called{in(order, missing, isNew)}},
		"must exist, and made":           {false, []*called{in(strict, isNew)}},
		"must exist, and there":          {true, []*called{in(both, isNew, isNew), in(strict, seen)}},
		"safe, and in one of them":       {false, []*called{safe(in(order, missing, isNew))}},
		"safe, and in none of them":      {true, []*called{safe(in(strict, missing))}},
		"the second command first":       {false, []*called{in(both, isNew, isNew), deleted(0), in(order, seen, isNew)}},
		"looked up in each by itself":    {true, []*called{in(both, isNew, isNew), begin(Call{Verb: Exists, Items: []string{"item-0"}, Shard: 1})}},
		"looked up, and nobody added it": {false, []*called{begin(Call{Verb: Exists, Items: []string{"item-0"}, Shard: 1})}},
	} {
		for kind, m := range map[string]*Mixed{
			"window":   {Window: &Windows{Span: 10 * time.Second, Panes: 1, ExpireIdle: true}},
			"scalable": {Scalable: &Scalables{FPRate: 0.5, Layers: 1}},
		} {
			if m.Filter = (Filters{Bits: 106, Hashes: 4}); m.Scalable != nil {
				m.Scalable.MissingIsEmpty = true
			}
			history := NewHistory(m)
			history.begin, history.calls = time.Unix(15e6+5, 0), h.calls // in the middle of an epoch
			if err := history.Check(); (err == nil) != h.ok {
				t.Errorf("%s beside a %s: Check() = %v, want it right: %v", name, kind, err, h.ok)
			}
		}
	}
}

// TestMixedSecondFirst: of two commands to one filter the second may not have run
// first, unless something removed the filter at that time.
func TestMixedSecondFirst(t *testing.T) {
	m := &Mixed{Filter: Filters{Bits: 106, Hashes: 4}, Scalable: &Scalables{FPRate: 0.5, Layers: 1}}
	swapped := &called{
		client: "x", call: Call{Verb: AddIn, Items: []string{"item-0"}, Into: []int{intoStrict, 0}}, from: 6, to: 9,
		result: Result{End: Partly, Each: []Result{
			{End: Answered, Yes: []bool{false}}, {End: Answered, Yes: []bool{true}},
		}},
	}
	made := &called{
		client: "x", call: Call{Verb: Add, Items: []string{"item-1"}}, from: 2, to: 3,
		result: Result{End: Answered, Yes: []bool{true}},
	}
	removed := &called{
		client: "outside", call: Call{Verb: Clear}, from: 7, to: 8, result: Result{End: Answered, Yes: []bool{true}},
	}
	h := NewHistory(m)
	if h.calls = []*called{made, swapped}; h.Check() == nil {
		t.Error("the second command found nothing, the first the item: want an error")
	}
	if err := (&History{calls: []*called{made, swapped, removed}}).together(swapped, 0, true); err != nil {
		t.Errorf("the filter was removed meanwhile: %v", err)
	}
}
