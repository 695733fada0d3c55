package proof

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// Filters describes the handles of one history, which share a Config. It is
// plain data and travels to other processes as JSON.
type Filters struct {
	Bits           uint64 // at most MaxBits, unless it is Long
	Hashes         int
	Scheme         bloom.Scheme
	TTL            time.Duration
	MustExist      bool
	MissingIsEmpty bool
	Seed           uint64
	Reads          bloom.Reads
	// Lag lets a region lag behind the primary. Tokens makes the clients send
	// sync tokens, so that each sees its own writes.
	Lag, Tokens bool
	// Near makes the verbs those that a region answers, and the writes beside.
	Near bool
	// Bare leaves out the header. Nothing removes such a filter: an item stays
	// in it, and no answer proves which filter it is of.
	Bare bool
	// NoScripts makes the server refuse scripts. No refresh of a Mirror
	// succeeds then.
	NoScripts bool
	// Slow makes the server hold many writes longer than their clients wait.
	Slow bool
	// Crossing makes many answers to the callers of a Mirror come after later ones.
	Crossing bool
	// Twice makes parts of uploads come late, and the answers about uploads too,
	// while others remove the filter.
	Twice bool
	// MaxStale, MaxTrust, MaxCopy and StaleIfError are those of the Mirrors. A
	// MaxCopy of 0 is longer than a history.
	MaxStale, MaxTrust, MaxCopy, StaleIfError time.Duration
	// Long makes the string so long that it moves in several parts. Its items
	// share no cells: see TestLongItemsApart.
	Long bool
	// Watch has the handles look at the fill, and makes three items too many.
	Watch bool
	// Themes are the groups of verbs drawn besides the plain ones.
	Themes Theme
	AtOnce

	linger func()
}

// OnWarning sets what a WarnFill does besides.
func (f *Filters) OnWarning(linger func()) { f.linger = linger }

// Config returns the Config of the handles.
func (f Filters) Config() bloom.Config {
	cfg := bloom.Config{
		Bits: f.Bits, Hashes: f.Hashes, Scheme: f.Scheme, TTL: f.TTL, MustExist: f.MustExist,
		MissingIsEmpty: f.MissingIsEmpty, Seed: f.Seed, Reads: f.Reads, BatchParallel: f.Parallel(),
	}
	if f.Watch {
		cfg.Capacity = watchCapacity
	}
	if f.Bare {
		cfg.Layout = bloom.LayoutBare
	}
	return cfg
}

// configOf returns the Config of one of a pair of handles.
func (f Filters) configOf(parts bool) bloom.Config {
	cfg := f.Config()
	if parts {
		cfg.BatchBytes = 1
	}
	return cfg
}

// other returns the Config of a handle for another filter.
func (f Filters) other() bloom.Config { return bloom.Config{Bits: 159, Hashes: 4} }

func (f Filters) geometry() bloom.Geometry { return geometryOf(f.Config()) }

func geometryOf(cfg bloom.Config) bloom.Geometry {
	g, err := cfg.Geometry()
	if err != nil {
		panic(err) // the sizes are constants
	}
	return g
}

// A session is the handles of a client. It is safe for concurrent use.
type session struct {
	of      Filters
	client  *upstash.Client
	keys    [2]string
	handles [2]pair[bloom.Filter]        // by key
	must    *bloom.Filter                // of the first key, with MustExist
	mirror  atomic.Pointer[bloom.Mirror] // of the first key

	watch *watch // nil if the handles have no WarnFill
	// first are the first handle and the Mirror of it.
	first struct {
		filter *bloom.Filter
		mirror *bloom.Mirror
	}
}

// Open makes the handles of a process, whose client's observer must be Observe.
func (f Filters) Open(clients []*upstash.Client, key string) (Handles, error) {
	c := clients[0]
	s := &session{
		of: f, client: c, keys: [2]string{key, secondKey(key)}, watch: newWatch(f.Watch, f.linger),
	}
	for i := range s.keys {
		err := s.handles[i].fill(func(parts bool) (*bloom.Filter, error) {
			return s.handle(i, f.configOf(parts))
		})
		if err != nil {
			return nil, err
		}
	}
	if f.Bare { // it cannot be mirrored, and need not exist
		return s, nil
	}
	must := f.Config()
	must.MustExist = true
	var err error
	if s.must, err = bloom.New(c, key, must); err != nil {
		return nil, err
	}
	s.first.filter = s.handles[0].whole.Load()
	m, err := f.mirrorOf(s.first.filter)
	s.mirror.Store(m)
	s.first.mirror = m
	return s, err
}

func (f Filters) mirrorOf(of *bloom.Filter) (*bloom.Mirror, error) {
	return bloom.NewMirror(of, bloom.MirrorConfig{
		MaxStale: f.MaxStale, MaxTrust: f.MaxTrust, MaxCopy: f.MaxCopy, StaleIfError: f.StaleIfError,
	})
}

// Run makes one call.
func (s *session) Run(ctx context.Context, c Call) Result {
	a := newAttempts(c)
	return s.watch.run(ctx, a, s.watchedBy(c), func(ctx context.Context) Result {
		return a.run(ctx, c, func(ctx context.Context) (Result, error) { return s.call(ctx, c) })
	})
}

func (s *session) call(ctx context.Context, c Call) (Result, error) {
	f, other := s.handles[c.Key].at(c).Load(), s.handles[1-c.Key].whole.Load()
	switch c.Verb {
	case Open:
		return s.open(ctx, c)
	case AddSeq:
		n, err := f.AddSeq(ctx, slices.Values(c.Items))
		return Result{
			Count: int(n.New), Done: int(n.Items), Unsure: int(n.Uncertain), In: bloom.InFilter(err),
		}, err
	case AddIn, ExistsIn:
		return s.in(ctx, c)
	case Stats:
		st, err := f.Stats(ctx)
		return Result{Count: int(st.SetBits)}, err
	case Inspect:
		st, err := bloom.Inspect(ctx, s.client, s.keys[c.Key])
		if err != nil {
			return Result{}, err
		}
		g := s.of.geometry()
		fits := st.Geometry == bloom.Geometry{Bits: g.Bits, Hashes: g.Hashes, Scheme: g.Scheme} &&
			st.Seeded == (g.Seed != 0)
		return Result{Yes: []bool{fits}, Count: int(st.SetBits)}, nil
	case Overlap:
		n, err := bloom.EstimateIntersection(ctx, f, other)
		return Result{Count: int(n)}, err
	case Union:
		return none(bloom.Union(ctx, f, other))
	case Load, Merge, Restore, Replace, ReplaceWrong, Snapshot:
		return s.move(ctx, f, c)
	}
	if c.Verb.is(mirrored) {
		return s.mirrored(ctx, c)
	}
	return c.by(ctx, f, s.keys[1-c.Key])
}

// move makes a call that moves a whole filter.
func (s *session) move(ctx context.Context, f *bloom.Filter, c Call) (Result, error) {
	l, part := localOf(f.Geometry(), c.Items), bloom.MovePartBytes(partBytes)
	switch c.Verb {
	case Load:
		return loaded(f.Load(ctx, slices.Values(c.Items), part))
	case Merge:
		return loaded(f.Merge(ctx, l, part))
	case Restore:
		var stream bytes.Buffer
		if _, err := l.WriteTo(&stream); err != nil {
			return Result{}, err
		}
		return loaded(f.Restore(ctx, &stream, part))
	case Replace:
		return none(f.Replace(ctx, l, part))
	case ReplaceWrong:
		return none(f.Replace(ctx, bloom.NewLocal(geometryOf(s.of.other()))))
	}
	l, err := f.Snapshot(ctx, part)
	if err != nil {
		return Result{}, err
	}
	return Result{Cells: s.of.cellsOf(l)}, nil
}

func loaded(l bloom.LoadResult, err error) (Result, error) {
	r := Result{Yes: []bool{l.Created}, Count: int(l.NewBits), Over: l.OverCapacity}
	if l.NewBitsUnknown || err != nil {
		r.Count = -1
	}
	return r, err
}

// in adds an item to several filters, or asks them for it.
func (s *session) in(ctx context.Context, c Call) (Result, error) {
	var filters []bloom.AnyFilter
	for _, k := range c.Into {
		if k == intoMust {
			filters = append(filters, s.must)
			continue
		}
		filters = append(filters, s.handles[k].whole.Load())
	}
	do := bloom.AddIn
	if c.Verb == ExistsIn {
		do = bloom.ExistsIn
	}
	answers, err := do(ctx, c.Items[0], filters...)
	r := Result{End: Partly}
	for _, a := range answers {
		r.Yes, r.Ends = append(r.Yes, a.Yes), append(r.Ends, endOf(a.Err, causeOf(c)))
	}
	return r, err
}

// intoMust stands in Call.Into for the first key and a handle with MustExist: its
// write is a script, which a server may refuse for its form.
const intoMust = 2

func causeOf(c Call) error {
	if c.Cause == 0 {
		return nil
	}
	return causes[c.Cause-1]
}

// mirrored makes a call through a Mirror.
func (s *session) mirrored(ctx context.Context, c Call) (Result, error) {
	m := s.mirror.Load()
	switch c.Verb {
	case MirrorExists:
		return single(m.Exists(ctx, c.Items[0]))
	case MirrorAll:
		return many(m.ExistsAll(ctx, c.Items))
	case MirrorAdd:
		return single(m.Add(ctx, c.Items[0]))
	case MirrorAddAll:
		return many(m.AddAll(ctx, c.Items))
	case MirrorThrough:
		return single(m.AddThrough(ctx, c.Items[0]))
	case Refresh:
		return none(m.Refresh(ctx))
	case Crowd:
		return s.crowd(ctx, c)
	}
	panic("proof: no client does " + string(c.Verb))
}

// crowd asks a new Mirror about each item, all at once.
func (s *session) crowd(ctx context.Context, c Call) (Result, error) {
	m, err := bloom.NewMirror(s.handles[0].whole.Load(), bloom.MirrorConfig{MaxStale: s.of.MaxStale})
	if err != nil {
		return Result{}, err
	}
	r := Result{End: Partly, Yes: make([]bool, len(c.Items)), Ends: make([]End, len(c.Items))}
	errs := make([]error, len(c.Items))
	var running sync.WaitGroup
	for i, item := range c.Items {
		running.Go(func() {
			r.Yes[i], errs[i] = m.Exists(ctx, item)
			r.Ends[i] = endOf(errs[i], causeOf(c))
		})
	}
	running.Wait()
	r.Count = int(m.Stats().Refreshes)
	return r, errors.Join(errs...)
}

func localOf(g bloom.Geometry, items []string) *bloom.Local {
	l := bloom.NewLocal(g)
	for _, item := range items {
		l.Add(item)
	}
	return l
}

// stringOf returns the Redis string of a Local. A stream has it after its own
// length.
func stringOf(l *bloom.Local) []byte {
	var stream bytes.Buffer
	if _, err := l.WriteTo(&stream); err != nil {
		panic(err) // a Buffer takes all
	}
	const head = 24
	n := binary.BigEndian.Uint64(stream.Bytes()[head-8:])
	return stream.Bytes()[head : head+n]
}

// cellsOf returns the set cells of a Local.
func (f *Filters) cellsOf(l *bloom.Local) (b bits) {
	body := stringOf(l)
	g := l.Geometry()
	body = body[len(body)-int((g.Bits+7)/8):]
	isSet := func(i uint64) bool { return body[i/8]>>(7-i%8)&1 == 1 }
	if f.Long {
		return longCells(g, isSet)
	}
	for i := range g.Bits {
		if isSet(i) {
			b[i/64] |= 1 << (i % 64)
		}
	}
	return b
}

// open opens the filter. A Mirror of it is a new one.
func (s *session) open(ctx context.Context, c Call) (Result, error) {
	cfg := s.of.configOf(c.Parts)
	cfg.Capacity, cfg.Bits, cfg.Hashes, cfg.Scheme = 0, 0, 0, 0 // what the string says
	f, err := bloom.Open(ctx, s.client, s.keys[c.Key], cfg)
	r, err := adopt(s.handles[c.Key].at(c), f, err)
	if err != nil || !r.Yes[0] || c.Parts || c.Key != 0 {
		return r, err
	}
	m, err := s.of.mirrorOf(f)
	s.mirror.Store(m)
	return r, err
}

// handle makes a handle for the key, with a number. It is watched if the
// history has watched handles.
func (s *session) handle(key int, cfg bloom.Config) (*bloom.Filter, error) {
	if s.watch == nil {
		return bloom.New(s.client, s.keys[key], cfg)
	}
	number, warn := s.watch.handle(key)
	cfg.WarnFill = func(st bloom.Stats) {
		wrong := ""
		if !tooFull(s.of.geometry(), int(st.SetBits)) || st.Capacity != watchCapacity || !st.OverCapacity() ||
			st.Geometry != s.of.geometry() {
			wrong = fmt.Sprintf("a WarnFill with %d bits of %v, for a Capacity of %d",
				st.SetBits, st.Geometry, st.Capacity)
		}
		warn(Warning{SetBits: int(st.SetBits)}, wrong)
	}
	f, err := bloom.New(s.client, s.keys[key], cfg)
	s.watch.numbers[f] = number
	return f, err
}

// watchedBy returns the number of the handle of a call, 0 if it has several, or
// -1 if the handle has no WarnFill.
func (s *session) watchedBy(c Call) int {
	switch {
	case c.Verb == AddIn:
		return 0
	case c.Verb.is(mirrored) && s.mirror.Load() != s.first.mirror:
		return -1
	case c.Verb.is(mirrored):
		return s.watch.number(s.first.filter)
	}
	return s.watch.number(s.handles[c.Key].at(c).Load())
}

func (f Filters) items() int {
	if f.Near {
		return nearItems
	}
	return itemCount
}

// nearItems is the number of items of a Near filter. Its clients make more calls,
// of which many must find something new.
const nearItems = 16

// DrawFilters draws the Config of a history, with at most two of the themes.
func DrawFilters(rng *rand.Rand, themes Theme) Filters {
	sizes := []Filters{{Bits: 53, Hashes: 2}, {Bits: 106, Hashes: 4}}
	f := sizes[rng.IntN(2)]
	if rng.IntN(2) == 0 {
		f.TTL = time.Hour
	}
	f.MustExist, f.Seed = rng.IntN(8) == 0, drawSeed(rng)
	f.Watch = rng.IntN(3) == 0
	f.MissingIsEmpty = rng.IntN(8) == 0
	var on []Theme
	for i := range themeNames {
		if t := Theme(1 << i); themes&t != 0 {
			on = append(on, t)
		}
	}
	for range min(2, len(on)) {
		f.Themes |= on[rng.IntN(len(on))]
	}
	if f.Themes&Losses != 0 && rng.IntN(2) == 0 {
		f.Themes |= Mirrors
	}
	stale := []time.Duration{0, 100 * time.Microsecond, 10 * time.Millisecond, time.Second, time.Second}
	trust := []time.Duration{time.Minute, time.Minute, 20 * time.Millisecond}
	f.MaxStale, f.MaxTrust = pick(rng, stale), pick(rng, trust)
	if rng.IntN(2) == 0 || f.Themes&Losses != 0 {
		f.MaxCopy = max(f.MaxStale, pick(rng, []time.Duration{time.Millisecond, 100 * time.Millisecond, 2 * time.Second}))
	}
	if rng.IntN(3) == 0 {
		f.StaleIfError = pick(rng, []time.Duration{50 * time.Millisecond, 2 * time.Second})
	}
	if f.Themes&^(Mirrors|Causes|Writers|OldServer|Crowds) == 0 && f.Themes != 0 && rng.IntN(2) == 0 {
		f.Lag, f.Reads = true, bloom.ReadsNearest
		if rng.IntN(2) == 0 {
			f.Reads = bloom.Reads(rng.IntN(3))
		}
	}
	if f.Themes&Mirrors != 0 && !f.MustExist && rng.IntN(2) == 0 {
		f.Crossing = !f.Lag && rng.IntN(2) == 0
		f.NoScripts, f.Slow = f.Lag, !f.Lag && !f.Crossing
		f.MaxStale = time.Second
		if f.MaxCopy > 0 {
			f.MaxCopy = max(f.MaxCopy, f.MaxStale)
		}
		if f.Lag { // to make a region's answer older
			f.MaxStale = stale[1]
		}
	}
	if f.Themes&(Moves|Copies) != 0 && f.Themes&Writers == 0 && rng.IntN(3) == 0 {
		f.Long, f.Bits, f.Hashes = true, longBits, longHashes
	} else if rng.IntN(4) == 0 {
		f.drawScheme(rng)
	}
	around := f.NoScripts || f.Slow || f.Crossing
	f.Twice = f.Themes&Moves != 0 && !f.Long && !f.Watch && !around && rng.IntN(3) == 0
	return f
}

// drawNear draws the Config of a history near a region that lags. The look-ups of
// a Bare filter ask the primary.
func drawNear(rng *rand.Rand) *Filters {
	f := &Filters{Bits: 106, Hashes: 2, Seed: drawSeed(rng), Lag: true, Near: true, AtOnce: 1}
	if rng.IntN(2) == 0 {
		f.MissingIsEmpty, f.Bare = true, true
		f.drawScheme(rng)
		return f
	}
	f.Reads = bloom.Reads(rng.IntN(3))
	if rng.IntN(2) == 0 {
		f.TTL = time.Hour
	}
	if rng.IntN(2) == 0 {
		f.Themes = Mirrors
	}
	f.MaxStale, f.MaxTrust = []time.Duration{0, 10 * time.Millisecond, time.Second}[rng.IntN(3)], time.Minute
	return f
}

// drawScheme draws a scheme of independent bits, which has filters of any size.
func (f *Filters) drawScheme(rng *rand.Rand) {
	f.Bits, f.Hashes = 20+rng.Uint64N(100), 1+rng.IntN(5)
	if f.Scheme = bloom.SchemeXXH3; rng.IntN(2) == 0 { // which has no seeds
		f.Scheme, f.Seed = bloom.SchemeFNV1a, 0
	}
}

var nearVerbs = []Verb{
	Add, Add, Add, Add, AddAll, AddAll, Exists, ExistsAll, Stats, Snapshot, Snapshot, Snapshot, Snapshot,
}

// headedVerbs follow in a filter with a header.
var headedVerbs = append(slices.Clip(nearVerbs),
	Create, Delete, Exists, Exists, Exists, ExistsAll, Stats, Stats, Inspect, Inspect,
)

var plainVerbs = []Verb{
	Create, Create, Add, Add, Add, Add, Add, Add, AddAll, AddSeq, AddIn,
	Exists, Exists, Exists, Exists, Exists, ExistsIn, ExistsAll, ExistsAll, Delete, Delete,
	Persist, SetTTL, Open, Open, Open,
}

// themeVerbs are drawn about as often as the plain ones.
var themeVerbs = []struct {
	theme Theme
	verbs []Verb
}{
	{Moves, []Verb{Load, Merge, Restore, Replace, Replace, Replace, ReplaceWrong}},
	{Copies, []Verb{Snapshot, Snapshot, Snapshot, Rename, Rename, Rename, Union, Union}},
	{Counts, []Verb{Stats, Stats, Inspect, Inspect, Overlap}},
	{Mirrors, []Verb{
		MirrorExists, MirrorExists, MirrorExists, MirrorAll, MirrorAll, MirrorAdd, MirrorThrough, MirrorThrough,
		MirrorThrough, MirrorAddAll, MirrorAddAll, Refresh, Refresh, Replace, Replace,
	}},
	{Crowds, []Verb{Crowd}},
	// An Inspect counts again what another program's filter has lengthened.
	{Writers, []Verb{Inspect, Inspect, Inspect, Add, Exists, Delete}},
}

// drawRegion occasionally draws a region that stays behind.
func (f *Filters) drawRegion(rng *rand.Rand) {
	if rng.IntN(4) == 0 {
		f.Lag, f.Reads = true, bloom.Reads(rng.IntN(3))
	}
}

// Draw draws the calls a client makes without a rest: most often one, or a
// Rename away and back, or an Add and a look-up of its item, or calls around a
// Mirror.
func (f Filters) Draw(rng *rand.Rand) []Call {
	if (f.NoScripts || f.Slow || f.Crossing) && rng.IntN(8) > 0 {
		return f.drawAroundMirror(rng)
	}
	if f.Twice && rng.IntN(8) > 0 { // all of them about one item
		x := []string{itemName(0)}
		if rng.IntN(2) == 0 {
			return []Call{{Verb: Load, Items: x}, {Verb: Exists, Items: x}}
		}
		return []Call{{Verb: Rest, Wait: upTo(rng, 700*time.Millisecond)}, {Verb: Exists, Items: x}, {Verb: Clear}}
	}
	if f.Themes&Mirrors != 0 && !f.Near && rng.IntN(8) == 0 {
		if f.Themes&Losses != 0 {
			return f.drawLost(rng)
		}
		return f.drawReplaced(rng)
	}
	c := f.drawCall(rng)
	if c.Verb == AddIn && f.Themes&OldServer != 0 && !f.MustExist && !f.Watch {
		c.Into = [][]int{{0, intoMust}, {intoMust, 0}}[rng.IntN(2)]
		return []Call{c, {Verb: FlushScripts}, {Verb: AddIn, Items: slices.Repeat(items(rng, 1), 2), Into: c.Into}}
	}
	next := c
	next.Cause = 0
	switch {
	case f.Near && !f.Bare && c.Verb.is(adds) && rng.IntN(2) == 0: // and looks for it soon
		next.Verb, next.Parts = []Verb{Stats, Inspect, ExistsAll, ExistsAll, Snapshot}[rng.IntN(5)], false
		return []Call{c, {Verb: Rest, Wait: upTo(rng, 100*time.Millisecond)}, next}
	case f.Bare, c.Verb != Open && rng.IntN(4) == 0:
		return []Call{c}
	case c.Verb == Rename:
		next.Key = 1 - c.Key
	case c.Verb == MirrorThrough && rng.IntN(2) == 0: // the copy may know one of two
		next.Verb = []Verb{MirrorAll, MirrorAddAll}[rng.IntN(2)]
		if next.Items = append(items(rng, 1), c.Items...); rng.IntN(2) == 0 {
			slices.Reverse(next.Items)
		}
		return []Call{{Verb: Refresh}, c, next}
	case c.Verb == MirrorThrough:
		next.Verb = MirrorExists
	case c.Verb == Open: // and uses the handle at once
		return append([]Call{c}, f.Draw(rng)...)
	default:
		return []Call{c}
	}
	return []Call{c, next}
}

// drawReplaced draws calls that show if a Mirror takes an item of a filter that was
// replaced for one of the new filter: the Mirror learns of that, and is asked for
// the item when the old filter is no excuse any more.
func (f Filters) drawReplaced(rng *rand.Rand) []Call {
	two := items(rng, 2)
	x, y := two[:1], two[1:]
	return []Call{
		{Verb: MirrorThrough, Items: x},
		{Verb: Replace, Items: y},
		{Verb: MirrorThrough, Items: y},
		{Verb: Rest, Wait: f.MaxTrust},
		{Verb: MirrorThrough, Items: y},
		{Verb: MirrorExists, Items: x},
	}
}

// drawLost draws calls that show if a Mirror counts for longer than MaxCopy what the
// database has lost, x, and denies what has come instead.
func (f Filters) drawLost(rng *rand.Rand) []Call {
	two := items(rng, 2)
	x, y := two[:1], two[1:]
	calls := []Call{
		{Verb: Keep},
		{Verb: MirrorThrough, Items: x},
		{Verb: Refresh},
		{Verb: Revert},
		{Verb: Add, Items: y},
		{Verb: Rest, Wait: f.MaxCopy + f.StaleIfError},
		{Verb: Refresh},
		{Verb: MirrorExists, Items: y},
		{Verb: MirrorExists, Items: x},
	}
	if rng.IntN(2) == 0 { // without the second refresh
		calls = slices.Delete(calls, 6, 7)
	}
	return calls
}

// drawAroundMirror draws calls whose answers show if a Mirror forgets.
func (f Filters) drawAroundMirror(rng *rand.Rand) []Call {
	two := items(rng, 2)
	x, y := two[:1], two[1:]
	switch {
	case f.Crossing && rng.IntN(2) == 0: // the copy is fresh, and an answer comes late
		return []Call{{Verb: Refresh}, {Verb: MirrorThrough, Items: y}, {Verb: MirrorThrough, Items: y}}
	case f.Crossing:
		// The answer about the new filter comes after one about the old filter
		// that was under way with it. x must be found all the same.
		return []Call{
			{Verb: Rest, Wait: upTo(rng, 300*time.Millisecond)},
			{Verb: Replace},
			{Verb: MirrorThrough, Items: x},
			{Verb: MirrorExists, Items: x},
		}
	case f.NoScripts: // a stuck region may lack x
		return []Call{{Verb: Add, Items: x}, {Verb: MirrorExists, Items: y}, {Verb: MirrorExists, Items: x}}
	case rng.IntN(3) == 0:
		// If x is new to AddThrough, the filter was replaced after the Add. x
		// must be found, although the copy is of the old filter and lacks it.
		return []Call{
			{Verb: Refresh}, {Verb: Add, Items: x}, {Verb: MirrorThrough, Items: x}, {Verb: MirrorExists, Items: x},
		}
	}
	// Meanwhile another caller of the Mirror learns of the old filter, and then
	// nothing until the Add has ended.
	return []Call{
		{Verb: MirrorThrough, Items: y}, {Verb: Replace, Items: y}, {Verb: Rest, Wait: 300 * time.Millisecond},
	}
}

func (f Filters) drawCall(rng *rand.Rand) Call {
	list := plainVerbs
	switch {
	case f.Bare:
		list = nearVerbs
	case f.Near:
		list = headedVerbs
	}
	for _, t := range themeVerbs {
		if f.Themes&t.theme != 0 && rng.IntN(3) == 0 {
			list = t.verbs
		}
	}
	c := Call{Verb: pick(rng, list)}
	if f.Themes&(Copies|Counts) != 0 && !c.Verb.is(mirrored) && rng.IntN(4) == 0 {
		c.Key = 1
	}
	if f.Themes&Causes != 0 && rng.IntN(3) == 0 {
		c.drawCause(rng)
	}
	if c.Verb == AddSeq && (f.Watch || rng.IntN(2) == 0) { // it may look in each round
		c.Verb = AddAll
	}
	if c.Verb == Exists && f.Lag && rng.IntN(4) == 0 {
		c.Verb, c.Key = ExistsIn, 0
	}
	c.drawItems(rng, f.items(), batch+1)
	switch c.Verb {
	case Open:
		c.Parts = rng.IntN(4) == 0
	case AddAll, AddSeq, ExistsAll, MirrorAll, MirrorAddAll:
		c.Parts = !c.Verb.is(mirrored) && rng.IntN(3) == 0
		if c.Parts && !f.Near && rng.IntN(3) == 0 { // the first part goes alone
			c.Items = append(c.Items, c.Items[len(c.Items)-1])
		}
	case Load, Merge, Restore, Replace:
		c.Items = items(rng, rng.IntN(4))
	case Crowd:
		c.Items = slices.Repeat(c.Items, 5)
	case AddIn, ExistsIn:
		c.Items, c.Key, c.Into = slices.Repeat(c.Items, 2), 0, []int{0, rng.IntN(2)}
	}
	return c
}
