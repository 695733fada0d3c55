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
	// Mirrors is true if clients have some.
	Mirrors bool
	Staleness
	// Shared are three items, if the window is so small that items share cells:
	// the last, which nobody adds, is in a pane that has the two others.
	Shared []string
}

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
	if often(rng, 2) {
		w.MaxStale = upTo(rng, 6*time.Second)
	}
	if often(rng, 2) {
		w.StaleIfError = upTo(rng, w.Span)
	}
	w.limit()
	switch rng.IntN(4) {
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

// named gives the items of a call their names. The last of those that share cells
// is only looked up.
func (w *Windows) named(c Call) Call {
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
	return c
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

var windowVerbs = []Verb{
	Create, Open, Open,
	Add, Add, Add, Add, Add, Add, Add, AddAll, AddAll, Exists, Exists, Exists, Exists, ExistsAll,
	ExistsAll, Delete, Stats,
}

// Draw draws a call, sometimes near the end of an epoch, and sometimes with a
// second one before its item's Span ends; or seldom an eviction, other data, or
// an older state.
func (w *Windows) Draw(rng *rand.Rand) []Call {
	calls := w.drawCalls(rng)
	for i := range calls {
		calls[i] = w.named(calls[i])
	}
	return calls
}

func (w *Windows) drawCalls(rng *rand.Rand) (calls []Call) {
	loss, lost := w.drawLoss(rng)
	switch {
	case lost && often(rng, 4):
		return []Call{loss}
	case !lost && w.Others && often(rng, 12):
		v := pick(rng, []Verb{Overwrite, Smudge, Smudge, Clear, Clear})
		return []Call{{Verb: v, Items: []string{"item-other"}}}
	case !lost && often(rng, 25):
		return []Call{{Verb: Clear}}
	case w.Silences && w.ExpireIdle && often(rng, 12):
		return drawTimed(rng, itemsOf(rng, windowItems, 2))
	case w.Backups != nil && often(rng, 3):
		return drawBackup(rng, itemsOf(rng, windowItems, 1))
	case w.Slow && often(rng, 2):
		return w.drawSpan(rng)
	case w.Patient > 0 && !often(rng, 4):
		return w.drawStory(rng)
	case w.Renames && often(rng, 6):
		return []Call{{Verb: Rename}, {Verb: Rest, Wait: upTo(rng, 2*w.Pane())}, {Verb: Rename, Key: 1}}
	case w.Others && often(rng, 10):
		return []Call{{Verb: AddOther, Items: []string{"item-other"}}}
	}
	if often(rng, 3) {
		phase := upTo(rng, 5*time.Second) - 5*time.Second/2
		calls = append(calls, Call{Verb: Align, Wait: (w.Pane() + phase) % w.Pane()})
	}
	c := w.drawCall(rng, windowVerbs...)
	if w.Mirrors && often(rng, 2) {
		c = w.drawCall(rng, MirrorExists, MirrorExists, MirrorAll, MirrorAdd, MirrorThrough, MirrorThrough, MirrorAddAll, Refresh)
	}
	if c.Verb == Open {
		return append(calls, w.follow(rng, c, w.drawCalls)...)
	}
	calls = append(calls, c)
	if c.Verb.is(adds) && often(rng, 3) {
		left := upTo(rng, 2500*time.Millisecond)
		next := w.drawCall(rng, Add, Exists)
		next.Items = c.Items[:1]
		calls = append(calls, Call{Verb: Rest, Wait: w.Span - left}, next)
	}
	return calls
}

// drawSpan draws an Add just after an epoch has begun, or just before it ends, and
// a call of another client just before the item's Span ends.
func (w *Windows) drawSpan(rng *rand.Rand) []Call {
	begins := upTo(rng, 1500*time.Millisecond)
	if often(rng, 2) {
		begins = (w.Pane() + begins - 500*time.Millisecond) % w.Pane()
	}
	c := w.drawCall(rng, Add)
	next := w.drawCall(rng, Add, Exists, Exists)
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
	c := Call{Verb: Add, Items: []string{itemName(rng.IntN(3) / 2)}}
	switch rng.IntN(8) {
	case 0:
		c.Verb = Exists
	case 1:
		c = Call{Verb: AddAll, Items: itemsOf(rng, windowItems, 2), Parts: often(rng, 2)}
	}
	return append(w.drawBegin(rng), c)
}

// drawBegin draws a pause until the beginning of an epoch is near.
func (w *Windows) drawBegin(rng *rand.Rand) []Call {
	phase := upTo(rng, 6*time.Second) - 2*time.Second
	return []Call{
		{Verb: Rest, Wait: upTo(rng, w.Pane())},
		{Verb: Align, Wait: (w.Pane() + phase) % w.Pane()},
	}
}

func (w *Windows) drawCall(rng *rand.Rand, verbs ...Verb) Call {
	return w.draw(rng, verbs, windowItems, batch)
}

// last looks up every item, and adds one more, again if a lost-then-error waited for
// a TIME.
func (w *Windows) last(n int) []Call {
	calls := lastCalls(allItems(windowItems), n%2 == 0)
	again := calls[len(calls)-1]
	calls[len(calls)-1].Sure = false
	calls = append(calls, again)
	for i := range calls {
		calls[i] = w.named(calls[i])
	}
	return calls
}
