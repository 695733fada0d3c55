package proof

import (
	"fmt"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/upbloom/upbloom/bloom"
)

// maxItems is how many items a call has at most.
const maxItems = 16

// splitter turns calls into steps of the model.
type splitter struct {
	geo     bloom.Geometry
	kind    Kind
	steps   []porcupine.Operation
	batches int
	// removals are the calls that may have removed the filter.
	removals []*called
}

func (h *History) split() ([]porcupine.Operation, error) {
	s := splitter{geo: h.geo, kind: h.kind}
	for _, c := range h.calls {
		if c.mayRemove() {
			s.removals = append(s.removals, c)
		}
	}
	for n, c := range h.calls {
		if err := s.call(n, c); err != nil {
			return nil, fmt.Errorf("call %d: %w", n, err)
		}
	}
	return s.steps, nil
}

// mayRemove reports whether a call may have removed a filter.
func (c *called) mayRemove() bool {
	switch c.call.Verb {
	case Delete, Expire, Clear:
		return c.result.End == Unknown || c.result.End == Answered && c.result.Yes[0]
	case Overwrite, Lapse:
		return true
	}
	return false
}

// strays returns how many of n attempts of c can make a difference. An item
// that is in the filter stays in it until a removal, so only one attempt before
// each removal can.
func (s *splitter) strays(c *called, n int) int {
	useful := 1
	for _, r := range s.removals {
		if r.to > c.from {
			useful++
		}
	}
	return min(n, useful)
}

// call makes the steps of one call: those that were answered, and an open one
// for each further attempt that may take effect.
func (s *splitter) call(n int, c *called) error {
	if err := consistent(c); err != nil {
		return err
	}
	ends := make([]bloom.ItemState, max(1, len(c.call.Items)))
	for i := range ends {
		ends[i] = stateOf(c.result, i)
	}
	if c.call.Verb != AddAll && c.call.Verb != ExistsAll || c.oneRequest {
		s.oneRequest(n, c, ends)
		return nil
	}
	batch := 0
	if c.call.Verb == AddAll && s.batches < maxBatches {
		s.batches++
		batch = s.batches
	}
	for i := range c.call.Items {
		s.step(n, c, []int{i}, ends[i], batch)
	}
	return nil
}

// oneRequest makes one step of all items. The items of a write have the same
// state. A look-up may have answers for some of them only.
func (s *splitter) oneRequest(n int, c *called, ends []bloom.ItemState) {
	at := seq(len(c.call.Items))
	if c.call.Verb == ExistsAll {
		at = slices.DeleteFunc(at, func(i int) bool { return ends[i] != bloom.ItemDone })
		if len(at) == 0 {
			return
		}
		s.step(n, c, at, bloom.ItemDone, 0)
		return
	}
	s.step(n, c, at, ends[0], 0)
}

// consistent returns an error for a result that no state of the filter
// explains.
func consistent(c *called) error {
	r := c.result
	for i := range r.States {
		if c.oneRequest && c.call.Verb == AddAll && r.States[i] != r.States[0] {
			return fmt.Errorf("the items of one write have several states")
		}
	}
	unsure := r.End == Uncertain || slices.Contains(r.States, bloom.ItemUncertain)
	if unsure && r.Maybe == 0 {
		return fmt.Errorf("uncertain, although no attempt may have run before")
	}
	return nil
}

// stateOf returns the state of an item after a result, in the terms of a batch.
func stateOf(r Result, i int) bloom.ItemState {
	switch r.End {
	case Partly:
		return r.States[i]
	case Answered, Missing, Mismatch:
		return bloom.ItemDone
	case Uncertain:
		return bloom.ItemUncertain
	case Unknown:
		return bloom.ItemUnknown
	}
	return bloom.ItemNotDone
}

// step adds the steps of the items at the given indexes of one call.
func (s *splitter) step(n int, c *called, at []int, end bloom.ItemState, batch int) {
	r := c.result
	p := step{kind: s.kind, verb: c.call.Verb, batch: batch, birth: uint16(n*maxItems + 1)}
	for _, i := range at {
		p.birth = uint16(n*maxItems + i + 1)
		p.items = append(p.items, bitsOf(s.geo.Positions(nil, c.call.Items[i])))
	}
	strays := r.Maybe
	switch {
	case p.verb == Exists, p.verb == ExistsAll:
		strays = 0
		if end != bloom.ItemDone {
			return
		}
	case p.verb == Delete: // the client does not repeat one that may have run
		strays = 0
		if end == bloom.ItemUnknown {
			strays = 1
		}
	case end == bloom.ItemUnknown:
		// The last attempt may have had an answer that could not be read.
		strays = max(1, min(strays+1, r.Tried))
	case end == bloom.ItemNotDone:
		return // the error says that the step had no effect
	}
	if end == bloom.ItemDone || end == bloom.ItemUncertain {
		if p.end = endingOf(r, end); p.end == answered {
			p.yes = answersOf(r, at)
		}
	} else {
		p.end = open
	}
	if strays > 0 && p.end == answered && anySeen(p.yes) && n < 64 {
		p.call = 1 << n
	}
	if p.end != open && !(r.End == Mismatch && p.writes()) {
		s.add(n, p, c.from, c.to)
	}
	p.end, p.batch = open, 0
	for range s.strays(c, strays) {
		s.add(n, p, c.from, math.MaxInt64)
	}
}

func (s *splitter) add(n int, p step, from, to int64) {
	s.steps = append(s.steps, porcupine.Operation{ClientId: n, Input: &p, Call: from, Return: to})
}

// writes reports whether the step is a write that the library may refuse
// without a request, from what its handle remembers of the key.
func (p *step) writes() bool { return p.verb == Add || p.verb == AddAll || p.verb == Create }

func endingOf(r Result, end bloom.ItemState) ending {
	switch {
	case end == bloom.ItemUncertain:
		return uncertain
	case r.End == Missing:
		return missing
	case r.End == Mismatch:
		return mismatch
	}
	return answered
}

// answersOf returns the answers for some items. A call without items has one.
func answersOf(r Result, at []int) []bool {
	if len(at) == 0 {
		return r.Yes
	}
	yes := make([]bool, 0, len(at))
	for _, i := range at {
		yes = append(yes, r.Yes[i])
	}
	return yes
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}
