package proof

import (
	"errors"
	"slices"
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
	wrote := c.call.Verb.is(adds) && (r.End == Answered || r.End == Partly)
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
	case c.call.Verb.is(adds) && w.Stats > w.Seen:
		return errors.New("asked for Stats without a look")
	case c.call.Verb.is(uploads) && w.Stats > 0 && !w.Over:
		return errors.New("asked for Stats after a Load that did not overfill the filter")
	case len(w.Warnings) > w.StatsSeen:
		return errors.New("more warnings than Stats")
	case w.Handle == 0 && c.first(calls) && w.Lots != c.answers():
		return errors.New("a write to several filters drew no lot for each")
	case w.Handle <= 0:
		return nil
	case warned && c.call.Verb.is(adds) && w.Looks > 0:
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
		if w == nil || o.from > c.to || !o.call.Verb.is(adds) || w.Handle != 0 && mine != 0 && w.Handle != mine {
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
