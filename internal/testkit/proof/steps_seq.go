package proof

import (
	"errors"

	"github.com/upbloom/upbloom/bloom"
)

// counted returns an error if the counts of an AddSeq contradict its end.
func (c *called) counted() error {
	r := c.result
	gone := r.End == Missing || r.End == Recreated
	switch {
	case r.Count > r.Done || r.Done > len(c.call.Items):
		return errors.New("more items are new than are in")
	case r.End == Answered && r.Done != len(c.call.Items):
		return errors.New("no error, and not all items are in")
	case gone && r.Done > 0:
		return errors.New("the filter went away, and the result is not zero")
	case gone && r.Safe && r.Tried > 1:
		return errors.New("safe to retry, although the filter was there in an earlier round")
	}
	return nil
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
	if r.End != Missing && r.End != Recreated { // else they are not in one filter
		batch = s.nextBatch()
	}
	round := 1 // the items of a request
	if !c.call.Parts {
		round = len(c.call.Items)
	}
	for i := range c.call.Items {
		end := bloom.ItemNotDone
		switch {
		case r.End == Missing && s.of.MustExist && r.Safe:
		case r.End == Missing, r.End == Recreated:
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
