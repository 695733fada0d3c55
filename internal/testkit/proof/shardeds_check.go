package proof

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// Each shard of a Sharded has its own keys. The model of a Filter checks the
// history of each. Rules that need no order check what a Create or a Delete
// says of all shards.

// Describe returns the shard of an item.
func (s *Shardeds) Describe(item string) string {
	return fmt.Sprint("is in shard ", s.shardOf()(item))
}

// shardOf returns the function from an item to its shard.
func (s *Shardeds) shardOf() func(item string) int {
	c, err := upstash.New("http://127.0.0.1:1", "no-token")
	if err != nil {
		panic(err) // a loopback address is allowed
	}
	f, err := bloom.NewSharded([]*upstash.Client{c}, "key", s.config(plain))
	if err != nil {
		panic(err) // the sizes are constants
	}
	return f.ShardOf
}

// Steps makes the steps of all calls on each shard.
func (s *Shardeds) Steps(h *History) ([]porcupine.Operation, error) {
	if err := s.checkTurned(h); err != nil {
		return nil, err
	}
	for _, check := range []func(*History) error{s.checkCreated, s.checkLost, s.checkCompleted, s.checkAnew} {
		if err := check(h); err != nil {
			return nil, err
		}
	}
	shardOf := s.shardOf()
	var steps []porcupine.Operation
	for shard := range s.Shards {
		own := &History{of: h.of, ticks: h.ticks}
		for _, c := range h.calls {
			if one := s.onShard(h, c, shard, shardOf); one != nil {
				own.calls = append(own.calls, one)
			}
		}
		split := splitter{rules: newRules(&s.Common, Staleness{}, own), cells: ownCell, weigh: s.weigh, part: shard}
		more, err := split.split()
		if err != nil {
			return nil, fmt.Errorf("shard %d: %w", shard, err)
		}
		steps = append(steps, more...)
	}
	return steps, nil
}

// onShard returns what a call was for one shard, or nil if it was nothing.
func (s *Shardeds) onShard(h *History, c *called, shard int, shardOf func(string) int) *called {
	one := *c
	r := &one.result
	named := slices.Contains(r.Shards, shard)
	switch v := c.call.Verb; v {
	case Clear, Overwrite, Smudge, Keep, Revert:
		if c.call.Shard != shard {
			return nil
		}
		return &one
	case ClearParts:
		return nil
	case OtherAdd, OtherExists:
		return s.onOther(&one, shard)
	case Open: // reads shard 0; those of another Config have one too
		switch {
		case c.call.Turned, shard != 0 && r.End != Answered:
			return nil
		case shard == 0:
		case s.isWhole(h, c) && !s.Others:
			r.Yes = []bool{true}
		default:
			r.Yes = nil // this shard has another handle, and nothing is known of it
		}
		return &one
	}
	if c.call.Turned {
		return nil
	}
	switch v := c.call.Verb; v {
	case Add, Exists, AddAll, ExistsAll:
		return one.only(shard, shardOf)
	case Load, Merge:
		return one.load(shard, shardOf, named)
	case Stats:
		r.Count = -1
		if r.End == Answered && !s.smudged(h, c, shard) {
			r.Count = r.Counts[shard]
		}
	}
	switch { // of a call about all shards
	case r.End == Answered && (c.call.Verb != Delete && c.call.Verb != OtherDelete || r.Yes[0]):
		r.Yes = nil // for this shard alone it is unknown
	case r.End == Answered, r.End == NotRun, r.End == Unknown, named:
	case c.call.Verb == Create && r.End == Missing:
		r.End = NotRun // it looked at the shard, and did nothing
	case c.call.Verb == Stats, c.call.Verb == Cardinality, r.End == Missing:
		return nil // nothing is known of the others, and nothing was done
	default:
		r.End = Unknown
	}
	return &one
}

// only returns the part of a call about the items of one shard.
func (c *called) only(shard int, shardOf func(string) int) *called {
	r := &c.result
	all, yes, states := c.call.Items, r.Yes, r.States
	c.call.Items, r.Yes, r.States = nil, nil, nil
	for i, item := range all {
		if shardOf(item) != shard {
			c.spread = true
			continue
		}
		c.call.Items = append(c.call.Items, item)
		if i < len(yes) {
			r.Yes = append(r.Yes, yes[i])
		}
		if i < len(states) {
			r.States = append(r.States, states[i])
		}
	}
	if len(c.call.Items) == 0 {
		return nil
	}
	return c
}

// load returns what a Load was for one shard.
func (c *called) load(shard int, shardOf func(string) int, named bool) *called {
	r, before := &c.result, len(c.call.Items)
	if c.call.Verb == Merge && shardOf(c.call.Items[0]) != shard {
		return nil
	}
	one := c.only(shard, shardOf)
	switch {
	case one == nil && r.End == Answered, one == nil && named && r.End == Missing:
		c.call.Verb, r.Yes, r.Count, r.Safe = Stats, nil, -1, true // the shard was only read
		return c
	case one == nil:
		return nil
	case len(one.call.Items) < before && c.call.Verb == Load:
		r.Count = -1 // the sum says nothing of one shard
	}
	r.Yes = []bool{false}
	if !named && r.End != Answered && r.End != NotRun && (r.End != Uncertain || len(one.call.Items) < before) {
		r.End = Unknown
	}
	return one
}

// weigh returns the number of cells of a shard that some items own together.
func (s *Shardeds) weigh(of bits) int {
	g := s.geometry()
	cells := make(map[uint64]bool)
	for n := range itemCount {
		if of.has(ownCell(Add, itemName(n))) {
			for _, p := range g.Positions(nil, itemName(n)) {
				cells[p] = true
			}
		}
	}
	return len(cells)
}

// onOther returns what a call of a Config with one shard more was for one shard.
func (s *Shardeds) onOther(c *called, shard int) *called {
	more := Shardeds{Common: s.Common, Shards: s.Shards + 1, Spread: s.Spread}
	return c.only(shard, more.shardOf())
}

// smudged reports whether another program may have set cells of a shard before a
// call ended.
func (s *Shardeds) smudged(h *History, c *called, shard int) bool {
	return slices.ContainsFunc(h.calls, func(o *called) bool {
		return o.call.Verb == Smudge && o.call.Shard == shard && o.from < c.to
	})
}

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
	r := c.result
	switch c.call.Verb {
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

// checkAnew checks that no item counts as in if its batch says that a shard was
// made anew: the others were, too. The cause of a context may say so as well.
func (s *Shardeds) checkAnew(h *History) error {
	for _, c := range h.calls {
		if errors.Is(c.call.cause(), bloom.ErrRecreated) {
			continue
		}
		if c.call.Verb == AddAll && c.result.ErrAnew && slices.ContainsFunc(c.result.States, func(state bloom.ItemState) bool {
			return state == bloom.ItemDone || state == bloom.ItemUncertain
		}) {
			return fmt.Errorf("the AddAll at %v met a shard made anew, and says that items are in", c.began)
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
		case Smudge, Overwrite, Revert:
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
				one := o.call.Verb == Clear || o.call.Verb == Expire || o.call.Verb == Overwrite || o.call.Verb == Revert
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
