package proof

import (
	"context"
	"time"
)

// The verbs of clients. The second group moves whole filters. The third group
// goes through a Mirror.
const (
	Create    Verb = "create"
	Add       Verb = "add"
	AddAll    Verb = "addall"
	AddSeq    Verb = "addseq"
	AddIn     Verb = "addin" // to the filters of Call.Into
	Exists    Verb = "exists"
	ExistsAll Verb = "existsall"
	ExistsIn  Verb = "existsin" // in the filters of Call.Into
	Stats     Verb = "stats"
	Inspect   Verb = "inspect" // without the Config
	// Cardinality is not drawn for a Filter: Overlap asks for it.
	Cardinality Verb = "cardinality"
	Overlap     Verb = "overlap" // EstimateIntersection with the other key
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
	Restore      Verb = "restore"
	Replace      Verb = "replace"
	ReplaceWrong Verb = "replacewrong" // with a Local of another geometry
	Snapshot     Verb = "snapshot"
	Union        Verb = "union"  // of the other key into this one
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
	// FlushScripts makes the server forget its scripts.
	FlushScripts Verb = "flush"
	// Forge writes the fingerprint of an item into a cuckoo table.
	Forge Verb = "forge"
	// HasTTL reports whether the key has a TTL.
	HasTTL Verb = "hasttl"
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
	// Call.Wait.
	Rest  Verb = "rest"
	Align Verb = "align"

	// Lapse is a possible expiry: see History.MayExpire.
	Lapse Verb = "lapse"
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
	inside                      // a client draws it, but it runs on the database itself
	regional                    // the nearest region answers, whatever Reads says
)

// A row is what is known of a verb: its traits, how many items a call has, and
// how a handle makes the call. Without run, each type makes it by itself.
type row struct {
	is    trait
	items int
	run   func(ask) (Result, error)
}

const (
	oneItem = 1
	batch   = 2 // two, or more
)

// An ask is a call of a handle. A Rename moves to the other key.
type ask struct {
	ctx context.Context
	handle
	Call
	other string
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

// verbs is the table. A new verb needs its row here; a type draws it if it is in
// the type's list of verbs, and the model of the type says what it does.
var verbs = map[Verb]row{
	Create: {refusable, 0, func(q ask) (Result, error) { return single(q.Create(q.ctx)) }},
	Add:    {adds | refusable, oneItem, func(q ask) (Result, error) { return single(q.Add(q.ctx, q.Items[0])) }},
	AddAll: {adds | refusable, batch, func(q ask) (Result, error) { return many(q.AddAll(q.ctx, q.Items)) }},
	Exists: {reads | looksUp, oneItem, func(q ask) (Result, error) { return single(q.Exists(q.ctx, q.Items[0])) }},
	ExistsAll: {
		reads | looksUp, batch,
		func(q ask) (Result, error) { return many(q.ExistsAll(q.ctx, q.Items)) },
	},
	Delete: {once, 0, func(q ask) (Result, error) { return single(q.Delete(q.ctx)) }},

	Persist: {0, 0, func(q ask) (Result, error) { return single(q.handle.(lasting).Persist(q.ctx)) }},
	SetTTL:  {0, 0, func(q ask) (Result, error) { return single(q.handle.(lasting).Expire(q.ctx, time.Hour)) }},
	Rename:  {once, 0, func(q ask) (Result, error) { return none(q.handle.(moving).Rename(q.ctx, q.other)) }},
	Cardinality: {
		reads | regional, 0,
		func(q ask) (Result, error) { return number(q.handle.(counting).Cardinality(q.ctx)) },
	},

	Remove: {
		refusable, oneItem,
		func(q ask) (Result, error) { return single(q.handle.(removing).Remove(q.ctx, q.Items[0])) },
	},
	RemoveAll: {
		refusable, batch,
		func(q ask) (Result, error) { return many(q.handle.(removing).RemoveAll(q.ctx, q.Items)) },
	},
	Count: {reads | looksUp, 0, func(q ask) (Result, error) { return number(q.handle.(removing).Count(q.ctx)) }},

	AddSeq:   {is: adds, items: batch},
	AddIn:    {is: adds | refusable, items: oneItem},
	AddOther: {is: refusable, items: oneItem},
	ExistsIn: {is: reads, items: oneItem},
	Stats:    {is: reads | regional},
	Inspect:  {is: reads},
	Overlap:  {is: reads},
	Open:     {is: reads},

	Load:     {is: uploads | once | refusable, items: batch},
	Merge:    {is: uploads, items: batch},
	Restore:  {is: uploads, items: batch},
	Replace:  {is: once | refusable, items: batch},
	Snapshot: {is: reads},
	Union:    {is: refusable},

	TakeBackup:    {is: reads},
	RestoreBackup: {is: once},

	MirrorExists:  {is: mirrored | reads | looksUp, items: oneItem},
	MirrorAll:     {is: mirrored | reads, items: batch},
	MirrorAdd:     {is: mirrored | adds | refusable, items: oneItem},
	MirrorAddAll:  {is: mirrored | adds | refusable, items: batch},
	MirrorThrough: {is: mirrored | adds | refusable, items: oneItem},
	Refresh:       {is: mirrored | reads},
	Crowd:         {is: mirrored | reads | looksUp, items: oneItem},

	OtherAdd:    {is: refusable, items: oneItem},
	OtherExists: {is: reads, items: oneItem},
	OtherDelete: {is: once},

	Clear:        {is: inside},
	HasTTL:       {is: inside},
	Fill:         {is: inside},
	Layers:       {is: inside},
	FlushScripts: {is: inside},

	Keep:   {is: inside},
	Revert: {is: inside},
	Plant:  {items: batch},
	Smudge: {items: oneItem},
	Forge:  {items: oneItem},
}

func single(yes bool, err error) (Result, error) { return Result{Yes: []bool{yes}}, err }

func many(yes []bool, err error) (Result, error) { return Result{Yes: yes}, err }

func number(n uint64, err error) (Result, error) { return Result{Count: int(n)}, err }

func none(err error) (Result, error) { return Result{}, err }

// is reports whether the verb has one of the traits.
func (v Verb) is(t trait) bool { return verbs[v].is&t != 0 }

// FromOutside reports whether the call is made on the database itself, although
// a client draws it.
func (c Call) FromOutside() bool { return c.Verb.is(inside) }

// by makes a call of a handle by the table.
func (c Call) by(ctx context.Context, h handle, other string) (Result, error) {
	run := verbs[c.Verb].run
	if run == nil {
		panic("proof: no client does " + string(c.Verb))
	}
	return run(ask{ctx, h, c, other})
}
