package bloom

import (
	"fmt"
	"io"
	"math"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/internal/human"
)

// A ShardedConfig says how large a [Sharded] is and in how many shards it lies.
// All programs that share one must use the same Capacity, FPRate, Shards and
// Seed. The zero value is not valid: set Capacity, FPRate and Shards. A
// ShardedConfig is plain data, to be copied freely. Its String does not show
// the seed.
type ShardedConfig struct {
	_ struct{}

	// Capacity is the number of distinct items in all shards together, at least
	// 1. A shard is sized for its share and three standard deviations more,
	// because items do not spread evenly.
	Capacity uint64

	// FPRate is the false positive rate of the whole at Capacity: above 0 and
	// below 1, at least 1e-9.
	FPRate float64

	// Shards is the number of shards, from 1 to 256, and no less than there are
	// clients. It cannot be changed later. A shard must fit into a record of the
	// database: 100 MB, which is 74 million items at 1 in 100, on Upstash's
	// smaller plans. See [ShardedConfig.MinShards].
	Shards int

	// Seed of the hash; the default is 0. See [Config.Seed].
	Seed uint64 `json:"-"`

	// Reads says which copy of a global database answers look-ups: see
	// [Config.Reads].
	Reads Reads

	// BatchBytes is the longest request body, in bytes, that a batch sends; the
	// default, for 0, is 1 MiB. See [Config.BatchBytes].
	BatchBytes int

	// BatchParallel is how many requests a call has under way at once to each
	// database; the default, for 0, is 4.
	BatchParallel int
}

// maxShards bounds what one call asks of a database. The format has room for
// 4,095.
const maxShards = 256

// Geometry checks the whole [ShardedConfig] and works out the geometry of one
// shard. The error is a [*ConfigError]. It sends nothing.
func (c ShardedConfig) Geometry() (Geometry, error) {
	if c.Shards < 1 || c.Shards > maxShards {
		return Geometry{}, shardedErrorf("Shards", "is %d: it must be from 1 to %d", c.Shards, maxShards)
	}
	if c.Capacity/uint64(c.Shards) > cells.MaxBlockedItems/2 {
		return Geometry{}, c.tooLarge()
	}
	g, err := c.ofShard().Geometry()
	if c.Capacity != 0 && namesCapacity(err) {
		return Geometry{}, c.tooLarge()
	}
	return g, ofConfig(err, "ShardedConfig")
}

// MinShards returns the least number of shards with which no shard's string is
// longer than maxBytes: most of Upstash's plans allow 100,000,000. It ignores
// Shards. The error is a [*ConfigError], also if 256 shards would be too long.
// It sends nothing.
func (c ShardedConfig) MinShards(maxBytes uint64) (int, error) {
	var g Geometry
	var err error
	for c.Shards = 1; c.Shards <= maxShards; c.Shards++ {
		if g, err = c.Geometry(); err == nil && g.Bytes(LayoutHeaded) <= maxBytes {
			return c.Shards, nil
		}
	}
	if err != nil {
		return 0, err
	}
	return 0, shardedErrorf("Capacity", "is %s, and at FPRate %v a shard of %d takes %s bytes, more than %s:"+
		" lower it, or raise FPRate", human.Count(c.Capacity), c.FPRate, maxShards,
		human.Count(g.Bytes(LayoutHeaded)), human.Count(maxBytes))
}

func (c ShardedConfig) tooLarge() error {
	return shardedErrorf("Capacity", "is %s, and at FPRate %v a shard of %d does not fit into a Redis"+
		" string: lower it, raise FPRate, or use more Shards", human.Count(c.Capacity), c.FPRate, c.Shards)
}

// ofShard returns the Config of one shard.
func (c ShardedConfig) ofShard() Config {
	cfg := Config{
		FPRate: c.FPRate, Seed: c.Seed, MustExist: true, Reads: c.Reads,
		BatchBytes: c.BatchBytes, BatchParallel: c.BatchParallel,
	}
	if c.Capacity != 0 {
		cfg.Capacity = shardCapacity(c.Capacity, uint64(c.Shards))
	}
	return cfg
}

// shardCapacity returns how many items one of the shards is sized for: the mean,
// and three times its square root, rounded up.
func shardCapacity(capacity, shards uint64) uint64 {
	mean := capacity / shards
	if capacity%shards != 0 {
		mean++
	}
	root := uint64(math.Sqrt(float64(mean))) // rounded down, and never too high
	for root*root < mean {
		root++
	}
	return mean + 3*root
}

func shardedErrorf(field, format string, args ...any) error {
	return &ConfigError{Field: field, Reason: fmt.Sprintf(format, args...), of: "ShardedConfig"}
}

// String shows the fields that are set. Of the seed it shows only that it is set.
func (c ShardedConfig) String() string { return describe(c) }

// Format is String for every verb: none shows the seed.
func (c ShardedConfig) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, c.String()) }
