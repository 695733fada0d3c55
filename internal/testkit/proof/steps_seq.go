package proof

import (
	"errors"

	"github.com/upbloom/upbloom/bloom"
)

// counted returns an error if the counts of an AddSeq contradict its end.
func (c *called) counted() error {
	r := c.result
	gone := c.lostFilter()
	switch {
	case r.Count+r.Unsure > r.Done+len(r.States) || r.Unsure > r.Done || r.Done > len(c.call.Items):
		return errors.New("more items are new than are in")
	case (r.End == Answered || r.In) && r.Done != len(c.call.Items):
		return errors.New("all items are in, by the error, and are not")
	case r.End == Answered && r.Unsure > 0:
		return errors.New("items may have been new, and there is no error")
	case r.Unsure > r.Maybe*c.request():
		return errors.New("more items are uncertain than those of lost requests")
	case r.End == Uncertain && (!r.In || r.Unsure == 0):
		return errors.New("uncertain, and not all items are in, or all answers are certain")
	case gone && r.In:
		return errors.New("the filter went away with the items that are in")
	case gone && r.Done > 0:
		return errors.New("the filter went away, and the result is not zero")
	case r.Safe && r.Done > 0, gone && r.Safe && r.Tried > 1:
		return errors.New("safe to retry, although an earlier round has added items")
	}
	return nil
}

// lostFilter reports whether an AddSeq found that the filter went away. If it
// met other data in its first round, its items have states.
func (c *called) lostFilter() bool {
	r := c.result
	return r.End == Missing || r.End == Recreated || r.End == Mismatch && r.Tried > 0
}

// request returns how many items of an AddSeq a request carries.
func (c *called) request() int {
	if c.call.Parts {
		return 1
	}
	return len(c.call.Items)
}

// addSeq makes the steps of an AddSeq: one if it made one request, and else one
// for each item. Only the number of new items is known, of all of them together.
func (s *splitter) addSeq(n int, c *called) {
	r := c.result
	if r.End == Answered && !c.call.Parts {
		s.oneStep(n, c, seq(len(c.call.Items)), bloom.ItemDone, 0)
		return
	}
	batch := 0
	if !c.lostFilter() { // else they are not in one filter
		batch = s.nextBatch()
	}
	round := max(c.request(), len(r.States))
	for i := range c.call.Items {
		end := bloom.ItemNotDone
		switch {
		case r.End == Missing && s.of.MustExist && r.Safe:
		case c.lostFilter():
			end = bloom.ItemUnknown
		case i < r.Done:
			end = bloom.ItemDone
		case i >= r.Done+round:
		case r.End == Partly:
			end = r.States[i-r.Done]
		case r.End == Unknown:
			end = bloom.ItemUnknown
		}
		one := *c
		if one.result.Count = -1; end == bloom.ItemDone {
			one.result.End = Answered
		}
		s.oneStep(n, &one, []int{i}, end, batch)
	}
}
