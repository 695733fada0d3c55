package proof

import (
	"errors"
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
	split := splitter{rules: rules{of: &s.Plain, h: plain}, cells: ownCell, weigh: bits.count}
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

// The rules about the WarnFill of a Scalable. A look is a Stats, after a write
// whose handle adds no more layers. They need no order of the calls.

// fillLooks is how many looks there are while the last layer's capacity is
// added, by the documentation.
const fillLooks = 16

// limit is the number of layers up to which the handle of a call grows.
func (s *Scalables) limit(c *called) int {
	if c.call.Parts {
		return 1
	}
	return s.Layers
}

// chance is the chance of a look after so many new items, if there are so many
// layers.
func (s *Scalables) chance(newItems, layers int) float64 {
	return float64(newItems*fillLooks) / layerCapacity(layers-1)
}

// looked returns an error if a call did not look at the fill as documented.
func (s *Scalables) looked(h *History, c *called) error {
	r, w := c.result, c.result.Watched
	switch limit := s.limit(c); {
	case r.Alarm != "":
		return errors.New(r.Alarm)
	case w == nil:
		return nil
	case w.Stats == 0 && s.mustLook(h, c):
		return errors.New("no look at the fill, although its lot was drawn")
	case w.Stats == 0:
		return nil
	case w.Handle < 0:
		return errors.New("a handle without WarnFill looked at the fill")
	case !c.call.Verb.is(adds) || r.End != Answered && r.End != Partly:
		return errors.New("a look at the fill, and the call failed")
	case w.Stats > 1:
		return errors.New("more than one look after a call")
	case w.Lots == 0 || w.Lot >= s.chance(c.newAtMost(), max(limit, s.knows(h, c))):
		return errors.New("a look that its lot does not call for")
	case s.most(h, c) < limit:
		return errors.New("a look at a filter that can grow")
	case s.pauses(h, c, layerCapacity(limit-1), false):
		return errors.New("a look within the pause after a warning")
	case len(w.Warnings) > w.StatsSeen:
		return errors.New("more warnings than Stats")
	}
	return s.warned(h, c)
}

// warned returns an error if a call that looked at the fill did not warn as
// documented.
func (s *Scalables) warned(h *History, c *called) error {
	w := c.result.Watched
	filled := s.filled(h, c)
	for _, a := range w.Warnings {
		if a.Handle != w.Handle {
			return errors.New("a warning of another handle")
		}
		for i, bits := range a.Layers {
			if least := s.freeCells(i); filled[i] && !s.Plain.Lag && bits < least {
				return fmt.Errorf("a warning of %d bits in layer %d, which has %d", bits, i, least)
			}
			if most := s.cellsAtMost(h, c, i); bits > most {
				return fmt.Errorf("a warning of %d bits in layer %d, which has %d at most", bits, i, most)
			}
		}
	}
	if w.StatsSeen == 0 || len(w.Warnings) > 0 || w.Ended || s.Plain.Lag {
		return nil
	}
	items := 0.0
	for i := range filled {
		items += estimate(s.layer(i), s.freeCells(i))
	}
	// It must be 3% more, or four standard errors.
	if items > 1.1*layersCapacity(s.mayHave(h, c)) {
		return errors.New("a look at a filter over its capacity, and no warning")
	}
	return nil
}

// mustLook reports whether a call must have looked at the fill: it found new
// items in a filter that was as large as its handle makes it, no other call
// disturbed it, and its lot was drawn.
func (s *Scalables) mustLook(h *History, c *called) bool {
	r, w := c.result, c.result.Watched
	if w.Handle < 0 || r.End != Answered || w.Ended || w.New == 0 || !c.isAlone(h) || !h.stays(c.from, c.to) {
		return false
	}
	if limit := s.limit(c); limit > 1 && s.knows(h, c) < limit {
		return false
	}
	most := s.mayHave(h, c)
	return (w.Lots == 0 || w.Lot < s.chance(w.New, most)) && !s.pauses(h, c, layerCapacity(most-1), true)
}

// mayHave is how many layers the handle of a call may know of, or may still add.
func (s *Scalables) mayHave(h *History, c *called) int {
	return min(max(s.limit(c), s.most(h, c)), s.Layers)
}

// newAtMost is how many items were new to a call, at most.
func (c *called) newAtMost() int {
	if c.call.Verb.is(adds) && c.result.End == Partly {
		return len(c.call.Items) + c.call.More
	}
	return c.result.Watched.New
}

// isAlone reports whether no other call of the handle was under way.
func (c *called) isAlone(h *History) bool {
	return !slices.ContainsFunc(h.calls, func(o *called) bool {
		return o != c && o.sharesWatched(c) && o.from < c.to && c.from < o.to
	})
}

// sharesWatched reports whether two calls went through the same watched handle.
func (c *called) sharesWatched(o *called) bool {
	mine, other := c.result.Watched, o.result.Watched
	return mine != nil && other != nil && mine.Handle > 0 && mine.Handle == other.Handle
}

// pauses reports whether the handle of a call has not added so many new items
// since a warning. If surely is false, it may have added them.
func (s *Scalables) pauses(h *History, c *called, items float64, surely bool) bool {
	for _, o := range h.calls {
		if o == c || !o.sharesWatched(c) || len(o.result.Watched.Warnings) == 0 || o.to > c.from {
			continue
		}
		since := 0
		for _, a := range h.calls {
			switch {
			case a == o || !a.sharesWatched(c) || a.from > c.to:
			case surely && a.from > o.to:
				since += a.result.Watched.New
			case !surely && a.to > o.from:
				since += a.newAtMost()
			}
		}
		if float64(since) < items {
			return true
		}
	}
	return false
}

// stays reports whether no filter was removed in an interval.
func (h *History) stays(from, to int64) bool {
	return !slices.ContainsFunc(h.calls, func(o *called) bool {
		return o.mayRemove() && o.from < to && (o.to > from || o.mayBeLate())
	})
}

// knows returns how many layers the handle of a call certainly knew of, after
// its answer. An older answer may come to another call of the handle later.
func (s *Scalables) knows(h *History, c *called) (layers int) {
	if !c.isAlone(h) {
		return 0
	}
	for _, o := range h.calls {
		n, ok := o.layersSeen()
		old := o.call.Verb == Stats && s.Plain.Lag
		if ok && !old && o.call.Key == c.call.Key && o.to < c.from && h.stays(o.from, c.to) {
			layers = max(layers, n)
		}
	}
	return layers
}

// filled returns the layers that were certainly full during a call.
func (s *Scalables) filled(h *History, c *called) map[int]bool {
	layers := make(map[int]bool)
	for _, o := range h.calls {
		n, ok := o.layersSeen()
		if o.call.Verb == Fill && ok && o.call.Key == c.call.Key && o.to < c.from && h.stays(o.from, c.to) {
			layers[n-1] = true
		}
	}
	return layers
}

// freeCells is how many cells of layer i a Fill sets.
func (s *Scalables) freeCells(i int) (n int) {
	for _, run := range s.freeBytes(i) {
		n += 8 * int(run[1]-run[0])
	}
	return n
}

// cellsAtMost is how many cells of layer i were set before the end of a call, at
// most.
func (s *Scalables) cellsAtMost(h *History, c *called, i int) int {
	fills, items, others := 0, itemCount+len(lastItems), 0
	more := 0
	for _, o := range h.calls {
		switch {
		case o.from > c.to:
		case o.call.Verb == Fill && (o.result.End != Answered || o.result.Count == i+1):
			fills = s.freeCells(i)
		case o.call.Verb == Smudge && i == 0:
			others += s.Plain.other().Hashes
		default:
			more = max(more, o.call.More)
		}
	}
	return fills + others + (items+more)*s.layer(i).Hashes
}
