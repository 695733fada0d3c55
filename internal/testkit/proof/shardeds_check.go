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
	k := shardedCheck{s, h, s.shardOf()}
	if err := k.created(); err != nil {
		return nil, err
	}
	for n, c := range h.calls {
		if err := judge(shardedCall{&k, c}, shardedRules); err != nil {
			return nil, fmt.Errorf("call %d: %w", n, err)
		}
	}
	var steps []porcupine.Operation
	for shard := range s.Shards {
		own := &History{of: h.of, ticks: h.ticks}
		for _, c := range h.calls {
			if one := k.onShard(c, shard); one != nil {
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
func (k *shardedCheck) onShard(c *called, shard int) *called {
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
		more := Shardeds{Common: k.Common, Shards: k.Shards + 1, Spread: k.Spread}
		return one.only(shard, more.shardOf())
	case Open: // reads shard 0; those of another Config have one too
		switch {
		case c.call.Turned, shard != 0 && r.End != Answered:
			return nil
		case shard == 0:
		case k.isWhole(c) && !k.Others:
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
		return one.only(shard, k.shardOf)
	case Load, Merge:
		return one.load(shard, k.shardOf, named)
	case Stats:
		r.Count = -1
		if r.End == Answered && !k.smudged(c, shard) {
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

// smudged reports whether another program may have set cells of a shard before a
// call ended.
func (k *shardedCheck) smudged(c *called, shard int) bool {
	return k.hasCall(func(o *called) bool { return o.call.Verb == Smudge && o.call.Shard == shard && o.from < c.to })
}

// A shardedCheck is what the rules about all shards of a Sharded together know.
type shardedCheck struct {
	*Shardeds
	h       *History
	shardOf func(item string) int
}

type shardedCall struct {
	*shardedCheck
	*called
}

// shardedRules are of a call to all shards. Handles whose clients have another order
// find no shard, unless one of them made some. Items are added only after a Create,
// which made all shards: it must not take an unfinished one for a loss of shards.
var shardedRules = []rule[shardedCall]{
	{"the clients have another order, and it made a second filter", func(j shardedCall) bool {
		return j.findsNone() && j.call.Verb == Create && j.result.End == Answered && j.isThere(j.called)
	}},
	{"the clients have another order, and it was answered", func(j shardedCall) bool {
		told := j.call.Verb != Create && (j.result.End == Answered || j.result.End == Uncertain)
		return j.findsNone() && (told || slices.Contains(j.result.States, bloom.ItemDone))
	}},
	{"a shard that was lost was made anew, and another holds items", func(j shardedCall) bool {
		return j.call.Verb == Create && !j.call.Turned && j.result.End == Answered && j.hasCall(func(lost *called) bool {
			gone := lost.call.Verb == Clear && lost.result.End == Answered && lost.result.Yes[0] && lost.to < j.from
			return gone && j.holdsItems(lost) && !j.mayRemake(lost)
		})
	}},
	{"shards were lost, it says, and none can have been", func(j shardedCall) bool {
		return j.call.Verb == Create && !j.call.Turned && j.result.End == Missing && !j.hasCall(func(o *called) bool {
			return o.from < j.to && (o.upsets() || o.mayFill() && !j.isThere(o))
		})
	}},
	{"it met a shard made anew, as the others were then, and says that items are in", func(j shardedCall) bool {
		isCause := errors.Is(j.call.cause(), bloom.ErrRecreated)
		return j.call.Verb == AddAll && j.result.ErrAnew && !isCause && slices.ContainsFunc(j.result.States, isIn)
	}},
}

func (k *shardedCheck) hasCall(is func(*called) bool) bool { return slices.ContainsFunc(k.h.calls, is) }

// findsNone reports whether a call must find no shard: its clients have another order,
// and no Create with that may have made shards before the call ended.
func (j shardedCall) findsNone() bool {
	return j.call.Turned && !j.hasCall(func(o *called) bool {
		return o != j.called && o.call.Verb == Create && o.call.Turned && o.from < j.to && o.result.End != NotRun &&
			o.result.End != Missing
	})
}

// isThere reports whether a Create ended before c began, and nothing can have
// removed a shard until c ended.
func (k *shardedCheck) isThere(c *called) bool {
	return !k.hasCall(func(o *called) bool { return o.mayRemove() && o.from < c.to }) &&
		k.hasCall(func(o *called) bool {
			return o.call.Verb == Create && !o.call.Turned && o.result.End == Answered && o.to < c.from
		})
}

// isWhole reports whether a call found shard 0, and therefore all others: it is
// made last and deleted first. A Create may complete what a simultaneous Delete
// removes.
func (k *shardedCheck) isWhole(c *called) bool {
	return c.result.End == Answered && !k.hasCall(func(o *called) bool {
		return o.from < c.to && (o.call.Verb != Delete && o.upsets() || o.call.Verb == Create &&
			k.hasCall(func(d *called) bool { return d.call.Verb == Delete && d.meets(o) }))
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

// mayRemake reports whether a call other than a Create may have made the lost shard, or
// have removed the others.
func (j shardedCall) mayRemake(lost *called) bool {
	return j.hasCall(func(o *called) bool {
		if o == j.called || o.lastEffect() < lost.from || o.from > j.to {
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
// items while a Create runs.
func (j shardedCall) holdsItems(lost *called) bool {
	return j.hasCall(func(a *called) bool {
		if a.to >= j.from || a.call.Turned || a.call.Verb != Add && a.call.Verb != AddAll ||
			a.result.End == Missing || a.result.End == Mismatch {
			return false
		}
		for i, item := range a.call.Items {
			shard := j.shardOf(item)
			removed := j.hasCall(func(o *called) bool {
				one := o.call.Verb == Clear || o.call.Verb == Overwrite || o.call.Verb == Revert
				return o.mayRemove() && (!one || o.call.Shard == shard) && o.to > a.from && o.from < j.to
			})
			if shard != lost.call.Shard && stateOf(a.result, i) == bloom.ItemDone && !removed {
				return true
			}
		}
		return false
	})
}

// created checks that exactly one Create of a filter reported to have made it.
func (k *shardedCheck) created() error {
	made, answered, doubtful := 0, false, false
	for _, c := range k.h.calls {
		if c.call.Verb == Create && !c.call.Turned {
			isAnswer := c.result.End == Answered
			answered, doubtful = answered || isAnswer, doubtful || !isAnswer
			if isAnswer && c.result.Yes[0] {
				made++
			}
		}
	}
	switch {
	case k.hasCall((*called).upsets):
	case made > 1:
		return errors.New("two Creates made the filter")
	case answered && made == 0 && !doubtful:
		return errors.New("there is a filter, and no Create made it")
	}
	return nil
}
