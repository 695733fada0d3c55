package proof

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Windows describes the handles of one history of a Window.
type Windows struct {
	Span       time.Duration
	Panes      int
	ExpireIdle bool
	MustExist  bool
	Seed       uint64
	// Idle is how long nobody does anything, once.
	Idle time.Duration
	// Slow makes the answers to TIME late. Clients' clocks are then as wrong as
	// they may be, and items are looked up at the ends of Spans.
	Slow bool
	// Patient is how many panes long the clients wait for an answer, and after a
	// refusal. Commands and answers are held as long. Two of them add the same
	// items near the ends of epochs, while others turn the window.
	Patient int
	// Lag lets a region lag behind the primary.
	Lag bool
	// Others stores other data at the key, and lets other types write to it.
	Others bool
	// Renames moves the window away and back.
	Renames bool
	// Losses brings an older state of the window back.
	Losses bool
	// Backups is set if clients restore a Backup.
	Backups *Backups `json:"-"`
	// Shared are three items, if the window is so small that items share cells:
	// the last, which nobody adds, is in a pane that has the two others.
	Shared []string
	// Watch has the handles look at the fill, and makes two items of a pane too
	// many.
	Watch bool
	AtOnce

	linger   func()
	sessions windowSessions
}

// OnWarning sets what a WarnFill does besides.
func (w *Windows) OnWarning(linger func()) { w.linger = linger }

// windowSessions are the sessions of all clients. A call of one client can go
// through another's handles.
type windowSessions struct {
	mu  sync.Mutex
	all []*windowSession
}

// other returns the session of another client, if there is one.
func (w *windowSessions) other(than *windowSession) *windowSession {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, s := range w.all {
		next := w.all[(i+1)%len(w.all)]
		if s == than && next.client != than.client {
			return next
		}
	}
	return than
}

// windowItems is the number of items to choose from.
const windowItems = 3

// DrawWindows draws the Config of a history.
func DrawWindows(rng *rand.Rand) *Windows {
	w := &Windows{Panes: 1 + rng.IntN(2)}
	if rng.IntN(8) == 0 {
		w.Panes = 3 + rng.IntN(2)
	}
	w.Seed, w.Watch, w.Losses = drawSeed(rng), rng.IntN(3) == 0, rng.IntN(4) == 0
	w.Span = time.Duration(w.Panes)*10*time.Second + time.Duration(rng.Int64N(int64(20*time.Second)))
	switch rng.IntN(6) {
	case 0, 1:
		w.ExpireIdle = true
	case 2:
		w.MustExist = true
	}
	switch rng.IntN(4) {
	case 0: // the ends of panes are those of Spans, but for the slack
		w.Slow, w.Span = true, w.Span.Truncate(time.Duration(w.Panes)*time.Second)
		return w
	case 2:
		w.Patient = 1 + rng.IntN(w.Panes+3)
		if rng.IntN(2) == 0 {
			w.Idle = time.Duration(2+rng.IntN(w.Panes+4)) * w.Pane()
		}
		return w
	case 1:
		w.Others, w.Renames, w.Lag = rng.IntN(2) == 0, rng.IntN(2) == 0, rng.IntN(2) == 0
	case 3:
		if w.Watch = false; rng.IntN(2) == 0 {
			w.share()
		}
	}
	if rng.IntN(2) == 0 {
		w.Idle = time.Duration(w.drawIdle(rng)) * w.Pane()
	}
	return w
}

// share chooses items of a small window that share cells: two that have a word
// each of the third's two words.
func (w *Windows) share() {
	w.Shared = []string{"", "", itemName(windowItems - 1)}
	g, err := w.Config().Geometry()
	if err != nil {
		panic(err) // the sizes are constants
	}
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
		n := slices.Index(allItems(windowItems).Items, c.Items[i])
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

// Gap makes Windows a Timed type.
func (w *Windows) Gap() time.Duration { return w.Idle }

// Config returns the Config of the handles. The window is so large that the
// items share no cells, unless it is for that: see TestItemsApart.
func (w *Windows) Config() bloom.WindowConfig {
	cfg := bloom.WindowConfig{
		Capacity: 20, FPRate: 1e-6, Span: w.Span, Panes: w.Panes, ExpireIdle: w.ExpireIdle,
		MustExist: w.MustExist, Seed: w.Seed, BatchParallel: w.Parallel(),
	}
	if w.Shared != nil {
		cfg.FPRate = 0.1
	}
	if w.Watch {
		cfg.Capacity = watchCapacity // of the same size, because small windows have more room
	}
	return cfg
}

// configOf returns the Config of one of a pair of handles.
func (w *Windows) configOf(parts bool) bloom.WindowConfig {
	cfg := w.Config()
	if parts {
		cfg.BatchBytes = 1
	}
	return cfg
}

type windowSession struct {
	of      *Windows
	client  *upstash.Client
	key     string
	handles pair[bloom.Window]
	// moved is of the second key, and other has another Config.
	moved, other *bloom.Window

	watch *watch // nil if the handles have no WarnFill
}

// Open makes the handles of a process, whose client's observer must be Observe.
func (w *Windows) Open(clients []*upstash.Client, key string) (Handles, error) {
	c := clients[0]
	s := &windowSession{of: w, client: c, key: key, watch: newWatch(w.Watch, w.linger)}
	other := w.Config()
	other.Span = 2 * w.Span
	var errs [3]error
	errs[0] = s.handles.fill(func(parts bool) (*bloom.Window, error) {
		return s.handle(w.configOf(parts))
	})
	s.moved, errs[1] = bloom.NewWindow(c, secondKey(key), w.Config())
	s.other, errs[2] = bloom.NewWindow(c, key, other)
	w.sessions.mu.Lock()
	defer w.sessions.mu.Unlock()
	w.sessions.all = append(w.sessions.all, s)
	return s, errors.Join(errs[:]...)
}

// Run makes one call.
func (s *windowSession) Run(ctx context.Context, c Call) Result {
	if c.Verb == Align {
		passed := time.Duration(time.Now().UnixNano()) % s.of.Pane()
		time.Sleep((c.Wait - passed + s.of.Pane()) % s.of.Pane())
		return Result{End: Answered}
	}
	if c.Other {
		s = s.of.sessions.other(s)
	}
	_, before := s.client.KnownServerTime()
	a := newAttempts(c)
	r := s.watch.run(ctx, a, s.watchedBy(c), func(ctx context.Context) Result {
		return a.run(ctx, c, s.caller(c))
	})
	_, after := s.client.KnownServerTime()
	r.Timed, r.NoTime = before && after, a.noTime.Load()
	return r
}

// caller returns what makes a call.
func (s *windowSession) caller(c Call) func(context.Context) (Result, error) {
	return func(ctx context.Context) (Result, error) {
		r, err := s.call(ctx, c)
		why := cause(err)
		r.Early = err != nil && bloom.InFilter(why) && why != bloom.ErrUncertain &&
			!errors.Is(why, bloom.ErrNoTTL)
		return r, err
	}
}

// cause returns the error of the request that failed, if it was in a batch.
func cause(err error) error {
	var batch *bloom.BatchError
	if errors.As(err, &batch) {
		return batch.Err
	}
	return err
}

func (s *windowSession) call(ctx context.Context, c Call) (Result, error) {
	w := s.handles.at(c).Load()
	switch c.Verb {
	case Open:
		return s.open(ctx, c)
	case TakeBackup:
		return s.of.Backups.take(ctx, s.client, s.key)
	case RestoreBackup:
		return s.of.Backups.restore(ctx, s.client, s.key, 0)
	case AddOther:
		return single(s.other.Add(ctx, c.Items[0]))
	case Rename: // away, and back
		if c.Key == 1 {
			return c.by(ctx, s.moved, s.key)
		}
	case Stats:
		st, err := w.Stats(ctx)
		there := slices.ContainsFunc(st.Panes, func(p bloom.PaneStats) bool { return p.SetBits > 0 })
		return Result{Yes: []bool{there}, Count: len(st.Panes)}, err
	}
	return c.by(ctx, w, secondKey(s.key))
}

var windowVerbs = []Verb{
	Create, Open, Open,
	Add, Add, Add, Add, Add, Add, Add, AddAll, AddAll, Exists, Exists, Exists, Exists, ExistsAll,
	ExistsAll, Delete, Stats,
}

// Draw draws a call, sometimes near the end of an epoch, and sometimes with a
// second one before its item's Span ends.
func (w *Windows) Draw(rng *rand.Rand) []Call {
	calls := w.draw(rng)
	for i := range calls {
		calls[i] = w.named(calls[i])
	}
	return calls
}

func (w *Windows) draw(rng *rand.Rand) (calls []Call) {
	switch {
	case w.Backups != nil && rng.IntN(3) == 0:
		return drawBackup(rng, itemsOf(rng, windowItems, 1))
	case w.Slow && rng.IntN(2) == 0:
		return w.drawSpan(rng)
	case w.Patient > 0 && rng.IntN(4) > 0:
		return w.drawStory(rng)
	case w.Renames && rng.IntN(6) == 0:
		return []Call{{Verb: Rename}, {Verb: Rest, Wait: upTo(rng, 2*w.Pane())}, {Verb: Rename, Key: 1}}
	case w.Others && rng.IntN(10) == 0:
		return []Call{{Verb: AddOther, Items: []string{"item-other"}}}
	}
	if rng.IntN(3) == 0 {
		phase := time.Duration(rng.Int64N(int64(5*time.Second))) - 5*time.Second/2
		calls = append(calls, Call{Verb: Align, Wait: (w.Pane() + phase) % w.Pane()})
	}
	c := w.drawCall(rng, pick(rng, windowVerbs))
	calls = append(calls, c)
	if c.Verb == Open { // and uses the handle at once
		return append(calls, w.draw(rng)...)
	}
	if c.Verb.is(adds) && rng.IntN(3) == 0 {
		left := time.Duration(1 + rng.Int64N(int64(2500*time.Millisecond)))
		next := w.drawCall(rng, []Verb{Add, Exists}[rng.IntN(2)])
		next.Items = c.Items[:1]
		calls = append(calls, Call{Verb: Rest, Wait: w.Span - left}, next)
	}
	return calls
}

// drawSpan draws an Add just after an epoch has begun, or just before it ends, and
// a call of another client just before the item's Span ends.
func (w *Windows) drawSpan(rng *rand.Rand) []Call {
	begins := upTo(rng, 1500*time.Millisecond)
	if rng.IntN(2) == 0 {
		begins = (w.Pane() + begins - 500*time.Millisecond) % w.Pane()
	}
	c := w.drawCall(rng, Add)
	next := w.drawCall(rng, []Verb{Add, Exists, Exists}[rng.IntN(3)])
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
		c = Call{Verb: AddAll, Items: itemsOf(rng, windowItems, 2), Parts: rng.IntN(2) == 0}
	}
	phase := time.Duration(rng.Int64N(int64(6*time.Second))) - 2*time.Second
	return []Call{
		{Verb: Rest, Wait: upTo(rng, w.Pane())},
		{Verb: Align, Wait: (w.Pane() + phase) % w.Pane()},
		c,
	}
}

func (w *Windows) drawCall(rng *rand.Rand, v Verb) Call {
	c := Call{Verb: v}
	c.drawItems(rng, windowItems, batch)
	switch v {
	case Open:
		c.Parts = rng.IntN(4) == 0
	case AddAll, ExistsAll:
		if w.Watch && v == AddAll && rng.IntN(4) > 0 { // more than a pane is for
			c.Items = itemsOf(rng, windowItems, windowItems)
		}
		c.Parts = rng.IntN(3) == 0
	}
	return c
}

// DrawOutside occasionally draws an eviction, other data, or an older state.
func (w *Windows) DrawOutside(rng *rand.Rand) (c Call, ok bool) {
	if c.drawLoss(rng, w.Losses) {
		return c, rng.IntN(4) == 0
	}
	if w.Others && rng.IntN(12) == 0 {
		v := []Verb{Overwrite, Smudge, Smudge, Clear, Clear}[rng.IntN(5)]
		return Call{Verb: v, Items: []string{"item-other"}}, true
	}
	return Call{Verb: Clear}, rng.IntN(25) == 0
}

// Outside makes such a change.
func (w *Windows) Outside(dbs []*upstashtest.Server, key string, seed uint64, c Call) Result {
	if c.Verb == Clear {
		return evict(dbs[0], key)
	}
	return Filters{}.Outside(dbs, key, seed, c)
}

// Finish adds a look-up of every item and one more Add to the history.
func (w *Windows) Finish(ctx context.Context, h *History, _ []*upstashtest.Server, _ string, s Handles) error {
	return lastCalls(ctx, h, s, w.named(allItems(windowItems)), true)
}

// open opens the window.
func (s *windowSession) open(ctx context.Context, c Call) (Result, error) {
	cfg := s.of.configOf(c.Parts)
	cfg.Capacity, cfg.FPRate, cfg.Span, cfg.Panes, cfg.ExpireIdle = 0, 0, 0, 0, false // what the string says
	w, err := bloom.OpenWindow(ctx, s.client, s.key, cfg)
	return adopt(s.handles.at(c), w, err)
}

// handle makes a handle. It is watched if the history has watched handles.
func (s *windowSession) handle(cfg bloom.WindowConfig) (*bloom.Window, error) {
	if s.watch == nil {
		return bloom.NewWindow(s.client, s.key, cfg)
	}
	number, warn := s.watch.handle(0)
	cfg.WarnFill = func(st bloom.WindowStats) {
		wrong := ""
		full := slices.ContainsFunc(st.Panes, func(p bloom.PaneStats) bool { return p.Items > watchMost })
		if !full || st.Capacity != watchCapacity {
			wrong = fmt.Sprintf("a WarnFill with %+v", st)
		}
		warn(Warning{}, wrong)
	}
	w, err := bloom.NewWindow(s.client, s.key, cfg)
	s.watch.numbers[w] = number
	return w, err
}

// watchedBy returns the number of the handle of a call, or -1 if the handle has
// no WarnFill.
func (s *windowSession) watchedBy(c Call) int {
	if c.Verb == AddOther {
		return -1
	}
	return s.watch.number(s.handles.at(c).Load())
}
