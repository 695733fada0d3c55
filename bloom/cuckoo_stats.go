package bloom

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/internal/pttl"
	"github.com/upbloom/upbloom/upstash"
)

// Count returns how many copies the filter holds: those added and not removed.
// It is exact, and one request of one billed command. The primary of a global
// database answers; only with [ReadsNearest] or a read-only client the nearest
// region does, which may be behind. A missing filter is [ErrNotFound], unless
// [CuckooConfig.MissingIsEmpty] is set. By default a full database refuses it:
// see [Reads]. It does not refuse [Cuckoo.Stats].
func (f *Cuckoo) Count(ctx context.Context) (uint64, error) {
	ctx = f.rec.Label(ctx, "bloom.Cuckoo.Count")
	word, err := f.rec.ReadKindWord(ctx)
	if err != nil {
		return 0, f.allowMissing(err)
	}
	items, _ := cuckooWord(word)
	return items, nil
}

// CuckooStats is the state of a [Cuckoo] at one moment. It is plain data.
type CuckooStats struct {
	// Geometry is the handle's. Seeded is true if the filter has a seed.
	Geometry Geometry
	Seeded   bool
	// Bytes is the length of the Redis string now.
	Bytes uint64
	// Items is how many copies the filter holds.
	Items uint64
	// Capacity is what the filter was sized for: [CuckooConfig.Capacity], or,
	// if it was opened, what follows from the geometry.
	Capacity uint64
	// Fill is the share of slots that hold a copy, 0 to 1. An Add returns
	// [ErrFull] from 0.9 to 1, or from 0.8 to 0.91 if a bucket has two slots (k=2).
	// At Capacity it is 0.95 at most, and far less in a small table. An item that
	// is in many times fills its two buckets: in a table for some hundreds, an Add
	// of another one may then be refused at any Fill.
	Fill float64
	// FPRate is the false positive rate at Capacity, LiveFPRate that of now.
	FPRate     float64
	LiveFPRate float64
	// Damaged is true if anything but a [Cuckoo] has written to the table, such
	// as a plain [Filter]'s Add: members may be denied. Make the filter again.
	// Of writes that only set bits, one in a million goes unnoticed. Of cells
	// that were overwritten far more do: one byte 20 times in 100, eight bytes 5
	// times in 100.
	Damaged bool
	// TTL is the time until the key expires, 0 if it does not. No method of a
	// Cuckoo sets one: somebody ran EXPIRE.
	TTL time.Duration
}

// cuckooStatsScript reads the header, bit 127, the birth number and the kind's
// word, and the set bits from ARGV[2] to ARGV[3], the length and the TTL.
var cuckooStatsScript = upstash.NewScript(engine.LuaCheckHeader + `return {w[1], w[4],
  redis.call('BITCOUNT', KEYS[1], ARGV[2], ARGV[3], 'BIT'),
  redis.call('STRLEN', KEYS[1]), redis.call('PTTL', KEYS[1])}`)

// Stats reads the state of the filter: one request, a script of five billed
// commands. The server reads the whole string, about 1 ms a megabyte. In a
// global database the nearest region answers. A missing filter is
// [ErrNotFound], whatever MissingIsEmpty says.
func (f *Cuckoo) Stats(ctx context.Context) (s CuckooStats, err error) {
	defer fault.OnlyReads(&err)
	ctx = f.rec.Label(ctx, "bloom.Cuckoo.Stats")
	first, last := f.rec.cellRange()
	answers, _, err := f.rec.RunForIntegers(ctx, f.rec.ReadOnlyScript(cuckooStatsScript, first, last))
	if err != nil {
		return CuckooStats{}, engine.Explain(err)
	}
	if len(answers) == 0 {
		return CuckooStats{}, engine.WrongCount(0, 5)
	}
	header, err := engine.FieldWord(answers[0])
	if err != nil {
		return CuckooStats{}, err
	}
	if err := f.rec.CompareNear(header); err != nil {
		return CuckooStats{}, err
	}
	if len(answers) != 5 {
		return CuckooStats{}, engine.WrongCount(len(answers), 5)
	}
	word, err := engine.FieldWord(answers[1])
	if err != nil {
		return CuckooStats{}, err
	}
	if err := f.rec.CompareKind(word); err != nil {
		return CuckooStats{}, err
	}
	if answers[2].Int64 < 0 || answers[3].Int64 < 0 {
		return CuckooStats{}, engine.ErrNegative
	}
	items, ones := cuckooWord(word)
	s = cuckooStatsOf(f.rec.geo, f.cfg.Capacity, items)
	s.Bytes, s.TTL = uint64(answers[3].Int64), pttl.Duration(answers[4].Int64)
	s.Damaged = uint64(answers[2].Int64)%(1<<cuckooOnesBits) != ones
	return s, nil
}

// cuckooStatsOf works out what follows from the number of items.
func cuckooStatsOf(g Geometry, capacity, items uint64) CuckooStats {
	buckets := g.Bits / wordBits
	if capacity == 0 {
		capacity = cells.CuckooCapacity(buckets, g.Hashes)
	}
	return CuckooStats{
		Geometry: g, Seeded: g.Seed != 0, Items: items, Capacity: capacity,
		Fill:   math.Min(1, float64(items)/float64(buckets*uint64(g.Hashes))),
		FPRate: g.FalsePositiveRate(capacity), LiveFPRate: g.FalsePositiveRate(items),
	}
}

// String draws the state for a person, in a few lines without the key:
//
//	cuckoo           56,657 bits (6.9 KiB), k=5, cuckoo
//	fill             [###################.] 93.5%
//	items            5,000 of 5,000
//	false positives  1 in 110 now, 1 in 110 at capacity
//	stored           7,107 bytes, no expiry
//
// A damaged filter has one line more.
func (s CuckooStats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cuckoo           %v\n", s.Geometry)
	fmt.Fprintf(&b, "fill             %s %.1f%%\n", bar(s.Fill), 100*s.Fill)
	fmt.Fprintf(&b, "items            %s of %s\n", human.Count(s.Items), human.Count(s.Capacity))
	fmt.Fprintf(&b, "false positives  %s now, %s at capacity\n",
		human.OneIn(s.LiveFPRate), human.OneIn(s.FPRate))
	fmt.Fprintf(&b, "stored           %s bytes, %s", human.Count(s.Bytes), expiry(s.TTL))
	if s.Damaged {
		b.WriteString("\ndamaged          something else wrote to the table: members may be denied")
	}
	return b.String()
}
