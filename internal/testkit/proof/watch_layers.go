package proof

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/upbloom/upbloom/bloom"
)

// The rules about the WarnFill of a Scalable. A look is a Stats, after a write
// whose handle adds no more layers. They need no order of the calls.

// fillLooks is how many looks there are while the last layer's capacity is
// added, by the documentation.
const fillLooks = 16

// handle makes a handle for the key that adds no layer beyond limit. It is
// watched if the history has watched handles.
func (s *scalableSession) handle(key int, cfg bloom.ScalableConfig, limit int) (*bloom.Scalable, error) {
	if s.watch == nil {
		return bloom.NewScalable(s.client, s.keys[key], cfg)
	}
	number, warn := s.watch.handle(key)
	cfg.WarnFill = func(st bloom.ScalableStats) {
		layers, items := []int{}, 0.0
		for i, l := range st.Layers {
			layers = append(layers, int(l.SetBits))
			items += estimate(s.of.layer(i), int(l.SetBits))
		}
		wrong := ""
		capacity := layersCapacity(max(len(layers), limit))
		if len(layers) < limit || items < capacity || st.MaxLayers != limit ||
			st.Capacity != uint64(capacity) || st.Geometry != s.of.layer(0) {
			wrong = fmt.Sprintf("a WarnFill of a handle for %d layers, with %v", limit, st)
		}
		warn(Warning{SetBits: int(st.SetBits), Layers: layers}, wrong)
	}
	f, err := bloom.NewScalable(s.client, s.keys[key], cfg)
	s.watched[f] = number
	return f, err
}

// watchedBy returns the number of the handle of a call, or -1 if the handle has
// no WarnFill.
func (s *scalableSession) watchedBy(c Call) int {
	f := s.whole[c.Key].Load()
	if c.Parts {
		f = s.parts[c.Key].Load()
	}
	if number := s.watched[f]; number > 0 {
		return number
	}
	return -1
}

// layerCapacity is how many items layer i is for, by the documentation.
func layerCapacity(i int) float64 { return float64(int(layerItems) << (2 * i)) }

// layersCapacity is how many items so many layers are for.
func layersCapacity(layers int) (items float64) {
	for i := range layers {
		items += layerCapacity(i)
	}
	return items
}

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
	case !c.call.adds() || r.End != Answered && r.End != Partly:
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
	if c.call.adds() && c.result.End == Partly {
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

// estimate is how many items a filter with so many set bits has (Swamidass and
// Baldi).
func estimate(g bloom.Geometry, setBits int) float64 {
	m, k := float64(g.Bits), float64(g.Hashes)
	return -m / k * math.Log1p(-float64(setBits)/m)
}
