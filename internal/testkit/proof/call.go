package proof

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// Verb names what a call does.
type Verb string

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
	// Forge writes the fingerprint of an item into a cuckoo table.
	Forge Verb = "forge"
	// HasTTL reports whether the key has a TTL.
	HasTTL Verb = "hasttl"
	// Fill sets cells of a Scalable's newest layer, as many Adds of other items
	// would. It leaves out the cells of the calls' items. Layers returns the
	// number of layers.
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

// FromOutside reports whether the call is made on the database itself, although
// a client draws it.
func (c Call) FromOutside() bool { return c.Verb == Clear || c.Verb == HasTTL || c.Verb == Fill }

// Call is one call of a client. It travels to other processes as JSON.
type Call struct {
	Verb  Verb
	Items []string `json:",omitempty"`
	// Key is 0 or 1. Filters move between the two keys.
	Key int `json:",omitempty"`
	// Into are the keys of an AddIn or ExistsIn, one for each of its equal items.
	Into []int `json:",omitempty"`
	// Parts makes each item of a batch a request. For a Scalable it chooses a
	// handle with a lower limit of layers.
	Parts bool `json:",omitempty"`
	// Shard is the shard of a call from outside.
	Shard int `json:",omitempty"`
	// Turned calls a Sharded with its clients in another order.
	Turned bool `json:",omitempty"`
	// More is how many further items a batch has. Nobody asks for them.
	More int `json:",omitempty"`
	// Other calls through the handles of another client.
	Other bool `json:",omitempty"`
	// Cause, if not 0, ends the call's context after CauseAfter. The cause is
	// then one of the errors of other calls.
	Cause      int           `json:",omitempty"`
	CauseAfter time.Duration `json:",omitempty"`
	// Wait is for Rest and Align.
	Wait time.Duration `json:",omitempty"`
}

// Result is the outcome of a call, as its client saw it. It travels as JSON.
type Result struct {
	// End is how the call ended. Ends has that of each answer of an AddIn, an
	// ExistsIn or a Crowd.
	End  End
	Ends []End `json:",omitempty"`
	// Yes holds the answers, one an item, or a single one.
	Yes []bool
	// States is set after a batch that failed.
	States []bloom.ItemState
	// Count is the number of set cells of Stats and Inspect, layers, items of
	// Overlap, new cells of a Load (-1 if unknown), refreshes of a Crowd or new
	// items of an AddSeq. Done is how many items of an AddSeq are in, and Unsure how many of
	// them may have been new. In is InFilter of its error.
	Count        int
	Done, Unsure int  `json:",omitempty"`
	In           bool `json:",omitempty"`
	// Counts are the set cells of each shard. Shards are the shards named by
	// the error.
	Counts, Shards []int `json:",omitempty"`
	// Cells are the cells of a Snapshot.
	Cells bits
	// Tried is the number of attempts that ran or may have run. Maybe is the
	// number of those without an answer.
	Tried, Maybe int
	// Scripts is the number of scripts an Add sent before its items, and
	// LostScripts that of those without an answer.
	Scripts     int `json:",omitempty"`
	LostScripts int `json:",omitempty"`
	// Refused is true if a BITFIELD was refused, or a transaction did not run in
	// full.
	Refused bool `json:",omitempty"`
	// Timed is true if the client knew the server's time throughout.
	Timed bool `json:",omitempty"`
	// Sent is how long before the end of the call its last attempt to send its
	// items ended.
	Sent time.Duration `json:",omitempty"`
	// Full is true if the error is bloom.ErrFull.
	Full bool `json:",omitempty"`
	// Early is true if the error allows items to be forgotten early.
	Early bool `json:",omitempty"`
	// Safe is true if upstash.SafeToRetry is true of the error.
	Safe bool `json:",omitempty"`
	// Lost is true if the call's process ended before the call returned.
	Lost bool `json:",omitempty"`
	// Over is LoadResult.OverCapacity.
	Over bool `json:",omitempty"`
	// Watched is set if the handles have a WarnFill. Alarm says what was wrong
	// with one.
	Watched *Watched `json:",omitempty"`
	Alarm   string   `json:",omitempty"`
	// Err is the error's text, for people.
	Err string
}

// End is how a call ended.
type End string

const (
	Answered  End = "answered"
	Early     End = "answered, may be forgotten early"
	Uncertain End = "uncertain"
	Missing   End = "no filter"
	Mismatch  End = "other data"
	Taken     End = "the other key holds something"
	Recreated End = "made again meanwhile"
	NoNumber  End = "saturated"
	Full      End = "full"
	NotRun    End = "did not run"
	Unknown   End = "may have run"
	Partly    End = "partly" // see States
)

// endOf returns the documented End of an error. cause is the cause of the
// call's context. What it wraps is about another call.
func endOf(err, cause error) End {
	var other *bloom.MismatchError
	switch {
	case err == nil:
		return Answered
	case cause != nil && errors.Is(err, cause):
	case errors.Is(err, bloom.ErrUncertain), errors.Is(err, upstash.ErrUncertain):
		// With or without ErrNoTTL.
		return Uncertain
	case errors.Is(err, bloom.ErrNoTTL), errors.Is(err, bloom.ErrNoGrowth):
		return Answered
	case errors.Is(err, bloom.ErrNotFound):
		return Missing
	case errors.Is(err, bloom.ErrKeyExists):
		return Taken
	case errors.Is(err, bloom.ErrRecreated):
		return Recreated
	case errors.Is(err, bloom.ErrSaturated):
		return NoNumber
	case errors.Is(err, bloom.ErrFull):
		return Full
	case errors.As(err, &other), errors.Is(err, bloom.ErrNotFilter):
		return Mismatch
	}
	if upstash.SafeToRetry(err) {
		return NotRun
	}
	return Unknown
}

// String formats the call for the history of a failed test.
func (c Call) String() string {
	s := string(c.Verb)
	if c.Key != 0 {
		s += "@2"
	}
	if len(c.Into) > 0 {
		s += fmt.Sprint("@", c.Into)
	}
	if c.Parts {
		s += " in parts"
	}
	if c.Other {
		s += " of another client"
	}
	s += "(" + strings.Join(c.Items, " ") + ")"
	if c.Shard != 0 {
		s += fmt.Sprint(" shard ", c.Shard)
	}
	if c.Turned {
		s += " turned"
	}
	if c.More != 0 {
		s += fmt.Sprint("+", c.More)
	}
	if c.Wait != 0 {
		s += c.Wait.String()
	}
	if c.Cause != 0 {
		s += fmt.Sprintf(" cause %d after %v", c.Cause, c.CauseAfter)
	}
	return s
}

// String formats the result for the history of a failed test.
func (r Result) String() string {
	s := string(r.End)
	if r.End == Answered || r.End == Early || r.End == Partly {
		s += fmt.Sprint(" ", r.Yes)
	}
	if r.End == Partly {
		s += fmt.Sprint(" ", r.States)
	}
	if len(r.Ends) > 0 {
		s += fmt.Sprintf(" %q", r.Ends)
	}
	if r.Count != 0 {
		s += fmt.Sprint(" count ", r.Count)
	}
	if r.Done != 0 {
		s += fmt.Sprint(" done ", r.Done, " unsure ", r.Unsure)
	}
	if len(r.Counts) > 0 {
		s += fmt.Sprint(" counts ", r.Counts)
	}
	if r.Cells != (bits{}) {
		s += " cells " + r.Cells.String()
	}
	if w := r.Watched; w != nil {
		s += w.String()
	}
	if r.Maybe > 0 {
		s += fmt.Sprintf(", %d attempts that may have run", r.Maybe)
	}
	if r.Err != "" {
		s += ": " + r.Err
	}
	return s
}
