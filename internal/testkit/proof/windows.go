package proof

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// Windows describes the handles of one history of a Window.
type Windows struct {
	Common
	Span       time.Duration
	Panes      int
	ExpireIdle bool
	// Idle is how long nobody does anything, once.
	Idle time.Duration
	// Slow makes the answers to TIME late. Clients' clocks are then as wrong as
	// they may be, and items are looked up at the ends of Spans.
	Slow bool
	// Patient is how many panes long the clients wait for an answer, and after a
	// refusal. Commands and answers are held as long. Two of them add the same
	// items near the ends of epochs, while others turn the window.
	Patient int
	// Others stores other data at the key, and lets other types write to it.
	Others bool
	// Renames moves the window away and back.
	Renames bool
	// Latecomers makes first attempts come late, after the window has gone.
	Latecomers bool
	// Mirrors is true if clients have some.
	Mirrors bool
	Staleness
	// Shared are three items, if the window is so small that items share cells:
	// the last, which nobody adds, is in a pane that has the two others.
	Shared []string
}

// clockError is how far two clients' epochs may be apart.
const clockError = 4 * time.Second

// windowItems is the number of items to choose from.
const windowItems = 3

func (w *Windows) drawConfig(rng *rand.Rand, _ Theme) {
	w.Panes = 1 + rng.IntN(2)
	if often(rng, 8) {
		w.Panes = 3 + rng.IntN(2)
	}
	w.drawSeed(rng)
	w.Losses = often(rng, 4)
	w.Span = time.Duration(w.Panes)*10*time.Second + time.Duration(rng.Int64N(int64(20*time.Second)))
	switch rng.IntN(6) {
	case 0, 1:
		w.ExpireIdle = true
	case 2:
		w.MustExist = true
	}
	w.Mirrors = often(rng, 2)
	short, long := upTo(rng, 6*time.Second), upTo(rng, w.Span-time.Duration(w.Panes)*time.Second) // less than if it is Slow
	w.MaxStale = weighted(rng, []choice[time.Duration]{{2, 0}, {1, short}, {1, long}})
	if often(rng, 2) {
		w.StaleIfError = upTo(rng, w.Span)
	}
	w.limit()
	switch rng.IntN(5) {
	case 4:
		w.Latecomers, w.MustExist, w.Losses, w.Parallel = true, false, false, 1
		return
	case 0: // panes end as Spans do, but for the slack
		w.Slow, w.Span = true, w.Span.Truncate(time.Duration(w.Panes)*time.Second)
		return
	case 2:
		w.Patient = 1 + rng.IntN(w.Panes+3)
		if often(rng, 2) {
			w.Idle = time.Duration(2+rng.IntN(w.Panes+4)) * w.Pane()
		}
		return
	case 1:
		w.Others, w.Renames, w.Lag = often(rng, 2), often(rng, 2), often(rng, 2)
	case 3:
		if often(rng, 2) {
			w.share()
		}
	}
	if often(rng, 2) {
		w.Idle = time.Duration(w.drawIdle(rng)) * w.Pane()
	}
}

// share chooses items of a small window that share cells: two that have a word
// each of the third's two words.
func (w *Windows) share() {
	w.Shared = []string{"", "", itemName(windowItems - 1)}
	g := geometryOf(w.config(plain))
	both := g.Positions(nil, w.Shared[2])
	for i := range 2 {
		for n := windowItems; w.Shared[i] == ""; n++ {
			at := g.Positions(nil, itemName(n))
			if isSubset(both[2*i:2*i+2], at) && !isSubset(both, at) {
				w.Shared[i] = itemName(n)
			}
		}
	}
}

func isSubset(some, of []uint64) bool {
	return !slices.ContainsFunc(some, func(p uint64) bool { return !slices.Contains(of, p) })
}

// named gives the items of calls their names. The last of those that share cells
// is only looked up.
func (w *Windows) named(calls []Call) []Call {
	for _, c := range calls {
		for i := range c.Items {
			n := slices.Index(allItems(windowItems), c.Items[i])
			switch {
			case w.Shared == nil || n < 0:
				continue
			case n == windowItems-1 && c.Verb.is(adds):
				n = 0
				if slices.Contains(c.Items, itemName(0)) || slices.Contains(c.Items, w.Shared[0]) {
					n = 1
				}
			}
			c.Items[i] = w.Shared[n]
		}
	}
	return calls
}

// drawIdle draws a number of panes: few, many, or some cycles and a little.
// From 15/16 of a cycle on, the epoch of the clock would be taken for one
// shortly before the window's. That takes years, and is not drawn.
func (w *Windows) drawIdle(rng *rand.Rand) uint64 {
	switch rng.IntN(4) {
	case 0:
		return 1 + rng.Uint64N(8)
	case 1:
		return 1 + rng.Uint64N(1000)
	case 2:
		return rng.Uint64N(w.cycle() / 16 * 15)
	}
	return (1+rng.Uint64N(2))*w.cycle() + 20 + rng.Uint64N(20)
}

// cycle is the number of epochs.
func (w *Windows) cycle() uint64 {
	r := uint64(w.Panes + 2)
	return 1 << 24 / r * r
}

// Pane returns how long a pane lasts, according to the documentation of the
// format.
func (w *Windows) Pane() time.Duration {
	n := time.Duration(w.Panes)
	return (w.Span + 5*time.Second + n*time.Second - 1) / (n * time.Second) * time.Second
}

// Gap is that pause.
func (w *Windows) Gap() time.Duration { return w.Idle }

// config returns the Config of a handle. The window is so large that the items
// share no cells, unless it is for that: see TestItemsApart.
func (w *Windows) config(v variant) bloom.WindowConfig {
	cfg := bloom.WindowConfig{
		Capacity: 20, FPRate: 1e-6, Span: w.Span, Panes: w.Panes, ExpireIdle: w.ExpireIdle,
		MustExist: w.MustExist, Seed: w.Seed,
	}
	if v == reshaped {
		cfg.Span *= 2
	}
	if w.Shared != nil {
		cfg.FPRate = 0.1
	}
	return cfg
}

func (w *Windows) make(c []*upstash.Client, key string, v variant) (handle, error) {
	return bloom.NewWindow(c[0], key, w.config(v))
}

func (w *Windows) open(ctx context.Context, c []*upstash.Client, key string, v variant) (handle, error) {
	cfg := w.config(v)
	cfg.Capacity, cfg.FPRate, cfg.Span, cfg.Panes, cfg.ExpireIdle = 0, 0, 0, 0, false // what the string says
	return bloom.OpenWindow(ctx, c[0], key, cfg)
}

var windowVerbs = odds{
	{1, Create}, {2, Open}, {7, Add}, {2, AddAll}, {4, Exists}, {2, ExistsAll}, {1, Delete}, {1, Stats},
}

// mirrorVerbs are of the Mirror of a Window.
var mirrorVerbs = odds{
	{3, MirrorExists}, {1, MirrorAll}, {1, MirrorAdd}, {2, MirrorThrough}, {1, MirrorAddAll}, {2, Refresh},
}

// Draw draws a call, sometimes near the end of an epoch, and sometimes with a
// second one before its item's Span ends; or calls around a Mirror; or seldom an
// eviction, other data, or an older state.
func (w *Windows) Draw(rng *rand.Rand) []Call { return w.named(w.drawCalls(rng)) }

func (w *Windows) drawCalls(rng *rand.Rand) []Call {
	one := func(list odds) func(*rand.Rand) []Call {
		return func(rng *rand.Rand) []Call {
			return []Call{{Verb: weighted(rng, list), Items: []string{"item-other"}}}
		}
	}
	return stories{
		{100, w.drawPlain},
		{4, one(odds{{1, Clear}})},
		{when(w.Losses, 15), func(rng *rand.Rand) []Call { return []Call{w.drawLoss(rng)} }},
		{when(w.Others, 20), one(odds{{1, Overwrite}, {2, Smudge}, {2, Clear}, {5, AddOther}})},
		{when(w.Silences && w.ExpireIdle, 10), drawTimed(windowItems)},
		{when(w.Backups != nil, 60), drawBackup(windowItems)},
		{when(w.Slow, 120), w.drawSpan},
		{when(w.Patient > 0, 300), w.drawStory},
		{when(w.Renames, 20), w.drawRenamed},
		{when(w.Mirrors, 60), func(rng *rand.Rand) []Call { return append(w.drawAlign(rng), w.drawCall(rng, mirrorVerbs)) }},
		{when(w.Mirrors && w.Silences, 40), w.drawTurn},
		{when(w.Mirrors, 20), w.drawRenewed},
		{when(w.Mirrors && w.Silences, 20), w.drawSpare},
		{when(w.Mirrors && w.Losses, 30), w.drawWentBack},
		{when(w.Mirrors && w.Silences, 30), w.drawClocks},
		{when(w.Outages, 300), w.drawOutage},
		{when(w.Latecomers && w.Silences, 400), w.drawLatecomer},
	}.tell(rng)
}

// drawAlign draws a pause until the end of an epoch is near, one time in three.
func (w *Windows) drawAlign(rng *rand.Rand) []Call {
	phase := upTo(rng, 5*time.Second) - 5*time.Second/2
	return weighted(rng, []choice[story]{{2, nil}, {1, story{{Verb: Align, Wait: (w.Pane() + phase) % w.Pane()}}}})
}

func (w *Windows) drawPlain(rng *rand.Rand) []Call {
	calls, c := w.drawAlign(rng), w.drawCall(rng, windowVerbs)
	if c.Verb == Open {
		return append(calls, w.follow(rng, c, w.drawCalls)...)
	}
	calls = append(calls, c)
	if c.Verb.is(adds) && often(rng, 3) {
		next := w.drawCall(rng, odds{{1, Add}, {1, Exists}})
		next.Items = c.Items[:1]
		calls = append(calls, rest(w.Span-upTo(rng, 2500*time.Millisecond)), next)
	}
	return calls
}

// drawRenamed draws a Rename away and back.
func (w *Windows) drawRenamed(rng *rand.Rand) []Call {
	return []Call{{Verb: Rename}, rest(upTo(rng, 2*w.Pane())), {Verb: Rename, Key: 1}}
}

// drawTurn draws calls around a Mirror while the window turns: an item whose pane is
// cleared then, and an answer that was asked for before the turn, and comes after it.
func (w *Windows) drawTurn(rng *rand.Rand) []Call {
	three := itemsOf(rng, windowItems, 3)
	x, y, z := three[:1], three[1:2], three[2:]
	refresh, look, through := Call{Verb: Refresh}, Call{Verb: MirrorExists, Items: x}, Call{Verb: MirrorThrough, Items: z}
	across, late := refresh, Call{Verb: Hold, Command: "EVAL", More: rng.IntN(2)}
	if w.MaxStale == 0 && !often(rng, 3) || often(rng, 6) {
		across, late = weighted(rng, []choice[Call]{{3, look}, {1, through}}), Call{Verb: Hold, Command: "BITFIELD"}
	}
	before := upTo(rng, 200*time.Millisecond)
	panes := weighted(rng, []choice[int]{{3, w.Panes}, {1, w.Panes + 1}, {1, rng.IntN(w.Panes + 1)}})
	first, turns := weighted(rng, odds{{3, Add}, {1, MirrorThrough}}), weighted(rng, odds{{1, Add}, {2, MirrorThrough}})
	calls := []Call{
		refresh,
		{Verb: Align, Wait: w.Pane() / 2}, // far from the ends of its pane
		{Verb: first, Items: x},
		rest(time.Duration(panes) * w.Pane()),
		{Verb: Align, Wait: w.Pane() - before},
		{Verb: weighted(rng, odds{{1, Add}, {1, MirrorThrough}}), Items: y},
		late, across.aside(), rest(before + upTo(rng, 30*time.Millisecond)),
		{Verb: turns, Items: z},
		rest(400 * time.Millisecond), look,
	}
	switch rng.IntN(4) {
	case 0: // it turns again, and what is added then is asked for
		denied := Call{Verb: MirrorExists, Items: z}
		return append(calls, Call{Verb: Align, Wait: w.Pane() - before}, refresh, rest(before+1), through, denied)
	case 1:
		calls = append(calls, refresh, look)
	}
	return append(calls, rest(clockError+w.Pane()/2+upTo(rng, w.Pane())), through, look, Call{Verb: Exists, Items: x})
}

// drawRenewed draws an Add through a Mirror of an item that an earlier pane has, and a
// look-up just before its Span ends.
func (w *Windows) drawRenewed(rng *rand.Rand) []Call {
	two := itemsOf(rng, windowItems, 2)
	add := weighted(rng, []choice[Call]{
		{1, Call{Verb: MirrorAdd, Items: two[:1]}}, {1, Call{Verb: MirrorAddAll, Items: two}},
	})
	return []Call{
		{Verb: MirrorThrough, Items: two[:1]},
		{Verb: Align, Wait: w.Pane() - upTo(rng, time.Second)},
		rest(upTo(rng, 2*time.Second)), add, rest(w.Span - upTo(rng, time.Second)),
		{Verb: pick(rng, []Verb{Exists, MirrorExists}), Items: two[:1]},
	}
}

// drawSpare draws an Add to the spare pane of a window that is then not turned, and a
// refresh.
func (w *Windows) drawSpare(rng *rand.Rand) []Call {
	two := itemsOf(rng, windowItems, 2)
	lost := Call{Verb: Silence, More: 1, From: 6, Command: "EVAL"} // which is not repeated
	return []Call{
		{Verb: MirrorThrough, Items: two[1:]},
		{Verb: Refresh},
		{Verb: Align, Wait: upTo(rng, time.Second)},
		lost,
		{Verb: Add, Items: two[:1]},
		{Verb: Refresh},
		{Verb: MirrorExists, Items: two[:1]},
	}
}

// drawWentBack draws calls around a Mirror whose window turns, and goes back.
func (w *Windows) drawWentBack(rng *rand.Rand) []Call {
	x := itemsOf(rng, windowItems, 1)
	back := rest(upTo(rng, time.Second))
	return []Call{
		{Verb: MirrorThrough, Items: x},
		{Verb: Keep},
		{Verb: Align, Wait: upTo(rng, time.Second)},
		{Verb: MirrorThrough, Items: x},
		{Verb: Refresh},
		{Verb: Revert},
		back,
		{Verb: Refresh},
		{Verb: MirrorExists, Items: x},
		{Verb: Refresh},
	}
}

// drawClocks draws a jump of the wall clock, or a freeze, between a refresh of a Mirror
// and a look-up: of an item that must still be found, or must not any more. It asks in
// time, or in an outage.
func (w *Windows) drawClocks(rng *rand.Rand) []Call {
	x := itemsOf(rng, windowItems, 1)
	late := often(rng, 3)
	limit := w.MaxTrust
	if late {
		limit += w.StaleIfError
	}
	off := upTo(rng, limit)
	calls := []Call{{Verb: MirrorThrough, Items: x}}
	switch forgets := time.Duration(w.Panes+1)*w.Pane() + clockError; rng.IntN(3) {
	case 0: // the time seems to be later than it is
		calls = append(calls, rest(w.Span-upTo(rng, time.Second)), Call{Verb: Refresh}, Call{Verb: Jump, Wait: off})
	case 1: // or earlier
		calls = append(calls, rest(forgets-upTo(rng, w.Pane())), Call{Verb: Refresh}, Call{Verb: Jump, Wait: -off})
	default:
		calls = append(calls, rest(forgets-upTo(rng, off)), Call{Verb: Refresh}, Call{Verb: Freeze, Wait: off})
	}
	look := Call{Verb: MirrorExists, Items: x}
	if late {
		return append(calls, silence(rng, AllRequests), look, look, Call{Verb: Speak})
	}
	return append(calls, look)
}

// DrawOutages has a history's Mirrors outlive outages. Their rests are longer than the
// pause of a history, which must end in a certain epoch.
func (w *Windows) DrawOutages(rng *rand.Rand) {
	w.Outages, w.Mirrors, w.Idle = true, true, 0
	w.MaxStale = pick(rng, []time.Duration{0, time.Second, 5 * time.Second})
	w.StaleIfError = pick(rng, []time.Duration{2 * time.Second, w.Span / 2, w.Span})
	w.limit()
}

func (w *Windows) drawOutage(rng *rand.Rand) []Call {
	return w.Staleness.drawOutage(rng, itemsOf(rng, windowItems, 3), odds{{1, Clear}, {1, Delete}})
}

// drawLatecomer draws an AddAll of one item in each request.
func (w *Windows) drawLatecomer(rng *rand.Rand) []Call {
	three := itemsOf(rng, windowItems, 3)
	add, makes := Call{Verb: AddAll, Items: three[1:], Parts: true}, Call{Verb: Add, Items: three[:1]}
	calls := drawLate(rng, comesLate("BITFIELD", 0), makes, []Call{{Verb: Clear}}, pauses(add, "BITFIELD", rng.IntN(2)))
	return append(calls, Call{Verb: ExistsAll, Items: three})
}

// drawSpan draws an Add just after an epoch has begun, or just before it ends, and
// a call of another client just before the item's Span ends.
func (w *Windows) drawSpan(rng *rand.Rand) []Call {
	begins := upTo(rng, 1500*time.Millisecond)
	if often(rng, 2) {
		begins = (w.Pane() + begins - 500*time.Millisecond) % w.Pane()
	}
	c := w.drawCall(rng, odds{{1, Add}})
	next := w.drawCall(rng, odds{{1, Add}, {2, Exists}})
	next.Items, next.Other = c.Items, true
	return []Call{
		{Verb: Align, Wait: begins},
		c,
		{Verb: Rest, Wait: w.Span - upTo(rng, time.Second)},
		next,
	}
}

// drawStory draws a call near the beginning of an epoch: in two of three an Add of
// the one item that all add, else of one that only turns the window.
func (w *Windows) drawStory(rng *rand.Rand) []Call {
	x := []string{itemName(rng.IntN(3) / 2)}
	return append(w.drawBegin(rng), weighted(rng, []choice[Call]{
		{6, Call{Verb: Add, Items: x}},
		{1, Call{Verb: Exists, Items: x}},
		{1, Call{Verb: AddAll, Items: itemsOf(rng, windowItems, 2), Parts: often(rng, 2)}},
	}))
}

// drawBegin draws a pause until the beginning of an epoch is near.
func (w *Windows) drawBegin(rng *rand.Rand) []Call {
	phase := upTo(rng, 6*time.Second) - 2*time.Second
	return []Call{
		{Verb: Rest, Wait: upTo(rng, w.Pane())},
		{Verb: Align, Wait: (w.Pane() + phase) % w.Pane()},
	}
}

func (w *Windows) drawCall(rng *rand.Rand, verbs odds) Call {
	return w.draw(rng, verbs, windowItems, batch)
}

// last looks up every item, and adds one more.
func (w *Windows) last(n int) []Call { return w.named(lastCalls(allItems(windowItems), n%2 == 0)) }
