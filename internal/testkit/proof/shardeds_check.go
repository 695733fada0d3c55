package proof

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// Each shard of a Sharded has its own keys. The model of a Filter checks the
// history of each. Rules that need no order check what a Create or a Delete
// says of all shards.

// Initial is the state of a missing shard.
func (s *Shardeds) Initial() any { return s.Plain.Initial() }

// Hash is that of the plain model.
func (s *Shardeds) Hash(state any) uint64 { return s.Plain.Hash(state) }

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
	f, err := bloom.NewSharded([]*upstash.Client{c}, "key", s.Config())
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
	h = s.withLapses(h)
	for _, check := range []func(*History) error{
		s.checkCreated, s.checkLost, s.checkCompleted, s.checkTTL, s.checkLasting,
	} {
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
		split := splitter{of: &s.Plain, h: own, cells: ownCell, weigh: s.weigh, part: shard}
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
	case Clear, Expire, Overwrite, Smudge, HasTTL, Lapse:
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
	more := Shardeds{Plain: s.Plain, Shards: s.Shards + 1, Spread: s.Spread}
	return c.only(shard, more.shardOf())
}

// smudged reports whether another program may have set cells of a shard before a
// call ended.
func (s *Shardeds) smudged(h *History, c *called, shard int) bool {
	return slices.ContainsFunc(h.calls, func(o *called) bool {
		return o.call.Verb == Smudge && o.call.Shard == shard && o.from < c.to
	})
}
