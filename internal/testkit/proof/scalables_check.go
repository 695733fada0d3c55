package proof

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// A Scalable answers like a Filter whose items share no cells. The rules about
// its layers need no order.

// Initial is the state of two empty keys.
func (s *Scalables) Initial() any { return s.Plain.Initial() }

// Hash is that of the plain model.
func (s *Scalables) Hash(state any) uint64 { return s.Plain.Hash(state) }

// Describe returns nothing.
func (s *Scalables) Describe(string) string { return "" }

// Steps makes the steps of all calls, and checks the rules about layers.
func (s *Scalables) Steps(h *History) ([]porcupine.Operation, error) {
	if err := s.checkLayers(h); err != nil {
		return nil, err
	}
	for n, c := range h.calls {
		if err := s.looked(h, c); err != nil {
			return nil, fmt.Errorf("call %d: %w", n, err)
		}
		if c.result.Safe && c.result.LostScripts > 0 {
			return nil, fmt.Errorf("call %d: safe to retry, although a script may have added a layer", n)
		}
	}
	// The model knows no layers.
	plain := &History{of: h.of, ticks: h.ticks}
	for _, c := range h.calls {
		one := *c
		one.result.Watched = nil
		switch c.call.Verb {
		case Fill, Layers:
			continue
		case HasTTL: // it gets one with the next write
			if c.session != atLast && c.result.End == Answered && !c.result.Yes[0] {
				continue
			}
		case Stats:
			one.result.Count = -1
		}
		plain.calls = append(plain.calls, &one)
		if r := c.result; c.call.Verb == AddAll && r.Scripts > 1 {
			// Any but the first may have made the filter, without items.
			made := *c
			made.call = Call{Verb: Create, Key: c.call.Key}
			made.result = Result{End: Unknown, Tried: r.Scripts - 1, Maybe: r.Scripts - 1}
			plain.calls = append(plain.calls, &made)
		}
	}
	split := splitter{of: &s.Plain, h: plain, cells: ownCell, weigh: bits.count}
	return split.split()
}

// layersSeen returns the number of layers a call found.
func (c *called) layersSeen() (n int, ok bool) {
	switch c.call.Verb {
	case Stats:
		return c.result.Count, c.result.End == Answered
	case Fill, Layers:
		return c.result.Count, c.result.End == Answered && c.result.Yes[0]
	}
	return 0, false
}

// checkLayers returns an error if the filter has too few layers, or too many.
func (s *Scalables) checkLayers(h *History) error {
	for _, c := range h.calls {
		seen, ok := c.layersSeen()
		if !ok {
			continue
		}
		removed := s.Second || slices.ContainsFunc(h.calls, func(o *called) bool {
			return o.from < c.to && o.mayRemove()
		})
		most := s.most(h, c)
		if c.call.Verb == Fill && most > 1 {
			most-- // it fills the layer it found
		}
		switch {
		case seen < 1 || seen > s.Layers:
			return fmt.Errorf("%d layers, and there may be 1 to %d", seen, s.Layers)
		case seen > most:
			return fmt.Errorf("%d layers, and only %d were filled", seen, most-1)
		case removed, c.call.Verb == Stats && s.Plain.Lag:
			continue // it may have been made again, or a region may not know
		}
		if least := s.least(h, c); seen < least {
			return fmt.Errorf("%d layers at %v, and there were or must be %d", seen, c.began, least)
		}
	}
	return nil
}

// most returns the highest number of layers a filter may have when a call ends.
func (s *Scalables) most(h *History, c *called) int {
	most := 1
	for _, o := range h.calls {
		fills := o.call.Verb == Fill && o.result.End != NotRun || o.call.More >= bigMore || s.halvesMeet(h, o)
		if o.from < c.to && fills {
			most++
		}
	}
	return most
}

// halvesMeet reports whether a call adds halfMore items, and as many were added
// before: by another call, or by itself before a late script looked for room. An
// opened handle does not know the capacity. It may then add a layer.
func (s *Scalables) halvesMeet(h *History, c *called) bool {
	before := func(v Verb, more int) bool {
		return slices.ContainsFunc(h.calls, func(o *called) bool {
			return o != c && o.call.Verb == v && o.call.More >= more && o.from < c.to && o.result.End != NotRun
		})
	}
	return c.call.More == halfMore && before(Open, 0) && (before(AddAll, halfMore) || c.result.Scripts > 1)
}

// least returns the lowest number of layers a call may find in a filter that
// was never removed.
func (s *Scalables) least(h *History, c *called) (least int) {
	for _, o := range h.calls {
		if o.to >= c.from {
			continue
		}
		if n, ok := o.layersSeen(); ok {
			least = max(least, n)
		}
		if o.result.End != Answered {
			continue
		}
		switch {
		case o.call.More == bigMore:
			least = max(least, 2)
		case o.call.More == manyMore: // many for a handle that knows of one layer
			least = max(least, min(s.filledBefore(h, o), 1, s.Layers-1)+1)
		case o.call.Verb == Add && o.session == atLast && o.result.Yes[0] && !o.call.Parts:
			least = max(least, min(s.filledBefore(h, o)+1, s.Layers))
		}
	}
	return least
}

// filledBefore returns the number of the last layer filled before a call began.
func (s *Scalables) filledBefore(h *History, c *called) (n int) {
	for _, o := range h.calls {
		if o.call.Verb == Fill && o.to < c.from && o.result.End == Answered && o.result.Yes[0] {
			n = max(n, o.result.Count)
		}
	}
	return n
}
