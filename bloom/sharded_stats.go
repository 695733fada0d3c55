package bloom

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/internal/human"
)

// ShardedStats is the state of all shards. It is plain data.
type ShardedStats struct {
	// Shards is the state of each shard, by its number.
	Shards []Stats
	// Items is the estimated number of distinct items in all shards; if
	// Saturated, a lower bound.
	Items uint64
	// Capacity is [ShardedConfig.Capacity], or what the strings say, as in
	// [Stats]. FPRate is about the false positive rate at that many items. Both
	// are 0 if they are not known.
	Capacity uint64
	FPRate   float64
	// LiveFPRate is the false positive rate now: the mean of the shards'.
	LiveFPRate float64
	// Bytes is the length of all strings together.
	Bytes uint64
	// Saturated is true if every cell of some shard is set.
	Saturated bool
}

// OverCapacity reports whether the filter holds more items than it was sized
// for, as [Stats.OverCapacity] does. It is false if Capacity is not known.
func (s ShardedStats) OverCapacity() bool {
	return Stats{Capacity: s.Capacity, Items: s.Items, Saturated: s.Saturated}.OverCapacity()
}

// Stats reads the state of all shards: for each shard one request of four
// commands, [ShardedConfig.BatchParallel] at once to each database. The shards
// are not read at one moment. What [Filter.Stats] says of the cost and of
// global databases holds here too. If a shard cannot be read, the error says
// which; a missing one is [ErrNotFound].
func (s *Sharded) Stats(ctx context.Context) (ShardedStats, error) {
	ctx = s.shards[0].rec.Label(ctx, "bloom.Sharded.Stats")
	out := ShardedStats{Capacity: s.cfg.Capacity, Shards: make([]Stats, len(s.shards))}
	err := s.eachShard(ctx, func(ctx context.Context, i int) (err error) {
		out.Shards[i], err = s.shards[i].Stats(ctx)
		return err
	})
	if err != nil {
		return ShardedStats{}, err
	}
	room := out.Shards[0].Capacity
	for i := range out.Shards {
		one := &out.Shards[i]
		room = min(room, one.Capacity)
		out.Items += one.Items
		out.Bytes += one.Bytes
		out.LiveFPRate += one.LiveFPRate / float64(len(s.shards))
		out.Saturated = out.Saturated || one.Saturated
	}
	shards := uint64(len(s.shards))
	if out.Capacity == 0 {
		out.Capacity = shardsHold(room, shards)
	}
	if out.Capacity != 0 {
		out.FPRate = s.Geometry().FalsePositiveRate((out.Capacity + shards - 1) / shards)
	}
	return out, nil
}

// Cardinality estimates how many distinct items were added, as the sum of the
// shards' estimates: see [Filter.Cardinality]. Its cost is that of
// [Sharded.Stats], but two commands a shard. If every cell of a shard is set,
// the error is [ErrSaturated].
func (s *Sharded) Cardinality(ctx context.Context) (uint64, error) {
	ctx = s.shards[0].rec.Label(ctx, "bloom.Sharded.Cardinality")
	each := make([]uint64, len(s.shards))
	err := s.eachShard(ctx, func(ctx context.Context, i int) (err error) {
		each[i], err = s.shards[i].Cardinality(ctx)
		return err
	})
	if err != nil {
		return 0, err
	}
	sum := uint64(0)
	for _, n := range each {
		sum += n
	}
	return sum, nil
}

// eachShard calls do for every shard, several at once for each database. It
// returns the error of the first shard that has one. After an error it begins no
// more of the same database.
func (s *Sharded) eachShard(ctx context.Context, do func(ctx context.Context, i int) error) error {
	errs := make([]error, len(s.shards))
	s.eachDatabase(func(_ int, d *database) {
		calls := engine.NewPool(s.shards[0].batchParallel())
		var failed atomic.Bool
		for _, i := range d.shards {
			if !calls.Run(failed.Load, func() {
				if errs[i] = s.named(i, do(ctx, i)); errs[i] != nil {
					failed.Store(true)
				}
			}) {
				break
			}
		}
		calls.Wait()
	})
	return firstOf(errs, false)
}

// String draws the state for a person, in a few lines without the key:
//
//	sharded          4 shards of 25,758 bits (3.1 KiB), k=4, blocked
//	fill             [######..............] 29.6% on average, 30.2% at most
//	items            about 9,052 of 9,000
//	false positives  1 in 120 now, 1 in 123 at capacity
//	stored           12,976 bytes
func (s ShardedStats) String() string {
	var b strings.Builder
	mean, most := 0.0, 0.0
	for i := range s.Shards {
		mean += s.Shards[i].Fill / float64(len(s.Shards))
		most = max(most, s.Shards[i].Fill)
	}
	if len(s.Shards) > 0 {
		shards := "shards"
		if len(s.Shards) == 1 {
			shards = "shard"
		}
		fmt.Fprintf(&b, "sharded          %d %s of %v\n", len(s.Shards), shards, s.Shards[0].Geometry)
	}
	fmt.Fprintf(&b, "fill             %s %.1f%% on average, %.1f%% at most\n", bar(mean), 100*mean, 100*most)
	about, of, at := "about", "", ""
	if s.Saturated {
		about = "saturated: more than"
	}
	if s.Capacity != 0 {
		of = " of " + human.Count(s.Capacity)
		at = ", " + human.OneIn(s.FPRate) + " at capacity"
	}
	fmt.Fprintf(&b, "items            %s %s%s\n", about, human.Count(s.Items), of)
	fmt.Fprintf(&b, "false positives  %s now%s\n", human.OneIn(s.LiveFPRate), at)
	fmt.Fprintf(&b, "stored           %s bytes", human.Count(s.Bytes))
	return b.String()
}
