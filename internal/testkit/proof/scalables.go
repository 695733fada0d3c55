package proof

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/lots"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Scalables describes the handles of one history of a Scalable. It promises
// what a Filter promises. Plain has the rest of its Config, and the model of a
// Filter checks its answers.
type Scalables struct {
	Plain  Filters
	FPRate float64
	// Layers is the highest number of layers. Handles with Call.Parts add none.
	Layers int
	Second bool // the filter is renamed, so there may be two
	Churn  bool // filters that have grown are deleted often
	Stays  bool // nothing removes the filter
	Causes bool // contexts end with the errors of other calls
	Watch  bool // the handles have a WarnFill

	linger func()
}

// OnWarning sets what a WarnFill does besides.
func (s *Scalables) OnWarning(linger func()) { s.linger = linger }

const (
	// layerItems is the capacity of the first layer, and the minimum.
	layerItems = 1000
	// An Add of manyMore items and one other looks for room first. bigMore and
	// one other do not fit into the first layer. halfMore and others are less
	// than half of its capacity. Of pauseMore, as many are new as end the pause
	// after a warning.
	manyMore, halfMore, bigMore, pauseMore = 15, 400, layerItems, layerItems + 100
)

// DrawScalables draws the Config of a history.
func DrawScalables(rng *rand.Rand) *Scalables {
	s := &Scalables{
		FPRate: []float64{0.5, 0.3, 0.05}[rng.IntN(3)], Layers: 1 + rng.IntN(4), Second: rng.IntN(3) == 0,
		Churn: rng.IntN(4) == 0,
	}
	s.Plain.MustExist, s.Plain.MissingIsEmpty = rng.IntN(6) == 0, rng.IntN(8) == 0
	if rng.IntN(2) == 0 {
		s.Plain.TTL = time.Hour
	}
	s.Causes, s.Stays = rng.IntN(4) == 0, !s.Churn && rng.IntN(4) == 0
	s.Plain.Seed = drawSeed(rng)
	s.Plain.drawRegion(rng)
	if s.Watch = rng.IntN(3) == 0; s.Watch && rng.IntN(4) > 0 { // the last layer is soon full
		s.Layers = 1 + rng.IntN(2)
	}
	return s
}

// Config returns the Config of the handles that grow.
func (s *Scalables) Config() bloom.ScalableConfig {
	return bloom.ScalableConfig{
		Capacity: layerItems, FPRate: s.FPRate, TTL: s.Plain.TTL, MustExist: s.Plain.MustExist,
		MissingIsEmpty: s.Plain.MissingIsEmpty, Reads: s.Plain.Reads, BatchParallel: 2,
		MaxBytes: s.offset(s.Layers) / 8, Seed: s.Plain.Seed,
	}
}

// layer returns the geometry of layer i.
func (s *Scalables) layer(i int) bloom.Geometry {
	g, err := bloom.ScalableConfig{Capacity: layerItems, FPRate: s.FPRate, Seed: s.Plain.Seed}.Geometry()
	if err != nil {
		panic(err) // the sizes are constants
	}
	g.Bits <<= 2 * i
	return g
}

// offset returns where layer i begins, in bits, by the documentation of the
// format.
func (s *Scalables) offset(i int) uint64 {
	at := uint64(192)
	for n := range i {
		at += (s.layer(n).Bits + 7) / 8 * 8
	}
	return at
}

type scalableSession struct {
	of           *Scalables
	client       *upstash.Client
	keys         [2]string
	whole, parts [2]atomic.Pointer[bloom.Scalable] // by key

	watch   *watch                  // nil if the handles have no WarnFill
	watched map[*bloom.Scalable]int // their numbers; an opened one has none
}

// Open makes the handles of a process, whose client's observer must be Observe.
func (s *Scalables) Open(clients []*upstash.Client, key string) (Handles, error) {
	h := &scalableSession{of: s, client: clients[0], keys: [2]string{key, secondKey(key)}}
	if s.Watch {
		h.watch, h.watched = newWatch(s.linger), make(map[*bloom.Scalable]int)
	}
	for i := range h.keys {
		cfg := s.Config()
		whole, err := h.handle(i, cfg, s.Layers)
		if err != nil {
			return nil, err
		}
		cfg.BatchBytes, cfg.MaxBytes = 1, s.offset(1)/8
		parts, err := h.handle(i, cfg, 1)
		if err != nil {
			return nil, err
		}
		h.whole[i].Store(whole)
		h.parts[i].Store(parts)
	}
	return h, nil
}

// Run makes one call.
func (s *scalableSession) Run(ctx context.Context, c Call) Result {
	a := newAttempts(c)
	if a.adds {
		a.sorts = func(e upstash.Event) bool { return a.putsItems(e, s.of.Plain.MustExist, c.Parts) }
	}
	do := func(ctx context.Context) Result {
		r := a.run(ctx, c, func(ctx context.Context) (Result, error) { return s.call(ctx, c) })
		if a.watched != nil && r.End == Answered && c.adds() {
			a.watched.New = countTrue(r.Yes)
		}
		r.Yes, r.States = r.Yes[:min(len(r.Yes), answersTo(c))], r.States[:min(len(r.States), len(c.Items))]
		return r
	}
	if s.watch == nil {
		return do(ctx)
	}
	return s.watch.run(ctx, a, s.watchedBy(c), do)
}

func countTrue(yes []bool) (n int) {
	for _, y := range yes {
		if y {
			n++
		}
	}
	return n
}

// answersTo returns the number of answers to a call, without those for More
// items.
func answersTo(c Call) int { return max(len(c.Items), 1) }

// putsItems reports whether an attempt of an Add may put items. Earlier
// attempts are a look-up of the item, and scripts that find room or make the
// filter.
func (a *attempts) putsItems(e upstash.Event, must, parts bool) bool {
	if must {
		return e.Command != "BITFIELD"
	}
	if e.Command != "BITFIELD" {
		if !a.plain.Load() {
			a.scripts.Add(1)
			if e.MayHaveRun > 0 {
				a.lostScripts.Add(1)
			}
		}
		return false
	}
	if e.Attempt == 1 && !parts { // the look-up is over
		a.tried.Store(0)
		a.maybe.Store(0)
	}
	return true
}

func (s *scalableSession) call(ctx context.Context, c Call) (Result, error) {
	f := s.whole[c.Key].Load()
	if c.Parts {
		f = s.parts[c.Key].Load()
	}
	switch c.Verb {
	case Open:
		return s.open(ctx, c)
	case Stats:
		st, err := f.Stats(ctx)
		return Result{Count: len(st.Layers)}, err
	case Cardinality:
		n, err := f.Cardinality(ctx)
		return Result{Count: int(n)}, err
	case Persist:
		return single(f.Persist(ctx))
	case SetTTL:
		return single(f.Expire(ctx, time.Hour))
	case Rename:
		return none(f.Rename(ctx, s.keys[1-c.Key]))
	}
	c.Items = withMore(c)
	return common(ctx, f, c)
}

func withMore(c Call) []string {
	list := append([]string(nil), c.Items...)
	for i := range c.More {
		list = append(list, moreName(i))
	}
	return list
}

func moreName(n int) string { return "more-" + strconv.Itoa(n) }

// churns returns the number of calls for each Delete of a grown filter.
func (s *Scalables) churns() int {
	if s.Churn {
		return 2
	}
	return 20
}

// removal is the verb for removing the filter. A late Delete would explain
// whatever is missing later.
func (s *Scalables) removal() Verb {
	if s.Churn {
		return Clear
	}
	return Delete
}

var scalableVerbs = []Verb{
	Create, Open, Open,
	Add, Add, Add, Add, Add, Add, Add, Add, AddAll, AddAll, AddAll, Exists, Exists, Exists, Exists,
	Exists, ExistsAll, ExistsAll, Stats, Cardinality, Delete, Delete, Persist, Persist, SetTTL, SetTTL, Open,
}

// Draw draws a call, or a Rename away and back.
func (s *Scalables) Draw(rng *rand.Rand) []Call {
	switch {
	case s.Layers > 1 && rng.IntN(s.churns()) == 0:
		return s.drawRemoval(rng)
	case s.Watch && s.Layers == 1 && s.FPRate == 0.05 && !s.Stays && rng.IntN(6) == 0:
		return s.drawPause(rng)
	case s.Watch && rng.IntN(4) == 0: // the filter is too full, or soon will be
		one := Call{Verb: Add, Items: items(rng, 1), Parts: rng.IntN(3) == 0}
		return []Call{{Verb: Fill}, one, {Verb: AddAll, Items: items(rng, 2)}}
	}
	c := Call{Verb: scalableVerbs[rng.IntN(len(scalableVerbs))], Parts: rng.IntN(4) == 0}
	switch {
	case c.Verb == Delete && s.Stays:
		c.Verb = Create
	case c.Verb == Delete:
		c.Verb = s.removal()
	}
	if s.Second && rng.IntN(8) == 0 {
		c.Verb = Rename
	}
	if s.Causes && rng.IntN(3) == 0 {
		c.drawCause(rng)
	}
	if s.Second && rng.IntN(4) == 0 {
		c.Key = 1
	}
	s.drawItems(rng, &c)
	switch c.Verb {
	case Open: // and uses the handle at once
		if s.Layers > 1 && rng.IntN(3) == 0 { // which must not grow
			c.Parts = false
			half := Call{Verb: AddAll, Items: items(rng, 1), More: halfMore, Key: c.Key}
			return []Call{c, half, {Verb: Stats, Key: c.Key}}
		}
		return append([]Call{c}, s.Draw(rng)...)
	case Rename:
		next := c
		next.Key, next.Cause = 1-c.Key, 0
		if rng.IntN(4) > 0 {
			return []Call{c, next}
		}
	}
	return []Call{c}
}

// drawRemoval draws calls of a handle that knows of two layers when another
// client deletes the filter.
func (s *Scalables) drawRemoval(rng *rand.Rand) []Call {
	more := []int{manyMore, bigMore}[rng.IntN(2)]
	last := items(rng, 1)
	calls := []Call{
		{Verb: AddAll, Items: items(rng, 1), More: more},
		{Verb: s.removal(), Parts: true},
		{Verb: Add, Items: items(rng, 1)},
		{Verb: []Verb{Persist, SetTTL, s.removal()}[rng.IntN(3)], Parts: true},
		{Verb: Add, Items: last},
		{Verb: Rest, Wait: 30 * time.Millisecond}, // a script may run late
		{Verb: Exists, Items: last},
		{Verb: HasTTL},
	}
	if s.Stays {
		return slices.DeleteFunc(calls, func(c Call) bool { return c.Verb == s.removal() })
	}
	return calls
}

// drawPause draws calls around the end of the pause after a warning.
func (s *Scalables) drawPause(rng *rand.Rand) []Call {
	return []Call{
		{Verb: Fill},
		{Verb: Add, Items: items(rng, 1)},
		{Verb: Clear},
		{Verb: AddAll, Items: items(rng, 1), More: pauseMore - 300*rng.IntN(2)},
		{Verb: Fill},
		{Verb: AddAll, Items: items(rng, 3)},
	}
}

// drawItems draws the items of a call, if it takes some.
func (s *Scalables) drawItems(rng *rand.Rand, c *Call) {
	switch c.Verb {
	case Add, Exists:
		c.Items = items(rng, 1)
	case ExistsAll:
		c.Items = items(rng, 3)
	case AddAll:
		c.Items = items(rng, 1+rng.IntN(3))
		switch {
		case c.Parts:
		case s.Layers > 1 && rng.IntN(16) == 0:
			c.More = bigMore
		case s.Layers > 1 && rng.IntN(12) == 0:
			c.More = halfMore
		case rng.IntN(2) == 0:
			c.More = manyMore
		}
	}
}

// DrawOutside draws, after one call in six, a change from outside.
func (s *Scalables) DrawOutside(rng *rand.Rand) (c Call, ok bool) {
	verbs := []Verb{Fill, Fill, Fill, Fill, HasTTL, HasTTL, Smudge, Expire, Clear, Clear, Overwrite}
	switch {
	case s.Churn: // a removal by others shows nothing
		verbs = verbs[3:6]
	case s.Stays:
		verbs = verbs[:7]
	}
	c.Verb = verbs[rng.IntN(len(verbs))]
	if c.Verb == Smudge {
		c.Items = items(rng, 1)
	}
	return c, rng.IntN(6) == 0
}

// Finish adds last calls to the history: look-ups of every item, and one more
// Add. If the newest layer is full, the Add must make the next one.
func (s *Scalables) Finish(
	ctx context.Context, h *History, dbs []*upstashtest.Server, key string, handles Handles,
) error {
	ctx = lots.With(ctx, func() float64 { return 0 })
	outside := func(v Verb) {
		h.Do("outside", atLast, Call{Verb: v}, func(c Call) Result { return s.Outside(dbs, key, 0, c) })
	}
	outside(Fill)
	if err := lastCalls(ctx, h, handles, itemCount, true); err != nil {
		return err
	}
	outside(HasTTL)
	for i, item := range lastItems[1:] { // the last handle does not grow, and was not opened
		outside(Fill)
		add := Call{Verb: Add, Items: []string{item}, Parts: i == 1}
		h.Do(atLast, atLast, add, func(c Call) Result { return handles.Run(ctx, c) })
	}
	outside(Layers)
	for i := range 2 {
		all := allItems(itemCount)
		all.Key = i
		h.Do(atLast, atLast, all, func(c Call) Result { return handles.Run(ctx, c) })
	}
	return nil
}
