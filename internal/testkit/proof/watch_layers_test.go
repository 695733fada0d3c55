package proof

import "testing"

// TestCheckWatchedScalable checks histories of watched handles of a filter of one
// layer, and of handles for two.
func TestCheckWatchedScalable(t *testing.T) {
	const mine, another, opened = 1, 2, -1
	const a, b, c = "item-0", "item-1", "item-2"
	s := &Scalables{Common: Common{Watch: true}, FPRate: 0.5, Layers: 1}
	cells := s.freeCells(0)
	full := func(n int) Result {
		r := counted(n, told(true))
		r.Over = true
		return r
	}
	fills := call(3, 4, Fill, full(1))
	// with is an Add of a new item that did w.
	with := func(from, to int64, item string, w Watched) one {
		r := told(true)
		r.Watched = &w
		return call(from, to, Add, r, item)
	}
	quiet := Watched{Handle: mine, New: 1}
	first := with(1, 2, a, quiet)
	change := func(w Watched, f func(*Watched)) Watched { f(&w); return w }
	look := Watched{Handle: mine, New: 1, Stats: 1, StatsSeen: 1}
	warnsOf := func(layers ...int) Watched {
		return change(look, func(w *Watched) { w.Warnings = []Warning{{Handle: mine, Layers: layers}} })
	}
	warns := warnsOf(cells)
	looks := with(5, 6, b, warns)
	batch := func(from, to int64, more int, w Watched, items ...string) one {
		o := with(from, to, "", w)
		o.call.Verb, o.call.Items, o.call.More = AddAll, items, more
		return o
	}
	for _, tt := range []struct {
		name   string
		right  bool
		layers int
		calls  []one
	}{
		{"a warning", true, 1, []one{first, fills, looks}},
		{"a look, and no warning", false, 1, []one{first, fills, with(5, 6, b, look)}},
		{"a look without an answer", true, 1, []one{
			first, fills, with(5, 6, b, change(look, func(w *Watched) { w.StatsSeen = 0 })),
		}},
		{"a warning without an answer", false, 1, []one{
			first, fills, with(5, 6, b, change(warns, func(w *Watched) { w.StatsSeen = 0 })),
		}},
		{"no look", false, 1, []one{first, fills, with(5, 6, b, quiet)}},
		{"no look, and it was full already", true, 1, []one{
			first, call(3, 4, Fill, counted(1, told(true))), with(5, 6, b, quiet),
		}},
		{"no look, and nothing was new", true, 1, []one{
			first, fills, with(5, 6, b, change(quiet, func(w *Watched) { w.New = 0 })),
		}},
		{"a look, and nothing was new", false, 1, []one{
			first, fills, with(5, 6, b, change(look, func(w *Watched) { w.New = 0 })),
		}},
		{"no look before the context ended", true, 1, []one{
			first, fills, with(5, 6, b, change(quiet, func(w *Watched) { w.Ended = true })),
		}},
		{"no look beside another call", true, 1, []one{
			first, fills, with(5, 7, b, quiet),
			with(6, 8, c, change(warns, func(w *Watched) { w.Handle, w.Warnings = another, []Warning{{Handle: another, Layers: []int{cells}}} })),
		}},
		{"two looks", false, 1, []one{first, fills, with(5, 6, b, change(warns, func(w *Watched) { w.Stats = 2 }))}},
		{"a handle without WarnFill", false, 1, []one{
			first, fills, with(5, 6, b, change(look, func(w *Watched) { w.Handle = opened })),
		}},
		{"a warning of another handle", false, 1, []one{
			first, fills, with(5, 6, b, change(warns, func(w *Watched) { w.Handle = another })),
		}},
		{"a warning of too many bits", false, 1, []one{first, fills, with(5, 6, b, warnsOf(cells+99))}},
		{"a warning of too few bits", false, 1, []one{first, fills, with(5, 6, b, warnsOf(cells-1))}},
		{"a look in the pause", false, 1, []one{first, fills, looks, with(7, 8, c, warns)}},
		{"no look in the pause", true, 1, []one{first, fills, looks, with(7, 8, c, quiet)}},
		{"no look after another handle's", true, 1, []one{
			first, fills, looks, with(7, 8, c, change(quiet, func(w *Watched) { w.Handle = another })),
		}},
		{"a look after the pause", true, 1, []one{
			first, fills, looks, batch(7, 8, bigMore, change(warns, func(w *Watched) { w.New = 1001 }), c),
		}},
		{"a look at a filter made anew", true, 1, []one{
			first, fills, looks, call(7, 8, Clear, told(true)), with(9, 10, a, quiet),
			call(11, 12, Fill, full(1)), with(13, 14, b, warns),
		}},
		{"it can grow", true, 2, []one{first, fills, with(5, 6, b, quiet)}},
		{"a look, and it can grow", false, 2, []one{first, with(5, 6, b, look)}},
		{"no look at the last layer", false, 2, []one{
			first, fills, with(5, 6, b, quiet), call(7, 8, Fill, full(2)), with(9, 10, c, quiet),
		}},
		{"no look, and it was made anew", true, 2, []one{
			first, fills, with(5, 6, b, quiet), call(7, 8, Fill, full(2)), call(9, 10, Clear, told(true)),
			with(11, 12, c, quiet),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			of := *s
			of.Layers = tt.layers
			checkOf(t, &of, tt.right, tt.calls)
		})
	}
	alarm := with(5, 6, b, quiet)
	alarm.result.Alarm = "wrong"
	checkOf(t, s, false, []one{first, alarm})
}
