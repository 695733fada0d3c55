package bloom

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"sync/atomic"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

// A Sharded is a filter spread over several records, and over several databases
// if it has several clients.
//
// Shard i is the record KEY:i in the database of clients[i mod len(clients)].
// All programs must pass clients for the same databases in the same order. A
// write creates nothing: call [Sharded.Create] first. If a shard is missing,
// only the answer about its items is [ErrNotFound].
//
// A Sharded does not grow, and has no TTL. To change the number of shards, see
// MIGRATING.md.
//
// A Sharded is safe for concurrent use and must not be copied. Make it with [NewSharded]
// or [OpenSharded].
type Sharded struct {
	cfg       ShardedConfig
	shards    []Filter
	databases []database
	homes     []int // of each shard, its database
	lanes     []int // of each shard, its place in its database
}

// A database is a client and its shards.
type database struct {
	client *upstash.Client
	shards []int
}

// NewSharded makes a handle for the shards of key.
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
		return nil, configErrorf("ShardedConfig.Shards", "is %d, and there are %d clients: some database would"+
			" have no shard", cfg.Shards, len(clients))
	}
	s := &Sharded{cfg: cfg, shards: make([]Filter, cfg.Shards), homes: make([]int, cfg.Shards), lanes: make([]int, cfg.Shards)}
	shapes, shard := make([]shardShape, cfg.Shards), cfg.ofShard()
	for i := range s.shards {
		shapes[i] = shardShape{cfg.Shards, i, plain{geo, format.HeaderBits}}
		f, c := &s.shards[i], clients[i%len(clients)]
		f.cfg = shard
		f.init(c, key+":"+strconv.Itoa(i), shard, geo, KindShard, &shapes[i].plain, &shapes[i])
		s.place(c, i)
	}
	return s, nil
}

// place notes in which database a shard is.
func (s *Sharded) place(c *upstash.Client, shard int) {
	n := slices.IndexFunc(s.databases, func(d database) bool { return d.client == c })
	if n < 0 {
		n = len(s.databases)
		s.databases = append(s.databases, database{client: c})
	}
	d := &s.databases[n]
	s.homes[shard], s.lanes[shard] = n, len(d.shards)
	d.shards = append(d.shards, shard)
}

// ShardOf returns the number of an item's shard, from 0.
func (s *Sharded) ShardOf(item string) int {
	_, y := cells.Digest(item, s.Geometry().Seed)
	return int(y >> 32 * uint64(len(s.shards)) >> 32)
}

// Add puts an item into its shard and reports whether it was new.
func (s *Sharded) Add(ctx context.Context, item string) (added bool, err error) {
	i := s.ShardOf(item)
	f := &s.shards[i]
	added, err = f.rec.Write(f.rec.Label(ctx, "bloom.Sharded.Add"), item, engine.Options{})
	return added, s.named(i, err)
}

// Exists reports whether the item is in its shard, or a false positive.
func (s *Sharded) Exists(ctx context.Context, item string) (bool, error) {
	i := s.ShardOf(item)
	f := &s.shards[i]
	found, err := f.exists(f.rec.Label(ctx, "bloom.Sharded.Exists"), item, engine.Options{})
	return found, s.named(i, err)
}

// named adds the number of the shard to its error.
func (s *Sharded) named(shard int, err error) error {
	if err == nil {
		return nil
	}
	if fault.Is(err, ErrNotFound) {
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
	n, err := s.cfg.MinShards(engine.MostPlansRecord)
	if err != nil || bytes <= engine.MostPlansRecord {
		return ""
	}
	return fmt.Sprintf("; with %d Shards none is above the %s bytes of most plans", n, human.Count(engine.MostPlansRecord))
}

// A missingError is ErrNotFound of some shards, or a graver error beside which
// they are missing.
type missingError struct {
	shards []int
	of     int  // 0 if it is not known
	filled bool // others hold items
	graver bool
	err    error
}

// MissingShards returns which shards are missing, by the error of a [Sharded],
// and of how many: 0 if that is not known. They are all that the call has met,
// even if its error is graver than [ErrNotFound]. Of another error it returns
// none.
func MissingShards(err error) (missing []int, of int) {
	if e, ok := fault.As[*missingError](err); ok {
		return slices.Clone(e.shards), e.of
	}
	return nil, 0
}

func (e *missingError) Error() string {
	if e.graver {
		return e.err.Error()
	}
	text := "bloom: shard " + human.List(e.shards, 8)
	if e.of > 0 {
		text += fmt.Sprintf(" of %d", e.of)
	}
	if e.filled {
		return text + " not found: evicted, deleted, or in another database because the clients had another" +
			" order, while others hold items; pass the clients in the order of the first Create, or" +
			" Delete the rest, Create, and add all items again"
	}
	return text + " not found: never created, expired or evicted, or the clients have another order than" +
		" they had when it was created; see Sharded.Create"
}

func (e *missingError) Is(target error) bool { return target == ErrNotFound && !e.graver }
func (e *missingError) Unwrap() error        { return e.err }

// Geometry returns that of one shard.
func (s *Sharded) Geometry() Geometry { return s.shards[0].rec.geo }

func (s *Sharded) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "bloom.Sharded(%d shards, each %v)", len(s.shards), s.Geometry())
}

// eachDatabase calls do for all databases at once.
func (s *Sharded) eachDatabase(do func(n int, d *database)) {
	p := engine.NewPool(len(s.databases))
	for n := range s.databases {
		p.Run(func() bool { return false }, func() { do(n, &s.databases[n]) })
	}
	p.Wait()
}

// firstOf returns the first of some errors. If something was done beside them,
// or may have been, upstash.SafeToRetry is false of it.
func firstOf(errs []error, done bool) (first error) {
	for _, err := range errs {
		if err == nil {
			continue
		}
		done = done || !upstash.SafeToRetry(err)
		if first == nil {
			first = err
		}
	}
	if first != nil && done {
		return fault.MayHaveRun(first)
	}
	return first
}

// A ShardedConfig says how large a [Sharded] is.
type ShardedConfig struct {
	_ struct{}

	// Capacity is the number of distinct items in all shards together, at least
	// 1.
	Capacity uint64

	// FPRate is the false positive rate of the whole at Capacity: from 1e-9 to
	// below 1.
	FPRate float64

	// Shards is the number of shards, from 1 to 256, and no less than there are
	// clients. Each must fit into a record: see [ShardedConfig.MinShards].
	Shards int

	// Seed of the hash: see [Config.Seed].
	Seed uint64 `json:"-"`

	// ReadsNearest is [Config.ReadsNearest] for each of the databases.
	ReadsNearest bool
}

// maxShards bounds what one call asks of a database. The format has room for
// 4,095.
const maxShards = 256

// Geometry checks the whole config and returns the geometry of one shard.
func (c ShardedConfig) Geometry() (Geometry, error) {
	if c.Shards < 1 || c.Shards > maxShards {
		return Geometry{}, configErrorf("ShardedConfig.Shards", "is %d: it must be from 1 to %d", c.Shards, maxShards)
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

// MinShards returns the least number of shards whose strings are no longer than
// maxBytes: most plans allow 100,000,000. If even 256 would be too long, the
// error is a [*ConfigError].
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
	return 0, configErrorf("ShardedConfig.Capacity", "is %s, and at FPRate %v a shard of %d takes %s bytes, more than %s:"+
		" lower it, or raise FPRate", human.Count(c.Capacity), c.FPRate, maxShards,
		human.Count(g.Bytes(LayoutHeaded)), human.Count(maxBytes))
}

func (c ShardedConfig) tooLarge() error {
	advice := fmt.Sprintf("lower it, or raise FPRate: %d shards are the most, and do not hold it either", maxShards)
	most := c
	most.Shards = maxShards
	if c.Shards < maxShards {
		if _, err := most.Geometry(); err == nil {
			advice = "lower it, raise FPRate, or use more Shards"
		}
	}
	return configErrorf("ShardedConfig.Capacity", "is %s, and at FPRate %v a shard of %d does not fit into a Redis"+
		" string: %s", human.Count(c.Capacity), c.FPRate, c.Shards, advice)
}

func (c ShardedConfig) ofShard() Config {
	cfg := Config{
		FPRate: c.FPRate, Seed: c.Seed, MustExist: true, ReadsNearest: c.ReadsNearest,
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

func (c ShardedConfig) Format(s fmt.State, _ rune) { describe(s, c) }

// A shardShape is the shape of one shard: it is stored as a plain filter, and
// its word says which of how many it is.
type shardShape struct {
	count, index int
	plain
}

func (s *shardShape) KindWord(*engine.Request) int64 {
	return format.ShardWord{Count: s.count, Index: s.index}.Word()
}

func (s *shardShape) MutableBits() uint { return format.ShardFreeBits }

// differingField: the index is part of the key. A shard with another index was
// renamed.
func (s *shardShape) differingField(word int64) string {
	if format.ParseShard(word).Count != s.count {
		return "Shards"
	}
	return "key"
}

func (s *shardShape) length() uint64 { return s.geo.Bytes(LayoutHeaded) }

func (s *shardShape) howToShorten() string {
	return "use more Shards, lower the Capacity, raise the FPRate, or choose a larger plan"
}

// AddAll adds items and reports for each whether it was new, by requests to all
// databases at once. If a database or a shard fails, the others still answer
// beside the [*BatchError]. If a shard was made anew between two of its requests,
// that wraps [ErrRecreated], and all items that were sent are [ItemUnknown].
func (s *Sharded) AddAll(ctx context.Context, items []string) ([]bool, error) {
	return s.batch(s.shards[0].rec.Label(ctx, "bloom.Sharded.AddAll"), items, true)
}

// ExistsAll is [Sharded.Exists] for many items, with the requests of AddAll.
func (s *Sharded) ExistsAll(ctx context.Context, items []string) ([]bool, error) {
	return s.batch(s.shards[0].rec.Label(ctx, "bloom.Sharded.ExistsAll"), items, false)
}

// batch runs one batch for each database.
func (s *Sharded) batch(ctx context.Context, items []string, adding bool) ([]bool, error) {
	if len(items) == 0 {
		return nil, nil
	}
	of := make([][]string, len(s.databases)) // the items of each database
	index := make([][]int, len(s.databases))
	for i, item := range items {
		n := s.homes[s.ShardOf(item)]
		of[n] = append(of[n], item)
		index[n] = append(index[n], i)
	}
	answers := make([]bool, len(items))
	states := make([]ItemState, len(items))
	batches := make([]*engine.Batch, len(s.databases))
	s.eachDatabase(func(n int, d *database) {
		if len(of[n]) == 0 {
			return
		}
		b := s.batchOf(d, of[n], adding)
		b.Run(ctx)
		for m, i := range index[n] {
			answers[i], states[i] = b.Answers[m], ItemState(b.States[m])
		}
		batches[n] = b
	})
	err := s.errorOf(batches)
	if err == nil {
		return answers, nil
	}
	if fault.Is(err, ErrRecreated) { // a shard is made anew with those of other databases
		for i, state := range states {
			if state != ItemNotDone {
				answers[i], states[i] = false, ItemUnknown
			}
		}
	}
	return answers, &BatchError{Items: states, Err: err, reads: !adding}
}

// errorOf returns the gravest error of the batches of all databases. It knows all
// shards that are missing.
func (s *Sharded) errorOf(batches []*engine.Batch) (err error) {
	var missing []int
	fatal, mayHaveRun := false, false
	for n, b := range batches {
		if b == nil || b.Err == nil {
			continue
		}
		mayHaveRun = mayHaveRun || !upstash.SafeToRetry(b.Err)
		if engine.Graver(b.Err, b.Fatal, err, fatal) {
			err, fatal = b.Err, b.Fatal
		}
		for lane := range b.Lanes {
			if b.Lanes[lane].Missing {
				missing = append(missing, s.databases[n].shards[lane])
			}
		}
	}
	err = s.withMissing(err, missing)
	if mayHaveRun {
		err = fault.MayHaveRun(err)
	}
	return err
}

// withMissing has an error know all shards that are missing.
func (s *Sharded) withMissing(err error, missing []int) error {
	if err == nil || len(missing) == 0 {
		return err
	}
	slices.Sort(missing)
	return &missingError{shards: missing, of: len(s.shards), graver: !fault.Is(err, ErrNotFound), err: err}
}

func (s *Sharded) setBatch(bytes, parallel int) {
	for i := range s.shards {
		s.shards[i].setBatch(bytes, parallel)
	}
}

func (s *Sharded) batchOf(d *database, items []string, adding bool) *engine.Batch {
	b := s.shards[d.shards[0]].newBatch(items, adding, engine.Options{})
	b.Lanes = make([]engine.Lane, len(d.shards))
	for n, i := range d.shards {
		b.Lanes[n].Rec = &s.shards[i].rec.Record
	}
	b.LaneOf = func(item string) int { return s.lanes[s.ShardOf(item)] }
	b.Name = func(lane int, err error) error { return s.named(d.shards[lane], err) }
	return b
}

// OpenSharded makes a handle for an existing filter, by shard 0 in the database
// of the first client.
func OpenSharded(ctx context.Context, clients []*upstash.Client, key string, cfg ...ShardedConfig,
) (_ *Sharded, err error) {
	defer fault.OnlyReads(&err)
	if len(clients) == 0 {
		return newSharded(nil, key, ShardedConfig{}, Geometry{})
	}
	if err := checkTarget(clients[0], key); err != nil {
		return nil, err
	}
	want, seen, err := openedState(ctx, clients[0], key+":0", cfg)
	if fault.Is(err, ErrNotFound) {
		return nil, &missingError{shards: []int{0}, err: err}
	}
	if err != nil {
		return nil, err
	}
	if err := seen.isOf(KindShard, want.Seed); err != nil {
		return nil, err
	}
	if err := seen.CheckWord(); err != nil {
		return nil, err
	}
	w := format.ParseShard(seen.Word)
	if w.Index != 0 {
		return nil, format.ErrHeaderBits
	}
	count := w.Count
	if want.Shards != 0 && want.Shards != count {
		return nil, seen.differsIn("Shards", want.Seed)
	}
	want.Shards = count
	geo, err := seen.sizedBy(want, want.Seed)
	if err != nil {
		return nil, err
	}
	s, err := newSharded(clients, key, want, geo)
	if err != nil {
		return nil, err
	}
	for i := range s.shards {
		s.shards[i].opened(format.RateIn(seen.Birth))
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

// Stats reads the state of all shards, but not at one moment. If a shard cannot
// be read, the error says which.
func (s *Sharded) Stats(ctx context.Context) (Stats, error) {
	ctx = s.shards[0].rec.Label(ctx, "bloom.Sharded.Stats")
	g, shards := s.Geometry(), uint64(len(s.shards))
	out := Stats{
		Kind: KindShard, Geometry: g, Seeded: g.Seed != 0, Capacity: s.cfg.Capacity, MaxParts: len(s.shards),
	}
	parts := make([]Part, len(s.shards))
	err := s.eachShard(ctx, func(ctx context.Context, i int) (err error) {
		defer fault.OnlyReads(&err)
		one, err := s.shards[i].counted(ctx, true)
		if err != nil {
			return err
		}
		parts[i] = partOf(g, one.Capacity, one.SetBits)
		parts[i].Bytes = one.Bytes
		return nil
	})
	if err != nil {
		return Stats{}, err
	}
	out.addUp(parts)
	room := parts[0].Capacity
	for _, p := range parts {
		room = min(room, p.Capacity)
		out.Bytes += p.Bytes
		out.LiveFPRate += p.LiveFPRate / float64(shards)
	}
	if out.Capacity == 0 {
		out.Capacity = shardsHold(room, shards)
	}
	if out.Capacity != 0 {
		out.FPRate = g.FalsePositiveRate((out.Capacity + shards - 1) / shards)
	}
	return out, nil
}

// Cardinality is the sum of [Filter.Cardinality] over the shards.
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
		calls := engine.NewPool(s.shards[0].parallel)
		var failed atomic.Bool
		for _, i := range d.shards {
			if !calls.Run(failed.Load, func() {
				errs[i] = s.named(i, do(ctx, i))
				if errs[i] != nil {
					failed.Store(true)
				}
			}) {
				break
			}
		}
		calls.Wait()
	})
	return s.firstOfShards(errs, false)
}

// firstOfShards is firstOf for an error of each shard. It knows all that are
// missing.
func (s *Sharded) firstOfShards(errs []error, done bool) error {
	var missing []int
	for i, err := range errs {
		if fault.Is(err, ErrNotFound) {
			missing = append(missing, i)
		}
	}
	return s.withMissing(firstOf(errs, done), missing)
}

// shardsHold returns the Capacity of all shards if each holds room items, its
// margin among them. It is 0 if room is.
func shardsHold(room, shards uint64) uint64 {
	// shardCapacity(mean, 1) grows with the mean.
	mean := sort.Search(int(min(room, cells.MaxBlockedItems)), func(n int) bool {
		return shardCapacity(uint64(n)+1, 1) > room
	})
	return uint64(mean) * shards
}
