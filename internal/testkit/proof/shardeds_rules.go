package proof

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/upbloom/upbloom/bloom"
)

// Rules about all shards of a Sharded together. They need no order.

// checkTurned checks the calls of handles whose clients have another order.
// They find no shard, unless one of them made some.
func (s *Shardeds) checkTurned(h *History) error {
	for _, c := range h.calls {
		if !c.call.Turned || s.turnedMade(h, c) {
			continue
		}
		switch {
		case c.call.Verb == Create && c.result.End == Answered && s.isThere(h, c):
			return fmt.Errorf("the Create at %v, with the clients in another order, made a second filter", c.began)
		case c.call.Verb != Create && (c.result.End == Answered || c.result.End == Uncertain),
			slices.Contains(c.result.States, bloom.ItemDone):
			return fmt.Errorf("the call at %v has the clients in another order, and was answered", c.began)
		}
	}
	return nil
}

// turnedMade reports whether a Create with the clients in another order may have
// made shards before c ended.
func (s *Shardeds) turnedMade(h *History, c *called) bool {
	return slices.ContainsFunc(h.calls, func(o *called) bool {
		return o != c && o.call.Verb == Create && o.call.Turned && o.from < c.to && o.result.End != NotRun &&
			o.result.End != Missing
	})
}

// isThere reports whether a Create ended before c began, and nothing can have
// removed a shard until c ended.
func (s *Shardeds) isThere(h *History, c *called) bool {
	made := false
	for _, o := range h.calls {
		if o.mayRemove() && o.from < c.to {
			return false
		}
		made = made || o.call.Verb == Create && !o.call.Turned && o.result.End == Answered && o.to < c.from
	}
	return made
}

// isWhole reports whether a call found shard 0, and therefore all others: it is
// made last and deleted first. A Create may complete what a simultaneous Delete
// removes.
func (s *Shardeds) isWhole(h *History, c *called) bool {
	return c.result.End == Answered && !slices.ContainsFunc(h.calls, func(o *called) bool {
		return o.from < c.to && (o.call.Verb != Delete && o.upsets() || o.call.Verb == Create &&
			slices.ContainsFunc(h.calls, func(d *called) bool { return d.call.Verb == Delete && d.meets(o) }))
	})
}

// meets reports whether two calls may have taken effect at the same time.
func (c *called) meets(o *called) bool { return c.from < o.lastEffect() && o.from < c.lastEffect() }

// lastEffect returns the place after which no attempt of a call takes effect.
func (c *called) lastEffect() int64 {
	if c.result.End == Unknown || c.result.Maybe > 0 {
		return math.MaxInt64
	}
	return c.to
}

// mayFill reports whether a call may have set cells of a shard.
func (c *called) mayFill() bool {
	switch r := c.result; c.call.Verb {
	case Smudge:
		return true
	case Add, AddAll, Load, Merge, OtherAdd:
		return r.End == Answered || r.End == Uncertain || r.End == Unknown || r.Maybe > 0 ||
			slices.ContainsFunc(r.States, func(s bloom.ItemState) bool { return s != bloom.ItemNotDone })
	}
	return false
}

// upsets reports whether a call may have removed a shard, or replaced it by
// other data.
func (c *called) upsets() bool {
	return c.mayRemove() || c.call.Verb == Smudge || c.call.Verb == OtherCreate || c.call.Verb == OtherDelete
}

// checkCompleted checks that no Create takes an unfinished one for a loss of
// shards. Items are added only after a Create, which made all shards.
func (s *Shardeds) checkCompleted(h *History) error {
	for _, c := range h.calls {
		if c.call.Verb != Create || c.call.Turned || c.result.End != Missing {
			continue
		}
		allowed := slices.ContainsFunc(h.calls, func(o *called) bool {
			return o.from < c.to && (o.upsets() || o.mayFill() && !s.isThere(h, o))
		})
		if !allowed {
			return fmt.Errorf("the Create at %v says that shards were lost, and none can have been", c.began)
		}
	}
	return nil
}

// checkLost rejects a Create that makes a lost shard again while another holds
// items.
func (s *Shardeds) checkLost(h *History) error {
	shardOf := s.shardOf()
	for _, c := range h.calls {
		if c.call.Verb != Create || c.call.Turned || c.result.End != Answered {
			continue
		}
		for _, lost := range h.calls {
			gone := (lost.call.Verb == Clear || lost.call.Verb == Expire) && lost.result.End == Answered &&
				lost.result.Yes[0] && lost.to < c.from
			if gone && s.holdsItems(h, c, lost, shardOf) && !s.mayRemake(h, c, lost) {
				return fmt.Errorf("the Create at %v made shard %d anew, which was lost", c.began, lost.call.Shard)
			}
		}
	}
	return nil
}

// mayRemake reports whether a call other than c may have made the lost shard, or
// have removed the others.
func (s *Shardeds) mayRemake(h *History, c, lost *called) bool {
	return slices.ContainsFunc(h.calls, func(o *called) bool {
		if o == c || o.lastEffect() < lost.from || o.from > c.to {
			return false
		}
		switch o.call.Verb {
		case Create, Delete, OtherCreate, OtherDelete:
			return o.result.End != NotRun
		case Smudge, Overwrite:
			return o.call.Shard == lost.call.Shard
		}
		return false
	})
}

// holdsItems reports whether a shard other than the lost one certainly holds
// items while c runs.
func (s *Shardeds) holdsItems(h *History, c, lost *called, shardOf func(string) int) bool {
	for _, a := range h.calls {
		if a.to >= c.from || a.call.Turned || a.call.Verb != Add && a.call.Verb != AddAll {
			continue
		}
		for i, item := range a.call.Items {
			shard := shardOf(item)
			removed := slices.ContainsFunc(h.calls, func(o *called) bool {
				one := o.call.Verb == Clear || o.call.Verb == Expire || o.call.Verb == Overwrite
				return o.mayRemove() && (!one || o.call.Shard == shard) && o.to > a.from && o.from < c.to
			})
			if shard != lost.call.Shard && stateOf(a.result, i) == bloom.ItemDone && a.result.End != Missing &&
				a.result.End != Mismatch && !removed {
				return true
			}
		}
	}
	return false
}

// oneMoment is far more than simultaneous Creates take, and less than most
// rests.
const oneMoment = 15 * time.Second

// checkTTL rejects a shard that outlives the TTL. If none was removed, all must
// expire at the same moment.
func (s *Shardeds) checkTTL(h *History) error {
	var least, most time.Duration
	for _, c := range h.calls {
		left := time.Duration(c.result.Count) * time.Millisecond
		if c.call.Verb != HasTTL || c.result.End != Answered || left <= 0 {
			continue
		}
		if left > s.Plain.TTL+time.Second {
			return fmt.Errorf("shard %d expires in %v", c.call.Shard, left)
		}
		if most = max(most, left); least == 0 || left < least {
			least = left
		}
	}
	if most-least > oneMoment && !slices.ContainsFunc(h.calls, (*called).upsets) {
		return fmt.Errorf("the shards expire in %v to %v", least, most)
	}
	return nil
}

// checkCreated checks that exactly one Create of a filter reported to have made
// it.
func (s *Shardeds) checkCreated(h *History) error {
	var made *called
	answered, doubtful := false, false
	if slices.ContainsFunc(h.calls, (*called).upsets) {
		return nil
	}
	for _, c := range h.calls {
		switch {
		case c.call.Verb != Create || c.call.Turned:
			continue
		case c.result.End != Answered:
			doubtful = true
			continue
		}
		answered = true
		if !c.result.Yes[0] {
			continue
		}
		if made != nil {
			return fmt.Errorf("the Creates at %v and %v both made the filter", made.began, c.began)
		}
		made = c
	}
	if answered && made == nil && !doubtful {
		return errors.New("there is a filter, and no Create made it")
	}
	return nil
}
