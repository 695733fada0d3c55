package proof

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Shardeds describes the handles of one history of a Sharded. Plain has the
// rest of the Config. A shard promises as much as a Filter with MustExist, so
// the model of a Filter checks each shard.
type Shardeds struct {
	Plain  Filters
	Shards int
	Spread int // databases, 1 or 2
	// Creates makes most calls Creates, and allows no change from outside.
	Creates bool
	// Others adds handles of a Config with one shard more.
	Others bool
	// Losses brings older states of single shards back.
	Losses bool
	// Causes ends contexts with the errors of other calls.
	Causes bool
	AtOnce
}

// DrawShardeds draws the Config of a history.
func DrawShardeds(rng *rand.Rand) *Shardeds {
	s := &Shardeds{
		Shards: 2 + rng.IntN(3), Spread: 1 + rng.IntN(2), Others: rng.IntN(5) == 0,
		Creates: rng.IntN(4) == 0, Losses: rng.IntN(4) == 0,
	}
	s.Plain.MustExist, s.Plain.Seed = true, drawSeed(rng)
	s.Causes = rng.IntN(4) == 0 || s.Creates && rng.IntN(2) == 0
	s.Plain.drawRegion(rng)
	return s
}

// Databases makes Shardeds a Spread type.
func (s *Shardeds) Databases() int { return s.Spread }

// Config returns the Config of the handles. The shards are so large that no
// item is found because of others. A Config with another number of shards has
// the same geometry.
func (s *Shardeds) Config() bloom.ShardedConfig {
	return bloom.ShardedConfig{
		Capacity: 10, FPRate: 0.001, Shards: s.Shards, Reads: s.Plain.Reads,
		Seed: s.Plain.Seed, BatchParallel: s.Parallel(),
	}
}

// configOf returns the Config of one of a pair of handles.
func (s *Shardeds) configOf(parts bool) bloom.ShardedConfig {
	cfg := s.Config()
	if parts {
		cfg.BatchBytes = 1
	}
	return cfg
}

func (s *Shardeds) geometry() bloom.Geometry {
	g, err := s.Config().Geometry()
	if err != nil {
		panic(err) // the sizes are constants
	}
	return g
}

type shardedSession struct {
	of      *Shardeds
	clients []*upstash.Client
	key     string
	handles pair[bloom.Sharded]
	other   *bloom.Sharded                // of another number of shards
	turned  atomic.Pointer[bloom.Sharded] // its clients have another order
}

// Open makes the handles of a process, whose clients' observer must be Observe.
func (s *Shardeds) Open(clients []*upstash.Client, key string) (Handles, error) {
	h := &shardedSession{of: s, clients: clients, key: key}
	made := h.handles.fill(func(parts bool) (*bloom.Sharded, error) {
		return bloom.NewSharded(clients, key, s.configOf(parts))
	})
	turned, err := bloom.NewSharded(turn(clients), key, s.Config())
	h.turned.Store(turned)
	cfg := s.Config()
	cfg.Shards++
	var wrong error
	h.other, wrong = bloom.NewSharded(clients, key, cfg)
	return h, errors.Join(made, err, wrong)
}

// Run makes one call.
func (s *shardedSession) Run(ctx context.Context, c Call) Result {
	r := runCall(ctx, c, func(ctx context.Context) (Result, error) { return s.call(ctx, c) })
	r.Shards = shardsIn(r.Err)
	return r
}

var shardNames = regexp.MustCompile(`shard ([0-9]+(?:, [0-9]+)*) of [0-9]+`)

// shardsIn returns the shards named in an error's text.
func shardsIn(text string) (shards []int) {
	m := shardNames.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	for name := range strings.SplitSeq(m[1], ", ") {
		n, err := strconv.Atoi(name)
		if err != nil {
			panic(err) // the expression lets digits pass
		}
		shards = append(shards, n)
	}
	return shards
}

// at returns the place of the handle of a call.
func (s *shardedSession) at(c Call) *atomic.Pointer[bloom.Sharded] {
	if c.Turned {
		return &s.turned
	}
	return s.handles.at(c)
}

func (s *shardedSession) call(ctx context.Context, c Call) (Result, error) {
	f := s.at(c).Load()
	if verb, ok := verbOfOther[c.Verb]; ok {
		f, c.Verb = s.other, verb
	}
	switch c.Verb {
	case Open:
		return s.open(ctx, c)
	case Stats:
		st, err := f.Stats(ctx)
		r := Result{}
		for _, shard := range st.Shards {
			r.Counts = append(r.Counts, int(shard.SetBits))
		}
		return r, err
	case Load:
		return loaded(f.Load(ctx, slices.Values(c.Items)))
	case Merge:
		return loaded(f.LoadShard(ctx, f.ShardOf(c.Items[0]), slices.Values(c.Items)))
	}
	return c.by(ctx, f, "")
}

// verbOfOther maps a verb of the other Config to its handle's call.
var verbOfOther = map[Verb]Verb{OtherCreate: Create, OtherAdd: Add, OtherExists: Exists, OtherDelete: Delete}

var shardedVerbs = []Verb{
	Create, Create, Create, Create, Add, Add, Add, Add, Add, Add, AddAll, AddAll, AddAll, Exists, Exists, Exists,
	Exists, ExistsAll, ExistsAll, ExistsAll, Stats, Cardinality, Delete, Delete, Load, Merge, Open, Open,
}

var createVerbs = []Verb{Create, Create, Create, Create, Create, Exists, ExistsAll, Stats, Open, Open, Delete}

var otherVerbs = []Verb{OtherCreate, OtherAdd, OtherAdd, OtherExists, OtherDelete}

// Draw draws a call.
func (s *Shardeds) Draw(rng *rand.Rand) []Call {
	c := Call{Verb: pick(rng, shardedVerbs)}
	if s.Creates && rng.IntN(4) > 0 {
		c.Verb = pick(rng, createVerbs)
	}
	if s.Others && rng.IntN(3) == 0 {
		c.Verb = pick(rng, otherVerbs)
	}
	if s.Causes && rng.IntN(3) == 0 {
		c.drawCause(rng)
	}
	c.drawItems(rng, itemCount, itemCount-1)
	switch c.Verb {
	case AddAll, ExistsAll:
		c.Parts = rng.IntN(3) == 0
	case Load, Merge:
		c.Items = items(rng, 1+rng.IntN(3))
	case Create, Delete, Open:
		c.Parts = c.Verb == Open && rng.IntN(4) == 0
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
		c.Turned = !c.Parts && s.Spread > 1 && rng.IntN(12) == 0
	}
	return []Call{c}
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

// DrawOutside draws, after one call in twelve, a change of one shard from
// outside.
func (s *Shardeds) DrawOutside(rng *rand.Rand) (c Call, ok bool) {
	c.Verb = []Verb{Clear, Clear, Clear, Expire, Overwrite, Smudge, ClearParts}[rng.IntN(7)]
	c.Shard = rng.IntN(s.Shards)
	if c.drawLoss(rng, s.Losses) {
		return c, !s.Creates && rng.IntN(5) == 0
	}
	if c.Verb == Smudge {
		c.Items = items(rng, 1)
	}
	return c, !s.Creates && rng.IntN(12) == 0
}

// Outside makes a call on the database of a shard.
func (s *Shardeds) Outside(dbs []*upstashtest.Server, key string, seed uint64, c Call) Result {
	db, key := dbs[c.Shard%len(dbs)], key+":"+strconv.Itoa(c.Shard)
	if c.Verb == HasTTL {
		left, err := db.Exec("PTTL", key)
		ms, _ := left.(int64)
		return outsideResult(err, ms > 0, int(ms))
	}
	return s.Plain.Outside([]*upstashtest.Server{db}, key, seed, c)
}

// Finish adds last calls to the history, after all faults: look-ups of every item
// before and after a Create and an AddAll, and whether each shard has a TTL.
func (s *Shardeds) Finish(
	ctx context.Context, h *History, dbs []*upstashtest.Server, key string, handles Handles,
) error {
	all := allItems(itemCount)
	add := all
	add.Verb = AddAll
	for _, c := range []Call{all, {Verb: Create}, {Verb: Open}, add, all, {Verb: Stats}} {
		r := h.Do(atLast, atLast, c, func(c Call) Result { return handles.Run(ctx, c) })
		// A LostThenError may wait for the repetition of a write.
		if c.Verb == ExistsAll && r.End != Answered && r.End != Partly {
			return fmt.Errorf("a look-up that met no fault: %v", r)
		}
	}
	for i := range s.Shards {
		h.Do("outside", "outside", Call{Verb: HasTTL, Shard: i}, func(c Call) Result {
			return s.Outside(dbs, key, 0, c)
		})
	}
	return nil
}

// open opens the filter.
func (s *shardedSession) open(ctx context.Context, c Call) (Result, error) {
	clients := s.clients
	if c.Turned {
		clients = turn(clients)
	}
	cfg := s.of.configOf(c.Parts)
	cfg.Capacity, cfg.FPRate, cfg.Shards = 0, 0, 0 // what the strings say
	f, err := bloom.OpenSharded(ctx, clients, s.key, cfg)
	return adopt(s.at(c), f, err)
}

// turn returns the clients in another order.
func turn(clients []*upstash.Client) []*upstash.Client {
	return []*upstash.Client{clients[len(clients)-1], clients[0]}
}
