package proof

import (
	"context"
	"math/rand/v2"
	"strconv"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Shardeds describes the handles of one history of a Sharded. A shard promises
// as much as a Filter with MustExist, so the model of a Filter checks each shard.
type Shardeds struct {
	Common
	Shards int
	Spread int // databases, 1 or 2
	// Creates makes most calls Creates, and allows no change from outside.
	Creates bool
	// Latecomers makes first attempts of a Create come late, after the filter has gone.
	Latecomers bool
	// Others adds handles of a Config with one shard more.
	Others bool
}

func (s *Shardeds) drawConfig(rng *rand.Rand, _ Theme) {
	s.Shards, s.Spread, s.Others = 2+rng.IntN(3), 1+rng.IntN(2), often(rng, 5)
	s.Creates, s.Losses, s.MustExist = often(rng, 4), often(rng, 4), true
	s.drawSeed(rng)
	s.Causes = often(rng, 4) || s.Creates && often(rng, 2)
	s.drawRegion(rng)
	s.Latecomers = !s.Losses && !s.Lag && !s.Others && !s.Creates && often(rng, 6)
	if s.Latecomers {
		s.Parallel = 1
	}
}

// Databases is Spread.
func (s *Shardeds) Databases() int { return s.Spread }

// config returns the Config of a handle. The shards are so large that no item is
// found because of others. A Config with another number of shards has the same
// geometry.
func (s *Shardeds) config(v variant) bloom.ShardedConfig {
	cfg := bloom.ShardedConfig{
		Capacity: 10, FPRate: 0.001, Shards: s.Shards, ReadsNearest: s.ReadsNearest, Seed: s.Seed,
	}
	if v == reshaped {
		cfg.Shards++
	}
	return cfg
}

func (s *Shardeds) geometry() bloom.Geometry { return geometryOf(s.config(plain)) }

func (s *Shardeds) make(c []*upstash.Client, key string, v variant) (handle, error) {
	return bloom.NewSharded(inOrder(c, v), key, s.config(v))
}

func (s *Shardeds) open(ctx context.Context, c []*upstash.Client, key string, v variant) (handle, error) {
	cfg := s.config(v)
	cfg.Capacity, cfg.FPRate, cfg.Shards = 0, 0, 0 // what the strings say
	return bloom.OpenSharded(ctx, inOrder(c, v), key, cfg)
}

// inOrder returns the clients of a handle, of a turned one in another order.
func inOrder(c []*upstash.Client, v variant) []*upstash.Client {
	if v == turned {
		return []*upstash.Client{c[len(c)-1], c[0]}
	}
	return c
}

var shardedVerbs = odds{
	{4, Create},
	{6, Add},
	{3, AddAll},
	{4, Exists},
	{3, ExistsAll},
	{1, Stats},
	{1, Cardinality},
	{2, Delete},
	{1, Load},
	{1, Merge},
	{2, Open},
}

var createVerbs = odds{{5, Create}, {1, Exists}, {1, ExistsAll}, {1, Stats}, {2, Open}, {1, Delete}}

var otherVerbs = odds{{1, OtherCreate}, {2, OtherAdd}, {1, OtherExists}, {1, OtherDelete}}

// Draw draws a call, or a change of one shard from outside.
func (s *Shardeds) Draw(rng *rand.Rand) []Call {
	return stories{
		{100, s.drawPlain},
		{when(!s.Creates, 9), s.drawOutside},
		{when(!s.Creates && s.Losses, 12), func(rng *rand.Rand) []Call { return s.ofAShard(rng, s.drawLoss(rng)) }},
		{when(s.Latecomers && s.Silences, 300), s.drawLatecomer},
	}.tell(rng)
}

func (s *Shardeds) drawPlain(rng *rand.Rand) []Call {
	list := weighted(rng, []choice[odds]{
		{1, shardedVerbs}, {when(s.Creates, 3), createVerbs}, {when(s.Others, 1), otherVerbs},
	})
	c := s.draw(rng, list, itemCount, itemCount-1)
	switch c.Verb {
	case Load, Merge:
		c.Items = items(rng, 1+rng.IntN(3))
	case Create, Delete, Open:
		switch n := rng.IntN(4); {
		case n == 1 && c.Verb == Open && !c.Parts && s.Spread > 1:
			c.Turned = true
			return []Call{c, {Verb: Exists, Items: items(rng, 1), Turned: true}}
		case n == 0 || c.Verb == Open: // if that finds shard 0, no other is missing
			return append([]Call{c}, drawOpen(rng)...)
		case n < 3 && c.Verb == Create: // while others create it too
			return []Call{c, {Verb: Add, Items: items(rng, 1)}}
		}
	}
	switch c.Verb {
	case Create, Add, AddAll, Exists, ExistsAll:
		c.Turned = !c.Parts && s.Spread > 1 && often(rng, 12)
	}
	return []Call{c}
}

// drawLatecomer draws an AddAll of one item in each request. What comes late is a
// part of a Create.
func (s *Shardeds) drawLatecomer(rng *rand.Rand) []Call {
	all := items(rng, itemCount)
	var clear []Call
	for i := range s.Shards {
		clear = append(clear, Call{Verb: Clear, Shard: i})
	}
	add := Call{Verb: AddAll, Items: all, Parts: true}
	late := comesLate("EVAL", 1+rng.IntN(4))
	calls := drawLate(rng, late, Call{Verb: Create}, clear, pauses(add, "EVAL", rng.IntN(itemCount-1)))
	return append(calls, Call{Verb: ExistsAll, Items: all})
}

// drawOpen draws an Open between look-ups.
func drawOpen(rng *rand.Rand) (calls []Call) {
	for i, item := range items(rng, 4) {
		if i == 2 {
			calls = append(calls, Call{Verb: Open})
		}
		calls = append(calls, Call{Verb: Exists, Items: []string{item}})
	}
	return calls
}

// drawOutside draws a change of one shard.
func (s *Shardeds) drawOutside(rng *rand.Rand) []Call {
	c := Call{Verb: weighted(rng, odds{{3, Clear}, {1, Overwrite}, {1, Smudge}, {1, ClearParts}})}
	c.drawItems(rng, itemCount, 1)
	return s.ofAShard(rng, c)
}

func (s *Shardeds) ofAShard(rng *rand.Rand, c Call) []Call {
	c.Shard = rng.IntN(s.Shards)
	return []Call{c}
}

// Outside makes a call on the database of a shard.
func (s *Shardeds) Outside(dbs []*upstashtest.Server, key string, seed uint64, c Call) Result {
	return s.Common.Outside(dbs[c.Shard%len(dbs):], key+":"+strconv.Itoa(c.Shard), seed, c)
}

// last looks up every item, before and after a Create and an AddAll.
func (s *Shardeds) last(int) []Call {
	items := allItems(itemCount)
	all := Call{Verb: ExistsAll, Items: items, Sure: true}
	return []Call{all, {Verb: Create}, {Verb: Open}, {Verb: AddAll, Items: items}, all, {Verb: Stats}}
}
