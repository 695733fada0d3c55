package bloom

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

// A Sharded is a filter spread over several records, and over several databases
// if it has several clients. Use it for what is too large for one record, or
// for one database. The promises of an item are those of a [Filter]: a "no" is
// true, and exactly one of concurrent Adds is told "new".
//
// Make a Sharded with [NewSharded] or [OpenSharded]; the zero value is not
// usable. It is a handle as a [Filter] is: any number of them, in any number of
// processes, can work on the same shards. It is safe for concurrent use and
// must not be copied.
//
// Shard i is the record KEY:i in the database of clients[i mod len(clients)].
// All programs must pass clients for the same databases in the same order. The
// hash of an item chooses its shard. A write creates nothing: call
// [Sharded.Create] first. If a shard is missing, because it was evicted or
// because the clients have another order, the answer about its items is
// [ErrNotFound], and the other shards still answer.
//
// An item takes the bits of a Filter and a little more, because each shard has
// room for its share and three standard deviations: at 1 in 100, 10.75 bits and
// 0.02% more in 16 shards for 4 billion items, 10% more in shards for 1,000.
//
// A Sharded does not grow and has no WarnFill: ask [ShardedStats.OverCapacity]
// now and then. [Sharded.Load] knows only whether a shard that it loaded is over
// its own room.
//
// The number of shards is fixed. To have more, make another Sharded under
// another key, add to both, fill it from the source of the items, and change over
// to it, by the steps that [Filter.Replace] names. An Add to each takes the place
// of AddIn.
type Sharded struct {
	cfg       ShardedConfig
	shards    []Filter
	databases []database
	lanes     []int // of each shard, its place in its database
}

// A database is a client and its shards.
type database struct {
	client *upstash.Client
	shards []int
}

// NewSharded makes a handle for the filter at key, with shard i in the database
// of clients[i mod len(clients)]. A client named twice has twice as many
// shards. NewSharded checks the [ShardedConfig], and returns a [*ConfigError]
// if it is wrong. It sends nothing. A handle takes about 300 bytes a shard; if
// a program serves many requests, make it once.
func NewSharded(clients []*upstash.Client, key string, cfg ShardedConfig) (*Sharded, error) {
	geo, err := cfg.Geometry()
	if err != nil {
		return nil, err
	}
	return newSharded(clients, key, cfg, geo)
}

func newSharded(clients []*upstash.Client, key string, cfg ShardedConfig, geo Geometry) (*Sharded, error) {
	if len(clients) == 0 {
		return nil, fault.Errorf("bloom: %w: there are no clients: pass one for each database",
			upstash.ErrArgument)
	}
	for i, c := range clients {
		if err := checkTarget(c, key); err != nil {
			return nil, fault.Errorf("bloom: client %d: %w", i, err)
		}
	}
	if cfg.Shards < len(clients) {
		return nil, shardedErrorf("Shards", "is %d, and there are %d clients: some database would"+
			" have no shard", cfg.Shards, len(clients))
	}
	s := &Sharded{cfg: cfg, shards: make([]Filter, cfg.Shards), lanes: make([]int, cfg.Shards)}
	shapes := make([]shardShape, cfg.Shards)
	for i := range s.shards {
		shapes[i] = shardShape{cfg.Shards, i, plain{geo, headerBits}}
		f, c := &s.shards[i], clients[i%len(clients)]
		f.init(c, key+":"+strconv.Itoa(i), cfg.ofShard(), geo, KindShard)
		f.rec.storedBy(&shapes[i].plain, &shapes[i])
		s.place(c, i)
	}
	return s, nil
}

// place notes in which database a shard is.
func (s *Sharded) place(c *upstash.Client, shard int) {
	for i := range s.databases {
		if d := &s.databases[i]; d.client == c {
			s.lanes[shard] = len(d.shards)
			d.shards = append(d.shards, shard)
			return
		}
	}
	s.databases = append(s.databases, database{c, []int{shard}})
}

// ShardOf returns the number of an item's shard, from 0 up to, but without,
// [ShardedConfig.Shards]. The high 32 bits of the low half of the item's hash
// choose it.
func (s *Sharded) ShardOf(item string) int {
	_, y := cells.Digest(item, s.Geometry().Seed)
	return int(y >> 32 * uint64(len(s.shards)) >> 32)
}

// Add puts an item into its shard and reports whether it was new, with the
// answers and errors of [Filter.Add] with MustExist: if the shard is missing,
// the error is [ErrNotFound], and nothing was written. It is one request and
// three billed commands.
func (s *Sharded) Add(ctx context.Context, item string) (added bool, err error) {
	i := s.ShardOf(item)
	f := &s.shards[i]
	added, err = f.add(f.rec.Label(ctx, "bloom.Sharded.Add"), item, nil)
	return added, s.named(i, err)
}

// Exists reports whether the item is in its shard, with the promises of
// [Filter.Exists]. It is one request and one billed command. If the shard is
// missing, the error is [ErrNotFound], which is not a "no". By default a full
// database refuses it: see [Reads].
func (s *Sharded) Exists(ctx context.Context, item string) (bool, error) {
	i := s.ShardOf(item)
	f := &s.shards[i]
	found, err := f.exists(f.rec.Label(ctx, "bloom.Sharded.Exists"), item, nil)
	return found, s.named(i, err)
}

// named adds the number of the shard to its error.
func (s *Sharded) named(shard int, err error) error {
	switch {
	case err == nil:
		return nil
	case fault.Is(err, ErrNotFound):
		return &missingError{shards: []int{shard}, of: len(s.shards), err: err}
	}
	if large, ok := fault.As[*RecordTooLargeError](err); ok {
		large.advice += s.fitting(large.Bytes)
	}
	return fault.Errorf("bloom: shard %d of %d: %w", shard, len(s.shards), err)
}

// fitting says how many shards suit most plans, if shards of so many bytes do
// not.
func (s *Sharded) fitting(bytes uint64) string {
	n, err := s.cfg.MinShards(mostPlansRecord)
	if err != nil || bytes <= mostPlansRecord {
		return ""
	}
	return fmt.Sprintf("; with %d Shards none is above the %s bytes of most plans", n, human.Count(mostPlansRecord))
}

// A missingError is ErrNotFound of some shards.
type missingError struct {
	shards []int
	of     int  // 0 if it is not known
	filled bool // others hold items
	err    error
}

func (e *missingError) Error() string {
	const most = 8 // that are named
	var b strings.Builder
	b.WriteString("bloom: shard ")
	for i, shard := range e.shards[:min(most, len(e.shards))] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(shard))
	}
	if more := len(e.shards) - most; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	if e.of > 0 {
		fmt.Fprintf(&b, " of %d", e.of)
	}
	b.WriteString(" not found: ")
	if e.filled {
		b.WriteString("evicted, deleted, or in another database because the clients had another" +
			" order, while others hold items; pass the clients in the order of the first Create, or" +
			" Delete the rest, Create, and add all items again")
	} else {
		b.WriteString("never created, expired or evicted, or the clients have another order than" +
			" they had when it was created; see Sharded.Create")
	}
	return b.String()
}

func (e *missingError) Is(target error) bool { return target == ErrNotFound }
func (e *missingError) Unwrap() error        { return e.err }

// Geometry returns that of one shard; all are alike.
func (s *Sharded) Geometry() Geometry { return s.shards[0].rec.geo }

// String describes the handle without its key and seed.
func (s *Sharded) String() string {
	return fmt.Sprintf("bloom.Sharded(%d shards, each %v)", len(s.shards), s.Geometry())
}

// Format is String for every verb: none shows the key or the seed.
func (s *Sharded) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }
