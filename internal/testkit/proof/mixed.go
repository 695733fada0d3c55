package proof

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Mixed describes the handles of one history of a Filter, and of a Window or a
// Scalable beside it. Its calls add an item to several of them, or look it up
// there, in any order and with a handle named twice. Each filter's answers are
// checked by the model of its type. Call.Shard says which filter a call of one
// alone concerns.
type Mixed struct {
	Filter Filters
	// One of the two is set.
	Window   *Windows   `json:",omitempty"`
	Scalable *Scalables `json:",omitempty"`
}

// Parallel returns 1: no call has several requests that may be under way at once.
func (m *Mixed) Parallel() int { return 1 }

func (m *Mixed) drawParallel(*rand.Rand) {}

// The handles that Call.Into names. The strict one is of the same key as the
// first, and has MustExist: its writes are scripts. The last two are of the
// other filter.
const (
	intoFilter = iota
	intoStrict
	intoOther
	intoOtherAgain
)

// mixedPart returns the filter of a handle: 0, or 1 for the other one.
func mixedPart(into int) int { return into / 2 }

// DrawMixed draws the Config of a history.
func DrawMixed(rng *rand.Rand) *Mixed {
	m := &Mixed{Filter: Filters{Bits: 106, Hashes: 4, Seed: drawSeed(rng)}}
	m.Filter.MissingIsEmpty = rng.IntN(8) == 0
	if rng.IntN(2) == 0 { // longer than a history, but not than a Gap
		m.Filter.TTL = 24 * time.Hour
	}
	if rng.IntN(2) == 0 {
		w := DrawWindows(rng)
		w.Slow, w.Lag, w.Others, w.Renames, w.Watch = false, false, false, false, false
		w.Losses, w.Shared = false, nil
		if m.Window = w; w.Idle > 0 {
			m.Filter.TTL = 0
		}
		return m
	}
	m.Scalable = &Scalables{FPRate: []float64{0.5, 0.05}[rng.IntN(2)], Layers: 1}
	m.Scalable.Plain.MustExist, m.Scalable.Plain.MissingIsEmpty = rng.IntN(6) == 0, rng.IntN(8) == 0
	m.Scalable.Plain.Seed, m.Scalable.Plain.TTL = drawSeed(rng), m.Filter.TTL
	return m
}

// other returns the type beside the Filter.
func (m *Mixed) other() Type {
	if m.Window != nil {
		return m.Window
	}
	return m.Scalable
}

func (m *Mixed) items() int {
	if m.Window != nil {
		return windowItems
	}
	return itemCount
}

// Pane makes Mixed a Timed type. Without a Window its clients rest as long.
func (m *Mixed) Pane() time.Duration {
	if m.Window != nil {
		return m.Window.Pane()
	}
	return 20 * time.Second
}

// Gap is that of the Window.
func (m *Mixed) Gap() time.Duration {
	if m.Window != nil {
		return m.Window.Idle
	}
	return 0
}

type mixedSession struct {
	of     *Mixed
	client *upstash.Client
	filter *session
	strict *bloom.Filter
	other  Handles
}

// keyOf returns the key of a filter.
func (m *Mixed) keyOf(key string, part int) string {
	if part == 0 {
		return key
	}
	return key + ":other"
}

// strict returns the Config of the handle whose writes are scripts.
func (m *Mixed) strict() Filters {
	f := m.Filter
	f.MustExist = true
	return f
}

// Open makes the handles of a process, whose client's observer must be Observe.
func (m *Mixed) Open(clients []*upstash.Client, key string) (Handles, error) {
	one, err := m.Filter.Open(clients, m.keyOf(key, 0))
	if err != nil {
		return nil, err
	}
	other, err := m.other().Open(clients, m.keyOf(key, 1))
	if err != nil {
		return nil, err
	}
	strict, err := bloom.New(clients[0], m.keyOf(key, 0), m.strict().Config())
	return &mixedSession{m, clients[0], one.(*session), strict, other}, err
}

// Run makes one call.
func (s *mixedSession) Run(ctx context.Context, c Call) Result {
	switch {
	case len(c.Into) > 0:
		return s.in(ctx, c)
	case c.Verb == Align && s.of.Window == nil:
		return Result{End: Answered}
	case c.Shard == 1 || c.Verb == Align:
		return s.other.Run(ctx, c)
	}
	return s.filter.Run(ctx, c)
}

// handle returns the handle that Call.Into names.
func (s *mixedSession) handle(into int) bloom.AnyFilter {
	again := Call{Parts: into == intoOtherAgain}
	switch o := s.other.(type) {
	case *windowSession:
		if into >= intoOther {
			return o.handles.at(again).Load()
		}
	case *scalableSession:
		if into >= intoOther {
			return o.handles[0].at(again).Load()
		}
	}
	if into == intoStrict {
		return s.strict
	}
	return s.filter.handles[0].whole.Load()
}

// in adds an item to several filters, or asks them for it.
func (s *mixedSession) in(ctx context.Context, c Call) Result {
	var filters []bloom.AnyFilter
	for _, n := range c.Into {
		filters = append(filters, s.handle(n))
	}
	do := bloom.AddIn
	if c.Verb == ExistsIn {
		do = bloom.ExistsIn
	}
	_, before := s.client.KnownServerTime()
	a := newAttempts(c)
	r := a.run(ctx, c, func(ctx context.Context) (Result, error) {
		answers, err := do(ctx, c.Items[0], filters...)
		r := Result{End: Partly}
		for _, a := range answers {
			one := Result{
				End: endOf(a.Err, causeOf(c)), Yes: []bool{a.Yes}, Safe: upstash.SafeToRetry(a.Err),
				Early: a.Err != nil && bloom.InFilter(a.Err) && a.Err != bloom.ErrUncertain &&
					!errors.Is(a.Err, bloom.ErrNoTTL),
			}
			if a.Err != nil {
				one.Err = a.Err.Error()
			}
			r.Each, r.Yes, r.Ends = append(r.Each, one), append(r.Yes, a.Yes), append(r.Ends, one.End)
		}
		return r, err
	})
	_, after := s.client.KnownServerTime()
	r.Timed, r.NoTime = before && after, a.noTime.Load()
	return r
}

var mixedVerbs = []Verb{Create, Create, Add, Add, Exists, Exists, Delete}

// mixedOrders are the handles of calls. Some name a key twice.
var mixedOrders = [][]int{
	{intoFilter, intoOther},
	{intoOther, intoFilter},
	{intoFilter, intoOther, intoOtherAgain},
	{intoStrict, intoFilter},
	{intoStrict, intoOther, intoFilter},
	{intoOther, intoStrict, intoOtherAgain},
}

// Draw draws a call: most are of several filters. With a Window, some are near
// the beginning of an epoch.
func (m *Mixed) Draw(rng *rand.Rand) (calls []Call) {
	if w := m.Window; w != nil && (rng.IntN(4) == 0 || w.Patient > 0 && rng.IntN(4) > 0) {
		phase := time.Duration(rng.Int64N(int64(6*time.Second))) - 2*time.Second
		calls = []Call{
			{Verb: Rest, Wait: upTo(rng, w.Pane())},
			{Verb: Align, Wait: (w.Pane() + phase) % w.Pane()},
		}
	}
	c := Call{Verb: AddIn, Into: pick(rng, mixedOrders), Items: itemsOf(rng, m.items(), 1)}
	switch rng.IntN(8) {
	case 0, 1:
		c.Verb = ExistsIn
	case 2, 3:
		c = Call{Verb: pick(rng, mixedVerbs), Shard: rng.IntN(2)}
		c.drawItems(rng, m.items(), batch)
	}
	return append(calls, c)
}

// DrawOutside draws, after one call in four, that the server forgets its scripts,
// and seldom an eviction.
func (m *Mixed) DrawOutside(rng *rand.Rand) (c Call, ok bool) {
	if rng.IntN(8) == 0 {
		return Call{Verb: Clear, Shard: rng.IntN(2)}, rng.IntN(3) == 0
	}
	return Call{Verb: FlushScripts}, rng.IntN(4) == 0
}

// Outside makes such a change.
func (m *Mixed) Outside(dbs []*upstashtest.Server, key string, _ uint64, c Call) Result {
	if c.Verb == Clear {
		return evict(dbs[0], m.keyOf(key, c.Shard))
	}
	_, err := dbs[0].Exec("SCRIPT", "FLUSH")
	return outsideResult(err, true, 0)
}

// Finish adds a look-up of every item and one more Add to each filter.
func (m *Mixed) Finish(ctx context.Context, h *History, _ []*upstashtest.Server, _ string, s Handles) error {
	for part := range 2 {
		all, add := allItems(m.items()), Call{Verb: Add, Items: []string{itemAtLast}, Shard: part}
		all.Shard = part
		for _, c := range []Call{all, add} {
			r := h.Do(atLast, atLast, c, func(c Call) Result { return s.Run(ctx, c) })
			if err := unharmed(c, r); c.Verb == Add && err != nil {
				return err
			}
		}
	}
	return nil
}

// Initial is the state of two empty keys, for each filter.
func (m *Mixed) Initial() any { return m.Filter.Initial() }

// Hash is that of the model of a Filter.
func (m *Mixed) Hash(state any) uint64 { return m.Filter.Hash(state) }

// Describe describes an item of the Filter.
func (m *Mixed) Describe(item string) string { return m.Filter.Describe(item) }

// Steps makes the steps of each filter's history, and checks the rules about
// both.
func (m *Mixed) Steps(h *History) ([]porcupine.Operation, error) {
	for n, c := range h.calls {
		if err := m.consistent(h, c); err != nil {
			return nil, fmt.Errorf("call %d: %w", n, err)
		}
	}
	var all []porcupine.Operation
	strict := m.strict()
	for part, of := range []Subject{&m.Filter, m.other()} {
		own, isStrict := m.historyOf(h, part)
		own.of = of
		steps, err := of.Steps(own)
		if err != nil {
			return nil, fmt.Errorf("filter %d: %w\n%s", part, err, own.text())
		}
		for _, o := range steps {
			p := o.Input.(*step)
			if p.part = part; part == 0 && isStrict[o.ClientId] {
				p.of = &strict
			}
		}
		all = append(all, steps...)
	}
	return all, nil
}

// historyOf returns the calls of one filter, and which were made by the strict
// handle. What an AddIn did to the filter is an Add to it.
func (m *Mixed) historyOf(h *History, part int) (own *History, strict map[int]bool) {
	own, strict = &History{ticks: h.ticks, begin: h.begin}, make(map[int]bool)
	for _, c := range h.calls {
		if len(c.call.Into) == 0 {
			if c.call.Shard == part && c.call.Verb != FlushScripts {
				one := *c
				one.call.Shard = 0
				own.calls = append(own.calls, &one)
			}
			continue
		}
		for i, into := range c.call.Into {
			if mixedPart(into) == part {
				strict[len(own.calls)] = into == intoStrict
				own.calls = append(own.calls, c.toOne(i, m.Window != nil && part == 1))
			}
		}
	}
	return own, strict
}

// toOne returns what a call did to the filter at Into[i]. A window's item may
// have been sent before the call's last attempt.
func (c *called) toOne(i int, window bool) *called {
	one := *c
	one.spread = true
	one.call = Call{Verb: Add, Items: c.call.Items, Parts: window}
	if c.call.Verb == ExistsIn {
		one.call.Verb = Exists
	}
	one.result = Result{End: Unknown}
	if i < len(c.result.Each) {
		one.result = c.result.Each[i]
	}
	r := &one.result
	r.Timed, r.NoTime, r.Sent, r.Tried, r.Maybe = c.result.Timed, c.result.NoTime, c.result.Sent, c.result.Tried, c.result.Maybe
	if r.Safe && c.call.Verb == AddIn && r.Err != "" { // then no attempt changed this filter
		r.Tried, r.Maybe = 0, 0
	}
	return &one
}

// consistent returns an error for a result of several filters that nothing
// explains.
func (m *Mixed) consistent(h *History, c *called) error {
	if strings.Contains(c.result.Err, "shebang") {
		return errors.New("the server refused the first line of a script, and the caller was told")
	}
	if c.call.Verb != AddIn {
		return nil
	}
	changed := func(r Result) bool { return !r.Safe || r.Err == "" }
	if c.result.Safe && slices.ContainsFunc(c.result.Each, changed) {
		return errors.New("safe to retry, although a filter may have the item")
	}
	return m.inOrder(h, c)
}

// inOrder returns an error if of two handles of one filter the second added the
// item, and the first found it. Nothing but a removal explains that. A window's
// commands may be sent again, in another order.
func (m *Mixed) inOrder(h *History, c *called) error {
	for j, later := range c.result.Each {
		for i, first := range c.result.Each[:j] {
			part := mixedPart(c.call.Into[i])
			if part != mixedPart(c.call.Into[j]) || part == 1 && m.Window != nil || first.End != Answered ||
				later.End != Answered || first.Yes[0] || !later.Yes[0] {
				continue
			}
			if !slices.ContainsFunc(h.calls, func(o *called) bool { return o.mayRemove() && c.overlaps(o) }) {
				return errors.New("of two commands to one filter, the second ran first")
			}
		}
	}
	return nil
}
