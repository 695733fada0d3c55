package proof

import (
	"errors"
	"fmt"
	"slices"
)

// An AddIn or ExistsIn is one call of several filters, or of one by several
// handles. The models know calls of one filter alone.

// filterOf returns the part of a Mixed and the key of a handle in Call.Into.
func filterOf(into int) (part, key int) {
	if into < intoStrict {
		return 0, into
	}
	return into / intoOther, 0
}

// apart returns the calls of one part of a Mixed. What a call of several filters
// did to one of them is an Add or an Exists. A window's commands may be sent again,
// in another order.
func (h *History) apart(part int, window bool) (*History, error) {
	own := &History{of: h.of, ticks: h.ticks, begin: h.begin}
	for n, c := range h.calls {
		if len(c.call.Into) == 0 && (c.call.Shard != part || c.call.Verb == FlushScripts) {
			continue
		}
		if len(c.call.Into) == 0 || c.call.Verb != AddIn && c.call.Verb != ExistsIn {
			one := *c
			one.call.Shard = 0
			own.calls = append(own.calls, &one)
			continue
		}
		if err := h.together(c, part, !window); err != nil {
			return nil, fmt.Errorf("call %d: %w", n, err)
		}
		for i, into := range c.call.Into {
			if of, key := filterOf(into); of == part {
				own.calls = append(own.calls, c.toOne(i, key, window))
			}
		}
	}
	return own, nil
}

// toOne returns what a call did to the filter at Into[i]. A window's item may
// have been sent before the call's last attempt.
func (c *called) toOne(i, key int, window bool) *called {
	one := *c
	one.spread, one.must = true, c.call.Into[i] == intoStrict
	one.call.Verb, one.call.Key, one.call.Parts = Add, key, window
	if c.call.Verb == ExistsIn {
		one.call.Verb = Exists
	}
	one.result = Result{End: Unknown}
	if i < len(c.result.Each) {
		one.result = c.result.Each[i]
	}
	r := &one.result
	r.Timed, r.NoTime, r.LostTime = c.result.Timed, c.result.NoTime, c.result.LostTime
	r.Sent, r.Tried, r.Maybe = c.result.Sent, c.result.Tried, c.result.Maybe
	r.Refused = c.result.Refused
	isKept := r.End == Mismatch && c.result.Safe   // other data, to which nobody may have written
	if r.Safe && !isKept && c.call.Verb == AddIn { // then no attempt changed this filter
		r.Tried, r.Maybe = 0, 0
	}
	return &one
}

// together returns an error for a call of several filters if nothing explains its
// answers together. ordered is true if the handles' commands run in their order:
// then of two handles of one filter, the second must not have added the item, and
// the first found it. Nothing but a removal explains that.
func (h *History) together(c *called, part int, ordered bool) error {
	if c.call.Verb != AddIn {
		return nil
	}
	changed := func(r Result) bool { return !r.Safe || r.Err == "" }
	if c.result.Safe && slices.ContainsFunc(c.result.Each, changed) {
		return errors.New("safe to retry, although a filter may have the item")
	}
	for j, later := range c.result.Each {
		for i, first := range c.result.Each[:j] {
			of, key := filterOf(c.call.Into[i])
			other, otherKey := filterOf(c.call.Into[j])
			if !ordered || of != part || of != other || key != otherKey || first.End != Answered || later.End != Answered ||
				first.Yes[0] || !later.Yes[0] {
				continue
			}
			if !slices.ContainsFunc(h.calls, func(o *called) bool { return o.mayRemove() && c.overlaps(o) }) {
				return errors.New("of two Adds to one filter the second ran first")
			}
		}
	}
	return nil
}
