package bloom

import (
	"context"

	"github.com/upbloom/upbloom/bloom/internal/engine"
)

// The shard's own word is a u53 at bit 128, from its top bit down:
//
//	1 | count:12 | index:12 | 0:28
//
// The 28 bits are free for later versions.
const (
	shardFreeBits   = 28
	shardIndexShift = shardFreeBits
	shardCountShift = shardIndexShift + 12
	shardMask       = 1<<12 - 1
)

// A shardShape is the shape of one shard: it is stored as a plain filter, and
// its word says which of how many it is.
type shardShape struct {
	count, index int
	plain
}

// fixed is the shard's own word.
func (s *shardShape) fixed() int64 {
	return 1<<(wordBits-1) | int64(s.count)<<shardCountShift | int64(s.index)<<shardIndexShift
}

func (s *shardShape) KindWord(*engine.Request) int64 { return s.fixed() }

func (s *shardShape) MutableBits() uint { return shardFreeBits }

// differs: the index is part of the key. A shard with another index was
// renamed.
func (s *shardShape) differingField(word int64) string {
	if (word^s.fixed())>>shardCountShift&shardMask != 0 {
		return "Shards"
	}
	return "key"
}

func (s *shardShape) length() uint64 { return s.geo.Bytes(LayoutHeaded) }

func (s *shardShape) howToShorten() string {
	return "use more Shards, lower the Capacity, raise the FPRate, or choose a larger plan"
}

func (s *shardShape) Prepare(context.Context, *engine.Request, bool) (changed bool, err error) {
	return false, nil
}

func (s *shardShape) Follow(context.Context, *engine.Request, bool) (again bool) { return false }
