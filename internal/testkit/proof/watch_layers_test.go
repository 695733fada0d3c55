package proof

import "testing"

// TestCheckWatchedScalable checks histories of watched handles of a filter of one
// layer, and of handles for two.
func TestCheckWatchedScalable(t *testing.T) {
	const mine, another, opened = 1, 2, -1
	const a, b, c = "item-0", "item-1", "item-2"
	s := &Scalables{FPRate: 0.5, Layers: 1, Watch: true}
	full := s.freeCells(0)
	layers := func(n int) Result { return counted(n, told(true)) }
	fills := call(3, 4, Fill, layers(1))
	// with is an Add of a new item that did w.
	with := func(from, to int64, item string, w Watched) one {
		r := told(true)
		r.Watched = &w
		return call(from, to, Add, r, item)
	}
	unlucky := Watched{Handle: mine, Lots: 1, Lot: noLook, New: 1}
	first := with(1, 2, a, unlucky)
	change := func(w Watched, f func(*Watched)) Watched { f(&w); return w }
	look := Watched{Handle: mine, Lots: 1, Low: 1, New: 1, Stats: 1, StatsSeen: 1}
	warnsOf := func(layers ...int) Watched {
		return change(look, func(w *Watched) { w.Warnings = []Warning{{Handle: mine, Layers: layers}} })
	}
	warns := warnsOf(full)
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
		{"a look below the capacity", true, 1, []one{first, with(5, 6, b, look)}},
		{"a look, and no warning", false, 1, []one{first, fills, with(5, 6, b, look)}},
		{"a look without an answer", true, 1, []one{
			first, fills, with(5, 6, b, change(look, func(w *Watched) { w.StatsSeen = 0 })),
		}},
		{"a warning without an answer", false, 1, []one{
			first, fills, with(5, 6, b, change(warns, func(w *Watched) { w.StatsSeen = 0 })),
		}},
		{"no look", false, 1, []one{
			first, fills, with(5, 6, b, Watched{Handle: mine, Lots: 1, Low: 1, New: 1}),
		}},
		{"no lot", false, 1, []one{first, fills, with(5, 6, b, Watched{Handle: mine, New: 1})}},
		{"no look, and nothing was new", true, 1, []one{
			first, fills, with(5, 6, b, Watched{Handle: mine, Lots: 1, Low: 1}),
		}},
		{"no look before the context ended", true, 1, []one{
			first, fills, with(5, 6, b, Watched{Handle: mine, Lots: 1, Low: 1, New: 1, Ended: true}),
		}},
		{"no look beside another call", true, 1, []one{
			first, fills, with(5, 7, b, Watched{Handle: mine, Lots: 1, Low: 1, New: 1}), with(6, 8, c, warns),
		}},
		{"another handle beside it", false, 1, []one{
			first, fills, with(5, 7, b, Watched{Handle: mine, Lots: 1, Low: 1, New: 1}),
			with(6, 8, c, change(unlucky, func(w *Watched) { w.Handle = another })),
		}},
		{"a look without its lot", false, 1, []one{
			first, with(5, 6, b, change(look, func(w *Watched) { w.Low, w.Lot = 0, noLook })),
		}},
		{"a look after many new items", true, 1, []one{
			first, batch(5, 6, manyMore, change(look, func(w *Watched) { w.Low, w.Lot, w.New = 0, noLook, 16 }), b),
		}},
		{"no look after many new items", false, 1, []one{
			first, batch(5, 6, manyMore, change(unlucky, func(w *Watched) { w.New = 16 }), b),
		}},
		{"two looks", false, 1, []one{first, with(5, 6, b, change(look, func(w *Watched) { w.Stats = 2 }))}},
		{"a handle without WarnFill", false, 1, []one{
			first, with(5, 6, b, change(look, func(w *Watched) { w.Handle = opened })),
		}},
		{"a warning of another handle", false, 1, []one{
			first, fills, with(5, 6, b, change(warns, func(w *Watched) { w.Handle = another })),
		}},
		{"a warning of too many bits", false, 1, []one{first, fills, with(5, 6, b, warnsOf(full+99))}},
		{"a warning of too few bits", false, 1, []one{first, fills, with(5, 6, b, warnsOf(full-1))}},
		{"a look in the pause", false, 1, []one{first, fills, looks, with(7, 8, c, warns)}},
		{"no look in the pause", true, 1, []one{
			first, fills, looks, with(7, 8, c, Watched{Handle: mine, Lots: 1, Low: 1, New: 1}),
		}},
		{"no look in the pause of another", false, 1, []one{
			first, fills, looks, with(7, 8, c, Watched{Handle: another, Lots: 1, Low: 1, New: 1}),
		}},
		{"no look after the pause", false, 1, []one{
			first, fills, looks, call(7, 8, Clear, told(true)), batch(9, 10, bigMore, Watched{
				Handle: mine, Lots: 1, New: 1001,
			}, a),
		}},
		{"a look after the pause", true, 1, []one{
			first, fills, looks, call(7, 8, Clear, told(true)),
			batch(9, 10, bigMore, change(look, func(w *Watched) { w.New = 1001 }), a),
		}},
		{"it can grow", true, 2, []one{
			first, fills, with(5, 6, b, Watched{Handle: mine, Lots: 1, Low: 1, New: 1}),
		}},
		{"a look, and it can grow", false, 2, []one{first, with(5, 6, b, look)}},
		{"no look at the last layer", false, 2, []one{
			first, fills, call(5, 6, Layers, layers(2)),
			with(7, 8, b, Watched{Handle: mine, Lots: 1, Low: 1, New: 1}),
		}},
		{"no look, and it was made anew", true, 2, []one{
			first, fills, call(5, 6, Layers, layers(2)), call(7, 8, Clear, told(true)),
			with(9, 10, b, Watched{Handle: mine, Lots: 1, Low: 1, New: 1}),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			of := *s
			of.Layers = tt.layers
			checkOf(t, &of, tt.right, tt.calls)
		})
	}
	alarm := with(5, 6, b, unlucky)
	alarm.result.Alarm = "wrong"
	checkOf(t, s, false, []one{first, alarm})
}
