package proof

import (
	"errors"
	"slices"

	"github.com/upbloom/upbloom/bloom"
)

// A Mirror answers each item of a batch from its copy, or asks the server. The
// history does not say which.

// mirrorAll makes a step for each item that has an answer: one may be the copy's,
// and the other the server's.
func (s *splitter) mirrorAll(n int, c *called, ends []bloom.ItemState) {
	for i := range c.call.Items {
		if ends[i] == bloom.ItemDone && i < len(c.result.Yes) {
			s.fromMirror(n, c, i, c.result.Yes[i])
		}
	}
}

// fromMirror makes the step of an item that a Mirror found, or did not find.
func (s *splitter) fromMirror(n int, c *called, i int, found bool) {
	one := *c
	one.call = Call{Verb: MirrorExists, Items: c.call.Items[i : i+1]}
	one.result = Result{End: Answered, Yes: []bool{found}}
	s.oneStep(n, &one, []int{0}, bloom.ItemDone, 0)
}

// mirrorAddAll makes the steps of each item. One that was seen may be the copy's:
// then it was in the filter within MaxTrust, and was not sent.
func (s *splitter) mirrorAddAll(n int, c *called, ends []bloom.ItemState) {
	for i, item := range c.call.Items {
		one := *c
		one.call.Items = []string{item}
		if i < len(c.result.Yes) {
			one.result.Yes = c.result.Yes[i : i+1]
		}
		if ends[i] == bloom.ItemDone && c.result.End == Partly {
			one.result.End = Answered
		}
		seen := one.result.End == Answered && !one.result.Yes[0]
		switch {
		case !seen || !s.mayHaveCopy(c):
			s.oneStep(n, &one, []int{0}, ends[i], 0)
		default:
			s.fromMirror(n, c, i, true)
			if one.result.End = Unknown; c.result.Maybe > 0 {
				s.oneStep(n, &one, []int{0}, bloom.ItemUnknown, 0)
			}
		}
	}
}

// mayHaveCopy reports whether the Mirror of a call may know an item.
func (s *splitter) mayHaveCopy(c *called) bool {
	return slices.ContainsFunc(s.h.calls, func(o *called) bool {
		return o != c && o.session == c.session && o.from < c.to && o.call.mirrored() && o.call.Verb != Crowd
	})
}

// mirrored returns an error if a Mirror's batch is wrong about what was sent.
func (s *splitter) mirrored(c *called) error {
	r := c.result
	failed := slices.ContainsFunc(r.States, func(s bloom.ItemState) bool { return s != bloom.ItemDone })
	for i, state := range r.States {
		done, yes := state == bloom.ItemDone, i < len(r.Yes) && r.Yes[i]
		switch {
		case c.call.Verb == MirrorAddAll && failed && done && yes:
			return errors.New("the items that were sent have several states")
		case c.call.Verb != MirrorAll:
		case !done && state != bloom.ItemNotDone:
			return errors.New("a look-up has a state of a write")
		case !done && yes:
			return errors.New("an item without an answer was found")
		case done && !yes && s.of.MaxStale == 0:
			return errors.New("the server did not answer, and an item was not found")
		}
	}
	if c.call.Verb == MirrorAddAll && r.Tried == 0 && slices.Contains(r.Yes, true) {
		return errors.New("an item is new, and nothing was sent")
	}
	return nil
}

// sent reports whether the answers of a Mirror's Adds say that an item was sent.
func (c *called) sent(item string) bool {
	i := slices.Index(c.call.Items, item)
	return i >= 0 && c.result.Tried > 0 && (c.call.Verb != MirrorAddAll || c.result.Yes[i])
}
