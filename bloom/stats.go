package bloom

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// Stats is the state of a filter at one moment. It is plain data.
type Stats struct {
	// Geometry and Layout are the handle's.
	Geometry Geometry
	Layout   Layout
	// Bytes is the length of the Redis string as it stands. A filter that was
	// not made by Create grows to its full length as items are added.
	Bytes uint64
	// SetBits is how many cells are set, Fill their share, 0 to 1.
	SetBits uint64
	Fill    float64
	// Items is the estimated number of distinct items; where Saturated, a
	// lower bound.
	Items uint64
	// Capacity is what the filter was sized for: Config.Capacity, or where
	// that is not known (Open), the number of items at which half of the cells
	// are set. FPRate is the false positive rate there.
	Capacity uint64
	FPRate   float64
	// LiveFPRate is the false positive rate now.
	LiveFPRate float64
	// Saturated is true where every cell is set: every item is found.
	Saturated bool
	// TTL is the time until the filter expires, 0 where it does not.
	TTL time.Duration
}

// Stats reads the state of the filter: one request, four commands that run as
// one transaction. The server reads the whole string, about 1 ms a megabyte.
// A filter that is not there is ErrNotFound, whatever MissingIsEmpty says.
func (f *Filter) Stats(ctx context.Context) (Stats, error) {
	replies, err := f.inspect(ctx, upstash.Cmd("STRLEN", f.key), upstash.Cmd("PTTL", f.key))
	if err != nil {
		return Stats{}, err
	}
	n, err := integers(replies)
	if err != nil {
		return Stats{}, err
	}
	setBits, length, pttl := n[0], n[1], n[2]
	if setBits < 0 || length < 0 {
		return Stats{}, errNegative
	}
	if pttl == int64(upstash.NoKey) {
		return Stats{}, ErrNotFound
	}
	s := f.stats(uint64(setBits))
	s.Bytes = uint64(length)
	s.TTL = time.Duration(max(pttl, 0)) * time.Millisecond
	return s, nil
}

// Cardinality estimates how many distinct items were added, from the number of
// set bits (Swamidass and Baldi 2007). Its error is a few in a thousand up to
// the capacity. One request, two commands. A filter with every bit set is
// ErrSaturated.
func (f *Filter) Cardinality(ctx context.Context) (uint64, error) {
	replies, err := f.inspect(ctx)
	if err != nil {
		return 0, f.missing(err)
	}
	n, err := integers(replies)
	if err != nil {
		return 0, err
	}
	if n[0] < 0 {
		return 0, errNegative
	}
	s := f.stats(uint64(n[0]))
	if s.Saturated {
		return 0, ErrSaturated
	}
	return s.Items, nil
}

// inspect verifies the header and counts the cells, and runs more commands in
// the same transaction. The replies begin with the count's.
func (f *Filter) inspect(ctx context.Context, more ...upstash.Command) ([]upstash.Reply, error) {
	if !f.headed() {
		return f.client.MultiExec(ctx, append([]upstash.Command{upstash.Cmd("BITCOUNT", f.key)}, more...)...)
	}
	body := strconv.Itoa(headerBits / 8)
	// BITFIELD_RO in any case: a token that may not write would have the whole
	// transaction refused for a BITFIELD.
	header := upstash.NewBitField(f.key).Get(headerType, 0).ReadOnly()
	cmds := append([]upstash.Command{header.Command(), upstash.Cmd("BITCOUNT", f.key, body, "-1")}, more...)
	replies, err := f.client.MultiExec(ctx, cmds...)
	if err == nil {
		err = replies[0].Err()
	}
	if err != nil {
		return nil, wrongType(err)
	}
	words, err := replies[0].Ints(nil)
	if err != nil {
		return nil, err
	}
	if len(words) != 1 {
		return nil, fmt.Errorf("bloom: BITFIELD_RO: %w: %d answers to 1 operation",
			upstash.ErrBadResponse, len(words))
	}
	word, err := headerWord(words[0])
	if err != nil {
		return nil, err
	}
	// Not remembered: a replica may have answered, from before the last write.
	return replies[1:], f.compare(word)
}

// stats works out everything that follows from the number of set bits.
func (f *Filter) stats(setBits uint64) Stats {
	m, k := f.geo.Bits, f.geo.Hashes
	setBits = min(setBits, m)
	s := Stats{
		Geometry: f.geo, Layout: f.cfg.Layout, SetBits: setBits, Saturated: setBits == m,
		Fill: float64(setBits) / float64(m), LiveFPRate: LiveFalsePositiveRate(m, k, setBits),
		Capacity: f.cfg.Capacity,
	}
	if s.Capacity == 0 {
		s.Capacity = uint64(float64(m) * math.Ln2 / float64(k))
	}
	s.FPRate = FalsePositiveRate(m, k, s.Capacity)
	if s.Saturated {
		setBits = m - 1
	}
	s.Items = uint64(math.Round(EstimateItems(m, k, setBits)))
	return s
}

var errNegative = fmt.Errorf("bloom: %w: a negative count", upstash.ErrBadResponse)

func integers(replies []upstash.Reply) ([]int64, error) {
	out := make([]int64, len(replies))
	for i, r := range replies {
		n, err := r.Int64()
		if err != nil {
			return nil, wrongType(err)
		}
		out[i] = n
	}
	return out, nil
}
