package proof

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/woken"
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
	// MaxStale and MaxTrust are those of the Mirrors.
	MaxStale, MaxTrust time.Duration
	// Long makes the string so long that it moves in several parts. Its items
	// share no cells: see TestLongItemsApart.
	Long bool
	// Watch has the handles look at the fill, and makes three items too many.
	Watch bool
	// Themes are the groups of verbs drawn besides the plain ones.
	Themes Theme

	linger func()
}

// OnWarning sets what a WarnFill does besides.
func (f *Filters) OnWarning(linger func()) { f.linger = linger }

// Config returns the Config of the handles.
func (f Filters) Config() bloom.Config {
	cfg := bloom.Config{
		Bits: f.Bits, Hashes: f.Hashes, Scheme: f.Scheme, TTL: f.TTL, MustExist: f.MustExist,
		MissingIsEmpty: f.MissingIsEmpty, Seed: f.Seed, Reads: f.Reads, BatchParallel: f.parallel(),
	}
	if f.Watch {
		cfg.Capacity = watchCapacity
	}
	if f.Bare {
		cfg.Layout = bloom.LayoutBare
	}
	return cfg
}

// parallel returns how many parts of a batch are under way at once. Of two writes
// at once a client keeps one sync token, so a region may lack the other one. For
// the model a client reads all of its writes.
func (f Filters) parallel() int {
	if f.Near {
		return 1
	}
	return 2
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

// secondKey is the other key, for renames and unions.
func secondKey(key string) string { return key + ":2" }

// A session is the handles of a client. It is safe for concurrent use.
type session struct {
	of     Filters
	client *upstash.Client
	keys   [2]string
	whole  [2]atomic.Pointer[bloom.Filter] // by key
	parts  [2]atomic.Pointer[bloom.Filter] // in their batches each item is a request
	mirror atomic.Pointer[bloom.Mirror]    // of whole[0]

	watch   *watch                // nil if the handles have no WarnFill
	watched map[*bloom.Filter]int // their numbers; an opened one has none
	// first are the first handle and the Mirror of it.
	first struct {
		filter *bloom.Filter
		mirror *bloom.Mirror
	}
}

// Open makes the handles of a process, whose client's observer must be Observe.
func (f Filters) Open(clients []*upstash.Client, key string) (Handles, error) {
	c := clients[0]
	s := &session{of: f, client: c, keys: [2]string{key, secondKey(key)}}
	if f.Watch {
		s.watch, s.watched = newWatch(f.linger), make(map[*bloom.Filter]int)
	}
	for i := range s.keys {
		cfg := f.Config()
		whole, err := s.handle(i, cfg)
		if err != nil {
			return nil, err
		}
		cfg.BatchBytes = 1
		parts, err := s.handle(i, cfg)
		if err != nil {
			return nil, err
		}
		s.whole[i].Store(whole)
		s.parts[i].Store(parts)
	}
	if f.Bare { // it cannot be mirrored
		return s, nil
	}
	m, err := f.mirrorOf(s.whole[0].Load())
	s.mirror.Store(m)
	s.first.filter, s.first.mirror = s.whole[0].Load(), m
	return s, err
}

func (f Filters) mirrorOf(of *bloom.Filter) (*bloom.Mirror, error) {
	return bloom.NewMirror(of, bloom.MirrorConfig{MaxStale: f.MaxStale, MaxTrust: f.MaxTrust})
}

// Run makes one call.
func (s *session) Run(ctx context.Context, c Call) Result {
	a := newAttempts(c)
	do := func(ctx context.Context) (Result, error) { return s.call(ctx, c) }
	if s.watch == nil {
		return a.run(ctx, c, do)
	}
	return s.watch.run(ctx, a, s.watchedBy(c), func(ctx context.Context) Result { return a.run(ctx, c, do) })
}

// adds reports whether the call is an Add.
func (c Call) adds() bool {
	switch c.Verb {
	case Add, AddAll, AddSeq, AddIn, MirrorAdd, MirrorAddAll, MirrorThrough:
		return true
	}
	return false
}

// uploads reports whether the call loads a filter's bytes into another.
func (c Call) uploads() bool { return c.Verb == Load || c.Verb == Merge || c.Verb == Restore }

func single(yes bool, err error) (Result, error) { return Result{Yes: []bool{yes}}, err }

func many(yes []bool, err error) (Result, error) { return Result{Yes: yes}, err }

func none(err error) (Result, error) { return Result{}, err }

// A handle has the methods common to the handles of all types.
type handle interface {
	Create(ctx context.Context) (bool, error)
	Add(ctx context.Context, item string) (bool, error)
	AddAll(ctx context.Context, items []string) ([]bool, error)
	Exists(ctx context.Context, item string) (bool, error)
	ExistsAll(ctx context.Context, items []string) ([]bool, error)
	Delete(ctx context.Context) (bool, error)
}

// common makes a call common to all types.
func common(ctx context.Context, h handle, c Call) (Result, error) {
	switch c.Verb {
	case Create:
		return single(h.Create(ctx))
	case Add:
		return single(h.Add(ctx, c.Items[0]))
	case AddAll:
		return many(h.AddAll(ctx, c.Items))
	case Exists:
		return single(h.Exists(ctx, c.Items[0]))
	case ExistsAll:
		return many(h.ExistsAll(ctx, c.Items))
	case Delete:
		return single(h.Delete(ctx))
	}
	panic("proof: no client does " + string(c.Verb))
}

func (s *session) call(ctx context.Context, c Call) (Result, error) {
	f, other := s.whole[c.Key].Load(), s.whole[1-c.Key].Load()
	if c.Parts {
		f = s.parts[c.Key].Load()
	}
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
	case Persist:
		return single(f.Persist(ctx))
	case SetTTL:
		return single(f.Expire(ctx, time.Hour))
	case Union:
		return none(bloom.Union(ctx, f, other))
	case Rename:
		return none(f.Rename(ctx, s.keys[1-c.Key]))
	case Load, Merge, Restore, Replace, ReplaceWrong, Snapshot:
		return s.move(ctx, f, c)
	}
	if c.mirrored() {
		return s.mirrored(ctx, c)
	}
	return common(ctx, f, c)
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
	var filters []*bloom.Filter
	for _, k := range c.Into {
		filters = append(filters, s.whole[k].Load())
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
	m, err := bloom.NewMirror(s.whole[0].Load(), bloom.MirrorConfig{MaxStale: s.of.MaxStale})
	if err != nil {
		return Result{}, err
	}
	r := Result{End: Partly, Yes: make([]bool, len(c.Items)), Ends: make([]End, len(c.Items))}
	errs := make([]error, len(c.Items))
	var running sync.WaitGroup
	for i, item := range c.Items {
		running.Go(func() {
			ctx := woken.Among(ctx, i+1)
			woken.Up(ctx)
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
