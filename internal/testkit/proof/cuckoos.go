package proof

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Cuckoos describes the handles of one history of a Cuckoo.
type Cuckoos struct {
	Slots          int // of a bucket: 2 to 5
	MustExist      bool
	MissingIsEmpty bool
	Reads          bloom.Reads
	// Lag lets a region lag behind the primary.
	Lag bool
	// Smudges lets other types write to the table by mistake.
	Smudges bool
	// Renames allows calls at the second key.
	Renames bool
	// Causes ends contexts with the errors of other calls.
	Causes bool
	// OldServer makes the server refuse the flags of scripts.
	OldServer bool
}

// DrawCuckoos draws the Config of a history.
func DrawCuckoos(rng *rand.Rand) *Cuckoos {
	often := func(n int) bool { return rng.IntN(n) == 0 }
	c := &Cuckoos{
		Slots:     []int{2, 2, 2, 3, 5}[rng.IntN(5)],
		MustExist: often(8), MissingIsEmpty: often(8),
		Smudges: often(8), Renames: often(3), Causes: often(4), OldServer: often(6),
	}
	if often(4) {
		c.Lag, c.Reads = true, bloom.Reads(rng.IntN(3))
	}
	return c
}

// Config returns the Config of the handles.
func (c *Cuckoos) Config() bloom.CuckooConfig {
	rate := map[int]float64{2: 6e-8, 3: 1e-4, 4: 1e-3, 5: 1e-2}[c.Slots]
	return bloom.CuckooConfig{
		Capacity: 1, FPRate: rate, MustExist: c.MustExist, MissingIsEmpty: c.MissingIsEmpty,
		Reads: c.Reads, BatchParallel: 2,
	}
}

// A cuckooSession is the handles of a client, by key.
type cuckooSession struct {
	of           *Cuckoos
	client       *upstash.Client
	keys         [2]string
	whole, parts [2]atomic.Pointer[bloom.Cuckoo]
	other        [2]*bloom.Cuckoo
}

// Open makes the handles of a client, whose observer must be Observe.
func (c *Cuckoos) Open(clients []*upstash.Client, key string) (Handles, error) {
	client := clients[0]
	s := &cuckooSession{of: c, client: client, keys: [2]string{key, secondKey(key)}}
	parts, other := c.Config(), c.Config()
	parts.BatchBytes = 1
	other.Capacity, other.MustExist = 1000, true
	for i, key := range s.keys {
		var errs [3]error
		one, err := bloom.NewCuckoo(client, key, c.Config())
		s.whole[i].Store(one)
		errs[0] = err
		one, errs[1] = bloom.NewCuckoo(client, key, parts)
		s.parts[i].Store(one)
		s.other[i], errs[2] = bloom.NewCuckoo(client, key, other)
		if err := errors.Join(errs[:]...); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Run makes one call.
func (s *cuckooSession) Run(ctx context.Context, c Call) Result {
	return runCall(ctx, c, func(ctx context.Context) (Result, error) {
		r, err := s.call(ctx, c)
		r.Full = errors.Is(cause(err), bloom.ErrFull)
		return r, err
	})
}

func (s *cuckooSession) call(ctx context.Context, c Call) (Result, error) {
	f := s.whole[c.Key].Load()
	if c.Parts {
		f = s.parts[c.Key].Load()
	}
	switch c.Verb {
	case Open:
		return s.open(ctx, c)
	case AddOther:
		return single(s.other[c.Key].Add(ctx, c.Items[0]))
	case Remove:
		return single(f.Remove(ctx, c.Items[0]))
	case RemoveAll:
		return many(f.RemoveAll(ctx, c.Items))
	case Count:
		n, err := f.Count(ctx)
		return Result{Count: int(n)}, err
	case Stats:
		st, err := f.Stats(ctx)
		return Result{Count: int(st.Items), Yes: []bool{st.Damaged}}, err
	case Rename:
		return none(f.Rename(ctx, s.keys[1-c.Key]))
	}
	return common(ctx, f, c)
}

var cuckooVerbs = []Verb{
	Create, Open, Open, Add, Add, Add, Add, Add, Add, Add, AddAll, AddAll, AddAll, Remove, Remove, Remove,
	Remove, RemoveAll, RemoveAll, Exists, Exists, Exists, Exists, ExistsAll, ExistsAll, Count, Stats, Delete,
	AddOther,
}

// Draw draws a call, and sometimes one that undoes it.
func (c *Cuckoos) Draw(rng *rand.Rand) []Call {
	table := cuckooTableOf(c.Slots)
	call := Call{Verb: cuckooVerbs[rng.IntN(len(cuckooVerbs))]}
	if c.Renames {
		call.Key = rng.IntN(4) / 3
		if rng.IntN(8) == 0 {
			call.Verb = Rename
		}
	}
	if c.Causes && rng.IntN(3) == 0 {
		call.drawCause(rng)
	}
	switch call.Verb {
	case Open:
		call.Parts = rng.IntN(4) == 0
	case Add, AddOther, Remove, Exists:
		call.Items = []string{table.items[rng.IntN(len(table.items))]}
	case AddAll, RemoveAll, ExistsAll:
		for range 2 + rng.IntN(2*c.Slots) {
			call.Items = append(call.Items, table.items[rng.IntN(len(table.items))])
		}
		call.Parts = rng.IntN(3) == 0
	}
	next := call
	next.Cause = 0
	switch {
	case call.Verb == Open: // and uses the handle at once
		return append([]Call{call}, c.Draw(rng)...)
	case rng.IntN(3) > 0:
	case call.Verb == Add:
		next.Verb = []Verb{Remove, Exists}[rng.IntN(2)]
		return []Call{call, next}
	case call.Verb == AddAll:
		next.Verb = []Verb{RemoveAll, ExistsAll}[rng.IntN(2)]
		return []Call{call, next}
	case call.Verb == Rename:
		next.Key = 1 - call.Key
		return []Call{call, next}
	}
	return []Call{call}
}

// DrawOutside occasionally draws a change from outside.
func (c *Cuckoos) DrawOutside(rng *rand.Rand) (call Call, ok bool) {
	verbs := []Verb{Clear, Clear, Overwrite}
	if c.Smudges {
		verbs = append(verbs, Smudge, Forge, Forge)
	}
	call.Verb = verbs[rng.IntN(len(verbs))]
	if items := cuckooTableOf(c.Slots).items; call.Verb == Smudge || call.Verb == Forge {
		call.Items = []string{items[rng.IntN(len(items))]}
	}
	return call, rng.IntN(15) == 0
}

// Outside changes the database itself. The answer to a Smudge or a Forge says
// whether it changed a bit.
func (c *Cuckoos) Outside(dbs []*upstashtest.Server, key string, seed uint64, call Call) Result {
	s := dbs[0]
	var reply any
	var err error
	switch call.Verb {
	case Smudge:
		reply, err = s.Exec(Filters{}.smudge(key, call.Items[0])...)
		if before, ok := reply.([]any); ok {
			const heads = 2
			reply = slices.Contains(before[heads:], any(int64(0)))
		}
	case Forge:
		width := 53 / c.Slots
		fp := cuckooTableOf(c.Slots).place(call.Items[0])
		last := 192 + 53*(fp.low+1) - uint64(width*c.Slots) // the last slot
		// Another fingerprint with as many bits could not be told from it.
		reply, err = s.Exec("EVAL", `if redis.call('EXISTS', KEYS[1]) == 0 or
  redis.call('BITFIELD_RO', KEYS[1], 'GET', ARGV[1], ARGV[2])[1] ~= 0 then return 0 end
redis.call('BITFIELD', KEYS[1], 'SET', ARGV[1], ARGV[2], ARGV[3])
return 1`,
			"1", key, fmt.Sprint("u", width), fmt.Sprint(last), fmt.Sprint(fp.fp))
		reply = reply == int64(1)
	default:
		return Filters{}.Outside(dbs, key, seed, call)
	}
	if err != nil {
		return Result{End: Unknown, Err: err.Error()}
	}
	return Result{End: Answered, Yes: []bool{reply == true}}
}

// Finish adds last calls to the history, after all faults: a look-up of every
// item, one more Add, Count and Stats. s is a new client's.
func (c *Cuckoos) Finish(
	ctx context.Context, h *History, _ []*upstashtest.Server, _ string, s Handles,
) error {
	for _, call := range []Call{
		{Verb: Open},
		{Verb: ExistsAll, Items: cuckooTableOf(c.Slots).items},
		{Verb: Add, Items: []string{cuckooLast}},
		{Verb: Count},
		{Verb: Stats},
	} {
		r := h.Do("at last", "at last", call, func(c Call) Result { return s.Run(ctx, c) })
		switch r.End {
		case Answered, Mismatch, Missing, Full:
		case Partly: // of a key that holds nothing, or other data
			if call.Verb == ExistsAll {
				continue
			}
			fallthrough
		default:
			if call.Verb != Add && r.End == NotRun { // a fault may wait for such a request
				continue
			}
			return fmt.Errorf("a call that met no fault: %v: %v", call, r)
		}
	}
	return nil
}
