package bloom

import (
	"context"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// AddAll adds items and reports for each whether it was new: see
// [Filter.AddAll]. It sends one request to each database that has items, and
// more if [ShardedConfig.BatchBytes] does not carry them, to all databases at
// once. Each shard touched by a request is three billed commands, and one more
// for each further 1,000 bits to set in it.
//
// If a database or a shard fails, the others still answer. The error is then a
// [*BatchError]. It says what is known of each item; its Err is the first
// failure, in the order of the clients.
func (s *Sharded) AddAll(ctx context.Context, items []string) ([]bool, error) {
	return s.batch(s.shards[0].rec.Label(ctx, "bloom.Sharded.AddAll"), items, true)
}

// ExistsAll reports for each item whether it is in its shard, with the promises
// of [Sharded.Exists] and the requests and errors of [Sharded.AddAll]. Each
// shard touched by a request is one billed command.
func (s *Sharded) ExistsAll(ctx context.Context, items []string) ([]bool, error) {
	return s.batch(s.shards[0].rec.Label(ctx, "bloom.Sharded.ExistsAll"), items, false)
}

// batch runs one batch for each database.
func (s *Sharded) batch(ctx context.Context, items []string, adding bool) ([]bool, error) {
	if len(items) == 0 {
		return nil, nil
	}
	if len(s.databases) == 1 {
		return s.shards[0].run(ctx, s.batchOf(&s.databases[0], items, adding))
	}
	of := make([][]string, len(s.databases)) // the items of each database
	index := make([][]int, len(s.databases))
	home := s.homes()
	for i, item := range items {
		n := home[s.ShardOf(item)]
		of[n] = append(of[n], item)
		index[n] = append(index[n], i)
	}
	answers := make([]bool, len(items))
	states := make([]ItemState, len(items))
	errs := make([]error, len(s.databases))
	s.eachDatabase(func(n int, d *database) {
		if len(of[n]) == 0 {
			return
		}
		b := s.batchOf(d, of[n], adding)
		b.Run(ctx)
		for m, i := range index[n] {
			answers[i], states[i] = b.Answers[m], ItemState(b.States[m])
		}
		errs[n] = b.Err
	})
	if err := firstOf(errs, false); err != nil {
		return answers, &BatchError{Items: states, Err: err, reads: !adding}
	}
	return answers, nil
}

// homes returns the database of each shard.
func (s *Sharded) homes() []int {
	home := make([]int, len(s.shards))
	for n := range s.databases {
		for _, i := range s.databases[n].shards {
			home[i] = n
		}
	}
	return home
}

// batchOf makes the batch of one database.
func (s *Sharded) batchOf(d *database, items []string, adding bool) *engine.Batch {
	b := s.shards[d.shards[0]].newBatch(items, adding, nil)
	b.Lanes = make([]engine.Lane, len(d.shards))
	for n, i := range d.shards {
		b.Lanes[n].Rec = &s.shards[i].rec.Record
	}
	b.LaneOf = func(item string) int { return s.lanes[s.ShardOf(item)] }
	b.Name = func(lane int, err error) error { return s.named(d.shards[lane], err) }
	return b
}

// OpenSharded makes a handle for an existing filter. It reads the geometry and
// the number of shards from shard 0, in one request of two commands. At most one
// [ShardedConfig] says the rest: if Capacity and FPRate, or Shards, are set, they
// must be the filter's, or the error is a [*MismatchError]; Seed must be its seed;
// the other fields hold as they do for NewSharded. The error is [ErrNotFound] if
// shard 0 is not in the database of the first client. If the config does not say
// the Capacity, Stats knows it from the strings.
func OpenSharded(ctx context.Context, clients []*upstash.Client, key string, cfg ...ShardedConfig,
) (_ *Sharded, err error) {
	defer fault.OnlyReads(&err)
	want, err := atMostOne(cfg)
	if err != nil {
		return nil, err
	}
	if err := want.checkOpen(); err != nil {
		return nil, err
	}
	if len(clients) == 0 {
		return newSharded(nil, key, ShardedConfig{}, Geometry{})
	}
	if err := checkTarget(clients[0], key); err != nil {
		return nil, err
	}
	seen, err := openState(ctx, clients[0], key+":0")
	if fault.Is(err, ErrNotFound) {
		return nil, &missingError{shards: []int{0}, err: err}
	}
	if err != nil {
		return nil, err
	}
	if err := seen.isOf(KindShard, want.Seed); err != nil {
		return nil, err
	}
	count := int(seen.word >> shardCountShift & shardMask)
	if count == 0 || seen.word>>shardIndexShift&shardMask != 0 || seen.header.scheme != SchemeBlocked {
		return nil, engine.ErrHeaderBits
	}
	if want.Shards != 0 && want.Shards != count {
		return nil, seen.differsIn("Shards", want.Seed)
	}
	want.Shards = count
	geo := seen.header.geometry(want.Seed)
	if want.isSized() {
		if geo, err = want.Geometry(); err != nil {
			return nil, err
		}
	}
	if err := seen.isSized(geo); err != nil {
		return nil, err
	}
	s, err := newSharded(clients, key, want, geo)
	if err != nil {
		return nil, err
	}
	for i := range s.shards {
		s.shards[i].opened(rateIn(seen.birth))
	}
	return s, nil
}

func (c ShardedConfig) isSized() bool { return c.Capacity != 0 || c.FPRate != 0 }

// checkOpen checks what does not depend on the filter to be opened.
func (c ShardedConfig) checkOpen() error {
	if c.Shards == 0 {
		c.Shards = maxShards
	}
	if !c.isSized() {
		c.Capacity, c.FPRate = 1, 0.5
	}
	_, err := c.Geometry()
	return err
}
