package bloom

import (
	"context"

	"github.com/upbloom/upbloom/upstash"
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
	body         [1]area
}

// fixed is the shard's own word.
func (s *shardShape) fixed() int64 {
	return 1<<(wordBits-1) | int64(s.count)<<shardCountShift | int64(s.index)<<shardIndexShift
}

func (s *shardShape) word(*request) int64 { return s.fixed() }

func (s *shardShape) loose() uint { return shardFreeBits }

// differs: the index is part of the key. A shard with another index was
// renamed.
func (s *shardShape) differs(word int64) string {
	if (word^s.fixed())>>shardCountShift&shardMask != 0 {
		return "Shards"
	}
	return "key"
}

func (s *shardShape) length(r *record) uint64 { return r.geo.Bytes(r.layout) }

func (s *shardShape) shorter() string {
	return "use more Shards, lower the Capacity, raise the FPRate, or choose a larger plan"
}

func (s *shardShape) aim(context.Context, *request, bool) (changed bool, err error) {
	return false, nil
}

func (s *shardShape) setItem(q *request, item string) { q.setInArea(s.body[:], 0, item) }
func (s *shardShape) getItem(q *request, item string) { q.getInAreas(s.body[:], item) }

func (s *shardShape) itemBytes(r *record, write bool) int { return r.plainItemBytes(write) }

func (s *shardShape) wrote(q *request, answers []upstash.NullInt64) error {
	return q.tookBits(answers)
}

func (s *shardShape) read(q *request, answers []upstash.NullInt64) error {
	return q.judgeWords(answers)
}

func (s *shardShape) follow(context.Context, *request, bool) (again bool) { return false }
