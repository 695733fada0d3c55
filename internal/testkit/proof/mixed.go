package proof

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Mixed describes the handles of one history of a Filter, and of a Window or a
// Scalable beside it. Its calls add an item to several of them, or look it up
// there, in any order and with a handle named twice. Each filter's answers are
// checked by the model of its type. Call.Shard says which filter a call of one
// alone concerns. No call has several requests that may be under way at once.
type Mixed struct {
	Common
	Filter Filters
	// One of the two is set.
	Window   *Windows   `json:",omitempty"`
	Scalable *Scalables `json:",omitempty"`
}

func (m *Mixed) drawConfig(rng *rand.Rand, _ Theme) {
	m.Parallel = 1
	m.Filter = Filters{Bits: 106, Hashes: 4}
	m.Filter.drawSeed(rng)
	m.Filter.MissingIsEmpty = often(rng, 8)
	if often(rng, 2) { // longer than a history, but not than a Gap
		m.Filter.TTL = 24 * time.Hour
	}
	if often(rng, 2) {
		w := new(Windows)
		w.drawConfig(rng, 0)
		w.Slow, w.Lag, w.Others, w.Renames = false, false, false, false
		w.Losses, w.Shared = false, nil
		m.Window = w
		if w.Idle > 0 {
			m.Filter.TTL = 0
		}
		return
	}
	s := &Scalables{FPRate: pick(rng, []float64{0.5, 0.05}), Layers: 1}
	s.MustExist, s.MissingIsEmpty, s.TTL = often(rng, 6), often(rng, 8), m.Filter.TTL
	s.drawSeed(rng)
	m.Scalable = s
}

// other returns the type beside the Filter.
func (m *Mixed) other() interface {
	Type
	maker
} {
	if m.Window != nil {
		return m.Window
	}
	return m.Scalable
}

func (m *Mixed) itemCount() int {
	if m.Window != nil {
		return windowItems
	}
	return itemCount
}

// Pane returns the Window's. Without one its clients rest as long.
func (m *Mixed) Pane() time.Duration {
	if m.Window != nil {
		return m.Window.Pane()
	}
	return 20 * time.Second
}

// Gap returns the Window's.
func (m *Mixed) Gap() time.Duration {
	if m.Window != nil {
		return m.Window.Idle
	}
	return 0
}

// keyOf returns the key of a filter.
func (m *Mixed) keyOf(key string, part int) string {
	if part == 0 {
		return key
	}
	return key + ":other"
}

var mixedVerbs = odds{{2, Create}, {2, Add}, {2, Exists}, {1, Delete}}

// mixedOrders are the handles of calls. Some name a key twice.
var mixedOrders = [][]int{
	{0, intoOther},
	{intoOther, 0},
	{0, intoOther, intoOtherAgain},
	{intoStrict, 0},
	{intoStrict, intoOther, 0},
	{intoOther, intoStrict, intoOtherAgain},
}

// Draw draws a call: most are of several filters. With a Window, some are near
// the beginning of an epoch. The server forgets its scripts now and then, and seldom
// evicts a filter.
func (m *Mixed) Draw(rng *rand.Rand) []Call {
	timed := when(m.Filter.TTL != 0, 20)
	idle := when(timed == 0 && m.Window != nil && m.Window.ExpireIdle, 20)
	in := Call{Verb: AddIn, Into: pick(rng, mixedOrders), Items: itemsOf(rng, m.itemCount(), 1)}
	one := Call{Verb: weighted(rng, mixedVerbs), Shard: rng.IntN(2)}
	one.drawItems(rng, m.itemCount(), batch)
	found := in
	found.Verb = ExistsIn
	calls := weighted(rng, []choice[story]{
		{60, story{in}},
		{20, story{found}},
		{20, story{one}},
		{timed, story{in, {Verb: ProbeTTL}}},
		{idle, story{in, {Verb: ProbeTTL, Shard: 1}}},
		{32, story{{Verb: FlushScripts}}},
		{4, story{{Verb: Clear, Shard: rng.IntN(2)}}},
	})
	if w := m.Window; w != nil && !calls[0].FromOutside() && (often(rng, 4) || w.Patient > 0 && !often(rng, 4)) {
		return append(w.drawBegin(rng), calls...)
	}
	return calls
}

// Outside makes a call on the database itself.
func (m *Mixed) Outside(dbs []*upstashtest.Server, key string, seed uint64, c Call) Result {
	return m.Common.Outside(dbs, m.keyOf(key, c.Shard), seed, c)
}

// last looks up every item, and adds one more to each filter.
func (m *Mixed) last(int) (calls []Call) {
	for part := range 2 {
		for _, c := range lastCalls(allItems(m.itemCount()), false) {
			c.Shard = part
			calls = append(calls, c)
		}
	}
	return calls
}

// Describe describes an item of the Filter.
func (m *Mixed) Describe(item string) string { return m.Filter.Describe(item) }

// Steps makes the steps of each filter's history, and checks the rules about
// both.
func (m *Mixed) Steps(h *History) ([]porcupine.Operation, error) {
	var all []porcupine.Operation
	for part, of := range []Subject{&m.Filter, m.other()} {
		own, err := h.apart(part, m.Window != nil && part == 1)
		if err != nil {
			return nil, err
		}
		own.of = of
		steps, err := of.Steps(own)
		if err != nil {
			return nil, fmt.Errorf("filter %d: %w\n%s", part, err, own.text())
		}
		for _, o := range steps {
			o.Input.(*step).part = part
		}
		all = append(all, steps...)
	}
	return all, nil
}
