package proof

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// A Scalable answers like a Filter whose items share no cells. The rules about
// its layers need no order.

// Steps makes the steps of all calls, and checks the rules about layers.
func (s *Scalables) Steps(h *History) ([]porcupine.Operation, error) {
	if err := s.checkLayers(h); err != nil {
		return nil, err
	}
	for n, c := range h.calls {
		if c.result.Alarm != "" {
			return nil, fmt.Errorf("call %d: %s", n, c.result.Alarm)
		}
	}
	// The model knows no layers.
	plain := &History{of: h.of, ticks: h.ticks}
	for _, c := range h.calls {
		one := *c
		switch c.call.Verb {
		case Fill, Layers:
			continue
		case Stats:
			one.result.Count = -1
		}
		plain.calls = append(plain.calls, &one)
		r := c.result
		if c.call.More > 0 && (c.call.Parts || c.call.More >= bigMore) {
			// A request of further items alone may have made the filter.
			made := *c
			made.call = Call{Verb: Create, Key: c.call.Key}
			made.result = Result{End: Unknown, Tried: r.Tried, Maybe: r.Tried}
			plain.calls = append(plain.calls, &made)
		}
	}
	split := splitter{rules: newRules(&s.Common, Staleness{}, plain), cells: ownCell, weigh: bits.count}
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
		case removed, c.call.Verb == Stats && s.Lag:
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
		fills := o.call.Verb == Fill && o.result.End != NotRun || o.call.More >= halfMore
		if o.from < c.to && fills {
			most++
		}
	}
	return most
}

// least returns the lowest number of layers a call may find in a filter that
// was never removed.
func (s *Scalables) least(h *History, c *called) (least int) {
	for _, o := range h.calls {
		if n, ok := o.layersSeen(); ok && o.to < c.from && !(o.call.Verb == Stats && s.Lag) {
			least = max(least, n)
		}
	}
	return least
}
