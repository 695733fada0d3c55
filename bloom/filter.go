package bloom

import (
	"context"
	"fmt"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/bloom/internal/opsize"
	"github.com/upbloom/upbloom/upstash"
)

// A Filter is a handle to one Bloom filter in Redis.
//
// A Filter is safe for concurrent use and must not be copied. Make it with
// [New] or [Open].
type Filter struct {
	handle
	cfg Config
}

// New makes a handle for the filter at key, and sends nothing.
func New(c *upstash.Client, key string, cfg Config) (*Filter, error) {
	geo, err := geometryFor(c, key, cfg)
	if err != nil {
		return nil, err
	}
	return newFilter(c, key, cfg, geo), nil
}

func newFilter(c *upstash.Client, key string, cfg Config, geo Geometry) *Filter {
	f := &Filter{cfg: cfg}
	f.init(c, key, cfg, geo, KindFilter, &plain{geo, cfg.Layout.bodyOffset()}, nil)
	return f
}

// Stats reads the state of the filter.
func (f *Filter) Stats(ctx context.Context) (s Stats, err error) {
	defer fault.OnlyReads(&err)
	ctx = f.rec.Label(ctx, "bloom.Stats")
	return f.counted(ctx, true)
}

// Cardinality estimates how many distinct items were added. Its error is a few
// in a thousand up to the capacity, and about 1% in a filter for 1,000 items;
// with [SchemeFNV1a] it is up to 40% low. If every bit is set, the error is
// [ErrSaturated]. The nearest region of a global database answers.
func (f *Filter) Cardinality(ctx context.Context) (items uint64, err error) {
	defer fault.OnlyReads(&err)
	ctx = f.rec.Label(ctx, "bloom.Cardinality")
	s, err := f.counted(ctx, false)
	return f.itemsOf(s, err)
}

// itemsOf is the end of a Cardinality.
func (h *handle) itemsOf(s Stats, err error) (uint64, error) {
	if err != nil {
		return 0, h.allowMissing(err)
	}
	if s.Saturated {
		return 0, ErrSaturated
	}
	return s.Items, nil
}

// counted returns what follows from the number of set cells, and how the string is
// stored if stored is true. A shard has no TTL.
func (f *Filter) counted(ctx context.Context, stored bool) (Stats, error) {
	reads := []upstash.Command{f.rec.countCells()}
	if stored {
		reads = append(reads, upstash.Cmd("STRLEN", f.rec.Key))
	}
	c, err := f.rec.ReadCounts(ctx, stored && f.rec.kind != KindShard, reads...)
	if err != nil {
		return Stats{}, err
	}
	s := f.stats(c.N[0], c.Birth)
	if stored {
		s.Bytes, s.TTL = c.N[1], c.TTL
	}
	return s, nil
}

// stats takes the capacity from the Config, or else from the rate that a birth
// number has in its low bits. If that is not known, it is 0.
func (f *Filter) stats(setBits uint64, birth int64) Stats {
	capacity := f.cfg.Capacity
	if capacity == 0 {
		capacity = f.rec.geo.holds(format.RateIn(birth), 1)
	}
	return statsOf(f.rec.kind, f.rec.geo, capacity, setBits)
}

// Open makes a handle for an existing filter and reads its geometry from its
// header: a reader needs only the key. A Config of [LayoutBare] is a
// [*ConfigError].
//
// The primary of a global database answers, whatever ReadsNearest says, or the
// nearest region if the client is a read-only one, if the token may not run
// BITFIELD or if the database is full.
func Open(ctx context.Context, c *upstash.Client, key string, cfg ...Config) (_ *Filter, err error) {
	defer fault.OnlyReads(&err)
	want, seen, err := openedState(ctx, c, key, cfg)
	if err != nil {
		return nil, err
	}
	got := seen.Header
	if there := geometryOf(got, want.Seed); Kind(got.Kind) == KindFilter && !there.Scheme.oneBit() {
		return nil, fmt.Errorf("%w of one-bit cells, but %v: use the type that wrote it",
			ErrNotFilter, there)
	}
	if err := seen.isOf(KindFilter, want.Seed); err != nil {
		return nil, err
	}
	if want.Scheme == 0 {
		want.Scheme = Scheme(got.Scheme)
	}
	if !want.isSized() {
		want.Bits, want.Hashes = got.Bits, got.Hashes
	}
	geo, err := want.Geometry()
	if err != nil {
		return nil, err
	}
	if err := seen.isSized(geo); err != nil {
		return nil, err
	}
	f := newFilter(c, key, want, geo)
	f.opened(format.RateIn(seen.Birth))
	return f, nil
}

// Create makes the filter with its whole string and its TTL, and reports
// whether it did: false for a filter of the same geometry. A process that gets
// true may end before it acts on that: to fill a filter, use [Filter.Load]
// alone, without [Config.MustExist]. If the token may not set the TTL, it returns
// true and [ErrNoTTL].
func (f *Filter) Create(ctx context.Context) (created bool, err error) {
	ctx = f.rec.Label(ctx, "bloom.Create")
	if !f.rec.Headed() {
		return false, fault.Untouched(configErrorf("Layout",
			"is bare: only a filter with a header can be created; just Add"))
	}
	return f.create(ctx, format.HeaderBits+f.rec.geo.Bits, 0)
}

// Expire makes the filter expire after ttl, at least 1 ms, in place of any TTL,
// and reports whether there was a filter. No [Config.TTL] changes it
// afterwards. If a retry finds no filter, the error wraps
// [upstash.ErrMaybeRepeated]. A retry overwrites what others set in between.
func (f *Filter) Expire(ctx context.Context, ttl time.Duration) (bool, error) {
	return f.rec.Expire(f.rec.Label(ctx, "bloom.Expire"), ttl)
}

// Persist removes the TTL and reports whether there was one. No [Config.TTL]
// sets another, unless the filter is Bare. If a retry finds no TTL, or no
// filter, the error wraps [upstash.ErrMaybeRepeated]. A retry removes what others
// set in between.
func (f *Filter) Persist(ctx context.Context) (bool, error) {
	return f.rec.Persist(f.rec.Label(ctx, "bloom.Persist"))
}

// Add puts an item into the filter and reports whether it was new: true if it
// was certainly never added to the live filter, false if it was, or if it is a
// false positive. It makes a missing filter, unless [Config.MustExist] is set.
// After an error, adding the item again is harmless, but may then answer
// "seen": see [InFilter].
//
// After a [*MismatchError] or [ErrNotFilter] the Add may have set bits in what
// is at the key. Another filter's "no" stays true; a Cuckoo denies some of its
// members; other data may have lost its first bytes, or be longer. The handle
// adds nothing more until a call finds its own filter, or none.
func (f *Filter) Add(ctx context.Context, item string) (added bool, err error) {
	ctx = f.rec.Label(ctx, "bloom.Add")
	return f.rec.Write(ctx, item, engine.Options{})
}

// Exists reports whether the item is in the filter. False without an error is
// certain, as the package's Guarantee says; true may be a false positive. A
// full database refuses look-ups: see [Config.ReadsNearest].
func (f *Filter) Exists(ctx context.Context, item string) (bool, error) {
	ctx = f.rec.Label(ctx, "bloom.Exists")
	return f.exists(ctx, item, engine.Options{})
}

func (h *handle) exists(ctx context.Context, item string, o engine.Options) (bool, error) {
	found, err := h.rec.Read(ctx, item, o)
	if found {
		return true, nil
	}
	return false, h.allowMissing(err)
}

// plain is how the items of a filter by itself, or of a shard, are written and
// read.
type plain struct {
	geo  Geometry
	base uint64 // the bit at which cell 0 starts
}

func (p *plain) AppendWrite(q *engine.Request, item string) {
	q.Pos = p.geo.Positions(q.Pos[:0], item)
	q.SetBits(p.base, q.Pos)
}

func (p *plain) AppendRead(q *engine.Request, item string) {
	if p.geo.Scheme == SchemeBlocked {
		getInAreas(q, p.geo, []format.Area{{Offset: p.base, Words: p.geo.Bits / wordBits}}, item)
		return
	}
	q.Pos = p.geo.Positions(q.Pos[:0], item)
	q.GetBits(p.base, q.Pos)
}

func (p *plain) ItemBytes(write bool) int {
	last := format.HeaderBits + p.geo.Bits
	if write {
		return p.geo.Hashes * opsize.Set("u1", last, 1)
	}
	if p.geo.Scheme == SchemeBlocked {
		return p.geo.Hashes / 2 * opsize.Get(engine.U53, last)
	}
	return p.geo.Hashes * opsize.Get("u1", last)
}

func (*plain) JudgeWrite(q *engine.Request, answers []upstash.NullInt64) error {
	return q.JudgeSetBits(answers)
}

func (p *plain) JudgeRead(q *engine.Request, answers []upstash.NullInt64) error {
	if p.geo.Scheme == SchemeBlocked {
		return q.JudgeReadWords(answers)
	}
	return q.JudgeReadBits(answers)
}
