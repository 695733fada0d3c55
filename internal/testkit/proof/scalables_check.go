package proof

import (
	"errors"
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
		if err := s.looked(h, c); err != nil {
			return nil, fmt.Errorf("call %d: %w", n, err)
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
		case Stats:
			one.result.Count = -1
		}
		plain.calls = append(plain.calls, &one)
		if r := c.result; c.call.More > 0 && (c.call.Parts || c.call.More >= bigMore) {
			// A request of further items alone may have made the filter.
			made := *c
			made.call = Call{Verb: Create, Key: c.call.Key}
			made.result = Result{End: Unknown, Tried: r.Tried, Maybe: r.Tried}
			plain.calls = append(plain.calls, &made)
		}
	}
	split := splitter{rules: rules{of: s.plain(), h: plain}, cells: ownCell, weigh: bits.count}
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

// The rules about the WarnFill of a Scalable. A look is a Stats, after a write
// that took a layer over its capacity, to which no layer could be added. They
// need no order of the calls.

// looked returns an error if a call did not look at the fill as documented.
func (s *Scalables) looked(h *History, c *called) error {
	r, w := c.result, c.result.Watched
	switch limit := s.limit(c.call.Parts); {
	case r.Alarm != "":
		return errors.New(r.Alarm)
	case w == nil:
		return nil
	case w.Stats == 0 && s.mustLook(h, c):
		return errors.New("no look at the fill, although the last layer was full")
	case w.Stats == 0:
		return nil
	case w.Handle < 0:
		return errors.New("a handle without WarnFill looked at the fill")
	case !c.call.Verb.is(adds) || r.End != Answered && r.End != Partly:
		return errors.New("a look at the fill, and the call failed")
	case w.Stats > 1:
		return errors.New("more than one look after a call")
	case c.newAtMost() == 0:
		return errors.New("a look at the fill, and no item was new")
	case s.most(h, c) < limit:
		return errors.New("a look at a filter that can grow")
	case s.pauses(h, c):
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
			if least := s.freeCells(i); filled[i] && !s.Lag && bits < least {
				return fmt.Errorf("a warning of %d bits in layer %d, which has %d", bits, i, least)
			}
			if most := s.cellsAtMost(h, c, i); bits > most {
				return fmt.Errorf("a warning of %d bits in layer %d, which has %d at most", bits, i, most)
			}
		}
	}
	if w.StatsSeen == 0 || len(w.Warnings) > 0 || w.Ended || s.Lag {
		return nil
	}
	// It must be 3% more, or four standard errors.
	if i := s.Layers - 1; filled[i] && estimate(s.layer(i), s.freeCells(i)) > 1.1*layerCapacity(i) {
		return errors.New("a look at a filter over its capacity, and no warning")
	}
	return nil
}

// mustLook reports whether a call must have looked at the fill: after a Fill of
// the last layer it was the first to add an item.
func (s *Scalables) mustLook(h *History, c *called) bool {
	r, w := c.result, c.result.Watched
	if w.Handle < 0 || r.End != Answered || w.Ended || w.New == 0 {
		return false
	}
	filled := int64(-1)
	for _, o := range h.calls {
		if o.call.Verb == Fill && o.result.Over && o.result.Count == s.Layers && o.call.Key == c.call.Key && o.to < c.from {
			filled = max(filled, o.from)
		}
	}
	if filled < 0 || !h.stays(filled, c.to) {
		return false
	}
	return !slices.ContainsFunc(h.calls, func(o *called) bool {
		adds := o.call.Verb.is(adds) && o.from < c.to && (o.to > filled || o.mayBeLate())
		return o != c && (adds || o.sharesWatched(c) && len(o.result.Watched.Warnings) > 0)
	})
}

// newAtMost is how many items were new to a call, at most.
func (c *called) newAtMost() int {
	if c.call.Verb.is(adds) && c.result.End == Partly {
		return len(c.call.Items) + c.call.More
	}
	return c.result.Watched.New
}

// sharesWatched reports whether two calls went through the same watched handle.
func (c *called) sharesWatched(o *called) bool {
	mine, other := c.result.Watched, o.result.Watched
	return mine != nil && other != nil && mine.Handle > 0 && mine.Handle == other.Handle
}

// pauses reports whether the last layer has not taken as many items as it is for
// since the handle of a call warned.
func (s *Scalables) pauses(h *History, c *called) bool {
	for _, o := range h.calls {
		if o == c || !o.sharesWatched(c) || len(o.result.Watched.Warnings) == 0 || o.to > c.from || !h.stays(o.from, c.to) {
			continue
		}
		since := 0
		for _, a := range h.calls {
			if a.call.Verb.is(adds) && a.from < c.to && (a.to > o.from || a.mayBeLate()) {
				since += len(a.call.Items) + a.call.More
			}
		}
		if float64(since) < layerCapacity(0) {
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

// filled returns the layers that were certainly full during a call.
func (s *Scalables) filled(h *History, c *called) map[int]bool {
	layers := make(map[int]bool)
	for _, o := range h.calls {
		n, ok := o.layersSeen()
		if o.call.Verb == Fill && ok && o.result.Over && o.call.Key == c.call.Key && o.to < c.from && h.stays(o.from, c.to) {
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
			others += smudgeConfig.Hashes
		default:
			more += o.call.More
		}
	}
	return fills + others + (items+more)*s.layer(i).Hashes
}
