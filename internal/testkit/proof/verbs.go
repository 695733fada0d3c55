package proof

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom"
)

// The verbs of clients. The second group moves whole filters. The third group
// goes through a Mirror.
const (
	Create      Verb = "create"
	Add         Verb = "add"
	AddAll      Verb = "addall"
	AddSeq      Verb = "addseq"
	AddIn       Verb = "addin" // to the filters of Call.Into
	Exists      Verb = "exists"
	ExistsAll   Verb = "existsall"
	ExistsIn    Verb = "existsin" // in the filters of Call.Into
	Stats       Verb = "stats"
	Inspect     Verb = "inspect" // without the Config
	Cardinality Verb = "cardinality"
	Delete      Verb = "delete"
	Persist     Verb = "persist"
	SetTTL      Verb = "setttl" // Filter.Expire
	Open        Verb = "open"   // a handle, used by the client from then on

	Remove    Verb = "remove"
	RemoveAll Verb = "removeall"
	Count     Verb = "count"
	AddOther  Verb = "addother" // by a handle with another Config, and MustExist

	Load         Verb = "load"
	Merge        Verb = "merge"
	Replace      Verb = "replace"
	ReplaceWrong Verb = "replacewrong" // with a Local of another geometry
	Snapshot     Verb = "snapshot"
	Rename       Verb = "rename" // to the other key

	// TakeBackup keeps the history's first Backup, and RestoreBackup restores it.
	TakeBackup    Verb = "takebackup"
	RestoreBackup Verb = "restorebackup"

	MirrorExists  Verb = "mirror.exists"
	MirrorAll     Verb = "mirror.existsall"
	MirrorAdd     Verb = "mirror.add"
	MirrorAddAll  Verb = "mirror.addall"
	MirrorThrough Verb = "mirror.addthrough"
	Refresh       Verb = "mirror.refresh"
	MirrorStats   Verb = "mirror.stats" // whether there is an outage
	Crowd         Verb = "mirror.crowd" // Exists by several goroutines at once, of a Mirror of their own
)

// The verbs from outside run on the database itself and meet no fault.
const (
	// Expire removes the key if it has a TTL, as time would. Clear removes the
	// key whatever it holds, as an eviction would. ClearParts removes the parts
	// of all uploads.
	Expire     Verb = "expire"
	Clear      Verb = "clear"
	ClearParts Verb = "clearparts"
	// Overwrite stores data of another program, or a Cuckoo if it says yes. Plant
	// stores the bytes of a Local, which have no birth number. Smudge is an Add by
	// a handle with another Config.
	Overwrite Verb = "overwrite"
	Plant     Verb = "plant"
	Smudge    Verb = "smudge"
	// Keep notes the state of the key. Revert brings the noted state back, as a
	// restart or a backup that lost the writes since, or a RESTORE. CopyOver is a
	// COPY over the other key, with the birth number.
	Keep     Verb = "keep"
	Revert   Verb = "revert"
	CopyOver Verb = "copyover"
	// Silence has the server answer none of the next Call.More requests, in a way
	// that Call.From says. Speak ends it. Hold concerns one, after Call.More others: by
	// Call.From, its answer is late (0), or does not come (1), or it runs late, and has
	// no answer (2), or it does not run (3). All concern requests that begin with
	// Call.Command.
	Silence Verb = "silence"
	Speak   Verb = "speak"
	Hold    Verb = "hold"
	// FlushScripts makes the server forget its scripts.
	FlushScripts Verb = "flush"
	// Forge writes the fingerprint of an item into a cuckoo table.
	Forge Verb = "forge"
	// HasTTL reports whether the key has a TTL. ProbeTTL reports, after a write that
	// may not have set it, whether it has one or is missing.
	HasTTL   Verb = "hasttl"
	ProbeTTL Verb = "probettl"
	// Fill has a Scalable's newest layer count more items than it took, as if
	// others had been added. Layers returns the number of layers, and compares
	// the string with what it counts.
	Fill   Verb = "fill"
	Layers Verb = "layers"

	// Calls of clients with a Config of another number of shards.
	OtherCreate Verb = "other.create"
	OtherAdd    Verb = "other.add"
	OtherExists Verb = "other.exists"
	OtherDelete Verb = "other.delete"

	// Rest and Align are pauses of a client between two calls of one Draw. Rest
	// takes Call.Wait. Align lasts until the clock, modulo some unit, is at
	// Call.Wait. Jump sets the wall clock of the client's process ahead by Call.Wait, or
	// back. Freeze is a Rest in which the monotonic clock stands still.
	Rest   Verb = "rest"
	Align  Verb = "align"
	Jump   Verb = "jump"
	Freeze Verb = "freeze"
)

// A trait is what is true of a verb.
type trait uint16

const (
	reads     trait = 1 << iota // it changes nothing
	looksUp                     // it says of each item whether it is there
	adds                        // it adds items
	uploads                     // it loads a filter's bytes into another
	once                        // it takes effect once, whatever was repeated
	refusable                   // a handle that remembers other data sends nothing
	mirrored                    // it goes through a Mirror
	outside                     // it runs on the database itself
	regional                    // the nearest region answers, whatever ReadsNearest says
)

// A row is what is known of a verb: its traits, how many items a call has, how a
// handle makes the call, and what a step of it does to a Filter's model. If does is
// nil, any answer is right.
type row struct {
	is    trait
	items int
	run   func(ask) (Result, error)
	does  effect
}

const (
	oneItem = 1
	batch   = 2 // two, or more
)

// An ask is a call of one of a session's handles.
type ask struct {
	ctx context.Context
	handle
	Call
	s *Session
}

// A handle has the methods of the handles of all types. Those of some types are
// in the interfaces below.
type handle interface {
	Create(ctx context.Context) (bool, error)
	Add(ctx context.Context, item string) (bool, error)
	AddAll(ctx context.Context, items []string) ([]bool, error)
	Exists(ctx context.Context, item string) (bool, error)
	ExistsAll(ctx context.Context, items []string) ([]bool, error)
	Delete(ctx context.Context) (bool, error)
}

type (
	lasting interface {
		Persist(ctx context.Context) (bool, error)
		Expire(ctx context.Context, ttl time.Duration) (bool, error)
	}
	moving interface {
		Rename(ctx context.Context, to string) error
	}
	counting interface {
		Cardinality(ctx context.Context) (uint64, error)
	}
	removing interface {
		Remove(ctx context.Context, item string) (bool, error)
		RemoveAll(ctx context.Context, items []string) ([]bool, error)
		Count(ctx context.Context) (uint64, error)
	}
)

// verbs is the table: all that is known of a verb, but for what it does to the
// models of other types.
var verbs = map[Verb]row{
	Create:    {refusable, 0, wholeCall(handle.Create), (*step).make},
	Add:       {adds | refusable, oneItem, itemCall(handle.Add), (*step).add},
	AddAll:    {adds | refusable, batch, batchCall(handle.AddAll), (*step).add},
	AddSeq:    {adds, batch, addSeq, (*step).add},
	Exists:    {reads | looksUp, oneItem, itemCall(handle.Exists), (*step).exists},
	ExistsAll: {reads | looksUp, batch, batchCall(handle.ExistsAll), (*step).exists},
	AddIn:     {adds | refusable, oneItem, inCall(bloom.AddIn[bloom.AnyFilter]), nil},
	ExistsIn:  {reads, oneItem, inCall(bloom.ExistsIn[bloom.AnyFilter]), nil},
	Delete:    {once, 0, wholeCall(handle.Delete), (*step).remove},
	Open:      {reads, 0, opens, (*step).opens},

	Persist: {0, 0, wholeCall(lasting.Persist), (*step).lifetime},
	SetTTL: {0, 0, wholeCall(func(h lasting, ctx context.Context) (bool, error) {
		return h.Expire(ctx, 24*time.Hour)
	}), (*step).lifetime},

	Stats:       {reads | regional, 0, stats, (*step).stats},
	Inspect:     {reads, 0, inspect, (*step).inspects},
	Cardinality: {reads | regional, 0, countCall(counting.Cardinality), (*step).cardinality},

	// The model of a Cuckoo has these.
	Remove:    {refusable, oneItem, itemCall(removing.Remove), nil},
	RemoveAll: {refusable, batch, batchCall(removing.RemoveAll), nil},
	Count:     {reads | looksUp, 0, countCall(removing.Count), nil},

	Load:  {uploads | once | refusable, batch, load, (*step).load},
	Merge: {uploads, batch, merge, (*step).load},
	Replace: {once | refusable, batch, func(q ask) (Result, error) {
		return q.replace(q.filter().Geometry())
	}, (*step).replace},
	ReplaceWrong: {run: func(q ask) (Result, error) { return q.replace(geometryOf(smudgeConfig)) }},
	Snapshot:     {reads, 0, snapshot, (*step).snapshot},
	Rename: {once, 0, func(q ask) (Result, error) {
		return none(q.handle.(moving).Rename(q.ctx, q.s.keys[1-q.Key]))
	}, (*step).rename},

	TakeBackup: {reads, 0, func(q ask) (Result, error) {
		return q.s.of.Base().Backups.take(q.ctx, q.s.clients[0], q.s.keys[q.Key])
	}, (*step).backedUp},
	RestoreBackup: {once, 0, func(q ask) (Result, error) {
		b := q.s.of.Base()
		return b.Backups.restore(q.ctx, q.s.clients[0], q.s.keys[q.Key], b.TTL)
	}, (*step).restored},

	MirrorExists:  {mirrored | reads | looksUp, oneItem, itemCall((*bloom.Mirror).Exists), (*step).exists},
	MirrorAll:     {mirrored | reads, batch, batchCall((*bloom.Mirror).ExistsAll), nil},
	MirrorAdd:     {mirrored | adds | refusable, oneItem, itemCall((*bloom.Mirror).Add), (*step).add},
	MirrorAddAll:  {mirrored | adds | refusable, batch, batchCall((*bloom.Mirror).AddAll), (*step).add},
	MirrorThrough: {mirrored | adds | refusable, oneItem, itemCall((*bloom.Mirror).AddThrough), (*step).add},
	Refresh: {is: mirrored | reads, run: func(q ask) (Result, error) {
		return none(q.s.mirror().Refresh(q.ctx))
	}},
	MirrorStats: {is: mirrored | reads, run: func(q ask) (Result, error) {
		return single(!q.s.mirror().Stats().StaleSince.IsZero(), nil)
	}},
	Crowd: {mirrored | reads | looksUp, oneItem, crowd, (*step).exists},

	AddOther:    {is: refusable, items: oneItem},
	OtherCreate: {does: (*step).siblingMade},
	OtherAdd:    {is: refusable, items: oneItem, does: (*step).siblingAsked},
	OtherExists: {is: reads, items: oneItem, does: (*step).siblingAsked},
	OtherDelete: {is: once, does: (*step).siblingRemoved},

	Expire:    {is: outside, does: (*step).expired},
	Clear:     {is: outside, does: (*step).cleared},
	Overwrite: {is: outside, does: (*step).overwritten},
	Plant:     {is: outside, items: batch, does: (*step).planted},
	Smudge:    {is: outside, items: oneItem, does: (*step).smudged},
	Keep:      {is: outside, does: (*step).noted},
	Revert:    {is: outside, does: (*step).reverted},
	CopyOver:  {is: outside, does: (*step).copiedOver},
	HasTTL:    {is: outside, does: (*step).hasTTL},
	ProbeTTL:  {is: outside}, ClearParts: {is: outside}, FlushScripts: {is: outside},
	Silence: {is: outside}, Speak: {is: outside}, Hold: {is: outside},
	Fill: {is: outside}, Layers: {is: outside}, Forge: {is: outside, items: oneItem},
	Lapse: {does: (*step).lapsed},
}

// How a handle or a Mirror, which is an H, makes the calls that take one line.

func wholeCall[H any](do func(H, context.Context) (bool, error)) func(ask) (Result, error) {
	return func(q ask) (Result, error) { return single(do(on[H](q), q.ctx)) }
}

func itemCall[H any](do func(H, context.Context, string) (bool, error)) func(ask) (Result, error) {
	return func(q ask) (Result, error) { return single(do(on[H](q), q.ctx, q.Items[0])) }
}

func batchCall[H any](do func(H, context.Context, []string) ([]bool, error)) func(ask) (Result, error) {
	return func(q ask) (Result, error) {
		yes, err := do(on[H](q), q.ctx, q.Items)
		return Result{Yes: yes}, err
	}
}

func countCall[H any](do func(H, context.Context) (uint64, error)) func(ask) (Result, error) {
	return func(q ask) (Result, error) {
		n, err := do(on[H](q), q.ctx)
		return Result{Count: int(n)}, err
	}
}

// on returns the handle, or the session's Mirror.
func on[H any](q ask) H {
	if h, ok := q.handle.(H); ok {
		return h
	}
	return any(q.s.mirror()).(H)
}

// verbOfOther maps a verb of a handle with another Config to the handle's call.
var verbOfOther = map[Verb]Verb{
	AddOther: Add, OtherCreate: Create, OtherAdd: Add, OtherExists: Exists, OtherDelete: Delete,
}

// is reports whether the verb has one of the traits.
func (v Verb) is(t trait) bool { return verbs[v].is&t != 0 }

// FromOutside reports whether the call is made on the database itself.
func (c Call) FromOutside() bool { return c.Verb.is(outside) }

// run makes the call of an ask by the table.
func (q ask) run() (Result, error) {
	run := verbs[cmp.Or(verbOfOther[q.Verb], q.Verb)].run
	if run == nil {
		panic("proof: no client does " + string(q.Verb))
	}
	return run(q)
}

// The results of calls.

func single(yes bool, err error) (Result, error) { return Result{Yes: []bool{yes}}, err }

func none(err error) (Result, error) { return Result{}, err }

// sized reports whether the handle has a Capacity.
func (q ask) sized() bool {
	f, ok := q.s.of.(interface{ sized() bool })
	return ok && f.sized() && !q.s.wasOpened(q.handle)
}

func (q ask) loaded(l bloom.LoadResult, err error) (Result, error) {
	r := Result{Yes: []bool{l.Created}, Count: int(l.NewBits), Over: l.OverCapacity, Sized: q.sized()}
	if l.NewBitsUnknown || err != nil {
		r.Count = -1
	}
	return r, err
}

// The calls that take more than one line.

func (q ask) filter() *bloom.Filter { return q.handle.(*bloom.Filter) }

func addSeq(q ask) (Result, error) {
	n, err := q.filter().AddSeq(q.ctx, slices.Values(q.Items))
	return Result{
		Count: int(n.New), Done: int(n.Items), Unsure: int(n.Uncertain), In: bloom.InFilter(err),
	}, err
}

// inCall adds an item to several filters, or asks them for it.
func inCall(
	do func(context.Context, string, ...bloom.AnyFilter) ([]bloom.Answer, error),
) func(ask) (Result, error) {
	return func(q ask) (Result, error) {
		var filters []bloom.AnyFilter
		for _, n := range q.Into {
			filters = append(filters, q.s.into(n))
		}
		answers, err := do(q.ctx, q.Items[0], filters...)
		r := Result{End: Partly}
		for _, a := range answers {
			one := Result{End: endOf(a.Err, q.cause()), Yes: []bool{a.Yes}}
			one.tell(a.Err)
			r.Each, r.Yes, r.Ends = append(r.Each, one), append(r.Yes, a.Yes), append(r.Ends, one.End)
		}
		return r, err
	}
}

// opens opens the filter. If it has the Config's geometry, the client uses the
// new handle from then on. The answer says whether it has.
func opens(q ask) (Result, error) {
	w := whichOf(q.Call)
	opened, err := q.s.of.open(q.ctx, q.s.clients, q.s.keys[w.key], w.variant)
	if err != nil {
		return Result{}, err
	}
	fits := fmt.Sprint(opened) == fmt.Sprint(q.handle)
	if fits {
		q.s.adopt(w, opened)
	}
	return single(fits, nil)
}

func stats(q ask) (Result, error) {
	st, err := q.handle.(interface {
		Stats(ctx context.Context) (bloom.Stats, error)
	}).Stats(q.ctx)
	switch q.handle.(type) {
	case *bloom.Window:
		return Result{Yes: []bool{st.SetBits > 0}, Count: len(st.Parts)}, err
	case *bloom.Scalable:
		return Result{Count: len(st.Parts)}, err
	case *bloom.Cuckoo:
		return Result{Count: int(st.Items), Yes: []bool{st.Damaged}}, err
	case *bloom.Sharded:
		r := Result{}
		for _, shard := range st.Parts {
			r.Counts = append(r.Counts, int(shard.SetBits))
		}
		return r, err
	}
	return Result{Count: int(st.SetBits)}, err
}

func inspect(q ask) (Result, error) {
	st, err := bloom.Inspect(q.ctx, q.s.clients[0], q.s.keys[q.Key])
	if err != nil {
		return Result{}, err
	}
	g := q.filter().Geometry()
	fits := st.Geometry == bloom.Geometry{Bits: g.Bits, Hashes: g.Hashes, Scheme: g.Scheme} && st.Seeded == (g.Seed != 0)
	return Result{Yes: []bool{fits}, Count: int(st.SetBits)}, nil
}

// movePart makes several parts of a Long filter.
var movePart = bloom.WithPartBytes(partBytes)

func load(q ask) (Result, error) {
	if f, ok := q.handle.(*bloom.Sharded); ok {
		return q.loaded(f.Load(q.ctx, slices.Values(q.Items)))
	}
	return q.loaded(q.filter().Load(q.ctx, slices.Values(q.Items), movePart))
}

// merge merges a Local. Of a Sharded it loads one shard.
func merge(q ask) (Result, error) {
	if f, ok := q.handle.(*bloom.Sharded); ok {
		return q.loaded(f.LoadShard(q.ctx, f.ShardOf(q.Items[0]), slices.Values(q.Items)))
	}
	return q.loaded(q.filter().Merge(q.ctx, localOf(q.filter().Geometry(), q.Items), movePart))
}

func (q ask) replace(g bloom.Geometry) (Result, error) {
	return none(q.filter().Replace(q.ctx, localOf(g, q.Items), movePart))
}

func snapshot(q ask) (Result, error) {
	l, err := (*bloom.Local)(nil), error(nil)
	if q.Parts {
		l, err = backedUp(q.ctx, q)
	} else {
		l, err = q.filter().Snapshot(q.ctx, movePart)
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Cells: cellsOf(l)}, nil
}

// backedUp is Snapshot by a Backup, if that is of a filter of the handle's Config.
func backedUp(ctx context.Context, q ask) (*bloom.Local, error) {
	g := q.filter().Geometry()
	b, err := bloom.TakeBackup(ctx, q.s.clients[0], q.s.keys[q.Key], movePart)
	if err != nil {
		return nil, err
	}
	if l, err := b.Local(g.Seed); err == nil && l.Geometry() == g {
		return l, nil
	}
	return q.filter().Snapshot(ctx, movePart)
}

// crowd asks a new Mirror about each item, all at once.
func crowd(q ask) (Result, error) {
	m := newMirror(q.filter(), bloom.MirrorConfig{MaxStale: q.s.mirrorConfig().MaxStale})
	r := Result{End: Partly, Yes: make([]bool, len(q.Items)), Ends: make([]End, len(q.Items))}
	errs := make([]error, len(q.Items))
	var running sync.WaitGroup
	for i, item := range q.Items {
		running.Go(func() {
			r.Yes[i], errs[i] = m.Exists(q.ctx, item)
			r.Ends[i] = endOf(errs[i], q.cause())
		})
	}
	running.Wait()
	r.Count = int(m.Stats().Refreshes)
	return r, errors.Join(errs...)
}
