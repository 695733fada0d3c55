package proof

import (
	"testing"
	"time"
)

// TestCheckWatched checks histories of watched handles. A filter is too full
// with the items a, b and c.
func TestCheckWatched(t *testing.T) {
	const mine, another, opened = 1, 2, -1
	cfg, items := Filters{Common: Common{Watch: true}, Bits: 53, Hashes: 2}, [3]string{"item-0", "item-1", "item-2"}
	a, b, c := items[0], items[1], items[2]
	fills := call(1, 2, AddAll, told(true, true, true), a, b, c)
	full := bitsOf(nil, 53)
	for _, item := range items {
		full = full.with(cfg.cells(AddAll, item))
	}
	if n := full.count(); n != 6 || !tooFull(cfg.geometry(), n) || tooFull(cfg.geometry(), 4) {
		t.Fatalf("%d bits are set, and two items are too many: %v", n, tooFull(cfg.geometry(), 4))
	}
	// with is an Add of a seen item that did w.
	with := func(w Watched, end End) one {
		r := told(false)
		r.End, r.Watched = end, &w
		return call(5, 6, Add, r, a)
	}
	look := Watched{Handle: mine, Lots: 1, Low: 1, Looks: 1, Seen: 1}
	warns := look
	warns.Stats, warns.StatsSeen, warns.Warnings = 1, 1, []Warning{{Handle: mine, SetBits: 6}}
	change := func(w Watched, f func(*Watched)) Watched { f(&w); return w }
	later := func(o one) one { o.from, o.to = 7, 8; return o }
	load := func(over bool, w Watched) one {
		w.Over = over
		r := Result{End: Answered, Yes: []bool{false}, Tried: 1, Watched: &w}
		return call(5, 6, Load, r, a)
	}
	for _, tt := range []struct {
		name  string
		right bool
		calls []one
	}{
		{"a warning", true, []one{fills, with(warns, Answered)}},
		{"a warning below the capacity", false, []one{
			call(1, 2, AddAll, told(true, true), a, b), with(warns, Answered),
		}},
		{"a warning of another number of bits", false, []one{
			fills, with(change(warns, func(w *Watched) { w.Warnings = []Warning{{Handle: mine, SetBits: 7}} }), Answered),
		}},
		{"a look without a warning", false, []one{fills, with(look, Answered)}},
		{"a look without a warning, below the capacity", true, []one{
			call(1, 2, Add, told(true), a), with(look, Answered),
		}},
		{"a look that failed", true, []one{
			fills, with(change(look, func(w *Watched) { w.Seen = 0 }), Answered),
		}},
		{"a look that failed, and an error", false, []one{
			fills, with(change(look, func(w *Watched) { w.Seen = 0 }), NotRun),
		}},
		{"no lot", false, []one{fills, with(Watched{Handle: mine}, Answered)}},
		{"a lot, and no look", false, []one{fills, with(Watched{Handle: mine, Lots: 1, Low: 1}, Answered)}},
		{"a look, and no lot for it", false, []one{
			fills, with(change(look, func(w *Watched) { w.Low = 0 }), Answered),
		}},
		{"a lot, and no look before the context ended", true, []one{
			fills, with(Watched{Handle: mine, Lots: 1, Low: 1, Ended: true}, Answered),
		}},
		{"two looks", false, []one{
			fills, with(change(look, func(w *Watched) { w.Low, w.Looks = 2, 2 }), Answered),
		}},
		{"Stats below the capacity", false, []one{
			call(1, 2, Add, told(true), a),
			with(change(look, func(w *Watched) { w.Stats, w.StatsSeen = 1, 1 }), Answered),
		}},
		{"a look in the pause", false, []one{
			fills, with(warns, Answered), later(with(look, Answered)),
		}},
		{"a look of another handle in the pause", true, []one{
			fills, later(with(warns, Answered)), with(change(warns, func(w *Watched) {
				w.Handle, w.Warnings = another, []Warning{{Handle: another, SetBits: 6}}
			}), Answered),
		}},
		{"a handle without WarnFill", true, []one{fills, with(Watched{Handle: opened}, Answered)}},
		{"a look of a handle without WarnFill", false, []one{
			fills, with(change(look, func(w *Watched) { w.Handle = opened }), Answered),
		}},
		{"a Load that overfills", true, []one{fills, load(true, Watched{Handle: mine, Stats: 1})}},
		{"a Load that does not say so", false, []one{fills, load(false, Watched{Handle: mine})}},
		{"a Load that does not ask for Stats", false, []one{fills, load(true, Watched{Handle: mine})}},
		{"a Load that asks for Stats for no reason", false, []one{
			call(1, 2, Add, told(true), a), load(false, Watched{Handle: mine, Stats: 1}),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, cfg, tt.right, tt.calls) })
	}
	alarm := with(look, Answered)
	alarm.result.Alarm = "wrong"
	check(t, cfg, false, []one{alarm})
}

// TestCheckWatchedWindow checks histories of a watched handle of a window of 10 s
// in panes of 15 s. A pane is too full with three items.
func TestCheckWatchedWindow(t *testing.T) {
	of := &Windows{Common: Common{Watch: true}, Span: 10 * time.Second, Panes: 1}
	look := Watched{Handle: 1, Lots: 1, Low: 1, Looks: 1, Seen: 1}
	asked, warned := look, look
	asked.Stats, asked.StatsSeen = 1, 1
	warned.Stats, warned.StatsSeen, warned.Warnings = 1, 1, []Warning{{Handle: 1}}
	failed, unanswered, ended := look, asked, look
	failed.Seen, unanswered.StatsSeen, ended.Ended = 0, 0, true
	// in is an AddAll that began and ended at these seconds of an epoch.
	in := func(from, to float64, w *Watched, items ...string) *called {
		yes := make([]bool, len(items))
		for i := range yes {
			yes[i] = true
		}
		return &called{
			client: "x", call: Call{Verb: AddAll, Items: items}, from: int64(10 * from), to: int64(10 * to),
			began: time.Duration(from * 1e9), ended: time.Duration(to * 1e9),
			result: Result{End: Answered, Yes: yes, Tried: 1, Timed: true, Watched: w},
		}
	}
	wiped := in(5, 6, nil)
	wiped.call = Call{Verb: Clear}
	again := in(5, 6, &look, "b", "c")
	again.result.Yes[0] = false
	for name, h := range map[string]struct {
		ok    bool
		calls []*called
	}{
		"a warning":                {true, []*called{in(4, 5, &warned, "a", "b", "c")}},
		"a look alone":             {false, []*called{in(4, 5, &look, "a", "b", "c")}},
		"Stats alone":              {false, []*called{in(4, 5, &asked, "a", "b", "c")}},
		"the Stats failed":         {true, []*called{in(4, 5, &unanswered, "a", "b", "c")}},
		"the look failed":          {true, []*called{in(4, 5, &failed, "a", "b", "c")}},
		"the context ended":        {true, []*called{in(4, 5, &ended, "a", "b", "c")}},
		"two items":                {true, []*called{in(4, 5, &look, "a", "b")}},
		"two, and one before":      {false, []*called{in(3, 4, nil, "a"), in(5, 6, &look, "b", "c")}},
		"two, and one of them":     {true, []*called{in(3, 4, nil, "b"), again}},
		"two, and one beside them": {true, []*called{in(3, 5.5, nil, "a"), in(5, 6, &look, "b", "c")}},
		"one in the epoch before":  {true, []*called{in(-2, -1, nil, "a"), in(5, 6, &look, "b", "c")}},
		"perhaps in the next":      {true, []*called{in(3, 4, nil, "a"), in(12, 13, &look, "b", "c")}},
		"one was wiped":            {true, []*called{in(3, 4, nil, "a"), wiped, in(7, 8, &look, "b", "c")}},
	} {
		history := NewHistory(of)
		history.begin, history.calls = time.Unix(15e6, 0), h.calls
		if err := history.Check(); (err == nil) != h.ok {
			t.Errorf("%s: Check() = %v, want it right: %v", name, err, h.ok)
		}
	}
}
