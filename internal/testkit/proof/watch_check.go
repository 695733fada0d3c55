package proof

import (
	"errors"
	"math"
	"slices"

	"github.com/upbloom/upbloom/bloom"
)

// The rules about WarnFill that need no order of the calls. A look comes only
// after a write that was answered, and by its lot or after many new items. One
// that fails changes nothing. After a warning there is none. They hold for a
// Filter and a Window.

// newForLook is how many new items a handle judges by their bits at least.
const newForLook = 8

// looked returns an error if a call did not look at the fill as documented. If
// panes is true, an item that was seen may be new to the pane that takes it.
func looked(calls []*called, c *called, panes bool) error {
	r, w := c.result, c.result.Watched
	if r.Alarm != "" {
		return errors.New(r.Alarm)
	}
	if w == nil {
		return nil
	}
	most := w.Low
	if newItems(calls, c, panes) >= newForLook {
		most += max(1, len(c.call.Into))
	}
	wrote := c.call.adds() && (r.End == Answered || r.End == Early || r.End == Partly)
	warned, alone := c.others(calls)
	switch {
	case w.Handle < 0 && (w.Over || w.Lots+w.Looks+w.Stats > 0):
		return errors.New("a handle without WarnFill looked at the fill")
	case w.Looks > most:
		return errors.New("more looks than its lots and its answers call for")
	case w.Handle > 0 && max(w.Looks, w.Stats, w.Lots) > 1:
		return errors.New("more than one look after a call")
	case w.Looks > 0 && !wrote:
		return errors.New("a look at the fill, and the call failed")
	case c.call.adds() && w.Stats > w.Seen:
		return errors.New("asked for Stats without a look")
	case c.call.uploads() && w.Stats > 0 && !w.Over:
		return errors.New("asked for Stats after a Load that did not overfill the filter")
	case len(w.Warnings) > w.StatsSeen:
		return errors.New("more warnings than Stats")
	case w.Handle == 0 && c.first(calls) && w.Lots != c.answers():
		return errors.New("a write to several filters drew no lot for each")
	case w.Handle <= 0:
		return nil
	case warned && c.call.adds() && w.Looks > 0:
		return errors.New("a look at the fill within the pause after a warning")
	case !alone || w.Ended:
		return nil
	case wrote && r.End == Answered && r.Tried > 0 && w.Lots == 0:
		return errors.New("a write drew no lot")
	case w.Low > 0 && w.Looks == 0:
		return errors.New("no look at the fill, although its lot was drawn")
	case w.Over && w.Stats == 0:
		return errors.New("no Stats after a Load that overfilled the filter")
	}
	return nil
}

// others reports whether an earlier call through the same handle ended with a
// warning, and whether no other call has disturbed the looks of c: none was
// under way, and none has brought a warning.
func (c *called) others(calls []*called) (warned, alone bool) {
	alone = true
	for _, o := range calls {
		w := o.result.Watched
		if o == c || w == nil || o.from > c.to {
			continue
		}
		if slices.ContainsFunc(w.Warnings, func(a Warning) bool { return a.Handle == c.result.Watched.Handle }) {
			warned, alone = warned || o.to < c.from, false
		}
		if w.Handle == 0 || w.Handle == c.result.Watched.Handle {
			alone = alone && o.to < c.from
		}
	}
	return warned, alone
}

// first reports whether the session of c had neither a warning nor an opened
// handle before its end.
func (c *called) first(calls []*called) bool {
	return !slices.ContainsFunc(calls, func(o *called) bool {
		w := o.result.Watched
		return o.session == c.session && o.from < c.to && (o.call.Verb == Open || w != nil && len(w.Warnings) > 0)
	})
}

// answers is how many of the answers of an AddIn hold.
func (c *called) answers() (n int) {
	for _, end := range c.result.Ends {
		if end == Answered {
			n++
		}
	}
	return n
}

// newItems is how many items were new to the handle of a call, or may have been,
// until its end. If it has several handles, all count.
func newItems(calls []*called, c *called, panes bool) (n int) {
	for _, o := range calls {
		w, mine := o.result.Watched, c.result.Watched.Handle
		if w == nil || o.from > c.to || !o.call.adds() || w.Handle != 0 && mine != 0 && w.Handle != mine {
			continue
		}
		for _, isNew := range o.result.Yes {
			if isNew || panes {
				n++
			}
		}
	}
	return n
}

// Steps of the model: a warning, a look that brought none, and one that went on
// to Stats.
const (
	warned  Verb = "warned"
	quiet   Verb = "quiet"
	tooMany Verb = "too many"
)

// watched adds the steps of a call's looks.
func (s *splitter) watched(n int, c *called) {
	w := c.result.Watched
	if w == nil {
		return
	}
	from := c.from
	if s.of.Lag { // the nearest region counts
		from = 0
	}
	p := step{of: s.of, geo: &s.geo, part: s.part, weigh: s.weigh, end: answered}
	for _, a := range w.Warnings {
		p.verb, p.key, p.count = warned, a.Key, a.SetBits
		s.add(n, p, from, c.to)
	}
	if w.Stats > 0 && w.Handle > 0 {
		p.verb, p.key = tooMany, c.call.Key
		s.add(n, p, from, c.to)
	}
	_, alone := c.others(s.h.calls) // else another call may have warned instead
	looked := w.Seen > 0 && alone || w.StatsSeen > 0
	if looked && len(w.Warnings) == 0 && w.Stats == w.StatsSeen && w.Handle > 0 && !w.Ended {
		p.verb, p.key = quiet, c.call.Key
		s.add(n, p, from, c.to)
	}
}

// watch is such a step. A warning is about the filter's cells at one moment.
// Without one, there was a moment at which they were not too many. A look does
// not know whose cells it counts.
func (p *step) watch(s *slot) bool {
	switch p.verb {
	case quiet:
		return s.holds != filter || !tooFull(*p.geo, p.weigh(s.bits))
	case tooMany:
		return s.holds > filter || s.holds == filter && tooFull(*p.geo, p.weigh(s.bits))
	}
	return s.holds == filter && p.weigh(s.bits) == p.count && tooFull(*p.geo, p.count)
}

// tooFull reports whether a watched filter with so many set bits is over its
// Capacity, by the documentation of the estimate (Swamidass and Baldi).
func tooFull(g bloom.Geometry, setBits int) bool {
	m, k := float64(g.Bits), float64(g.Hashes)
	return -m/k*math.Log1p(-float64(setBits)/m) >= watchMost+0.5
}
