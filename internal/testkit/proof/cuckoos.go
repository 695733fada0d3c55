package proof

import (
	"context"
	"errors"
	"fmt"
	"math"
	mathbits "math/bits"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/anishathalye/porcupine"
	"github.com/zeebo/xxh3"

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
	AtOnce
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
		Reads: c.Reads, BatchParallel: c.Parallel(),
	}
}

// configOf returns the Config of one of a pair of handles.
func (c *Cuckoos) configOf(parts bool) bloom.CuckooConfig {
	cfg := c.Config()
	if parts {
		cfg.BatchBytes = 1
	}
	return cfg
}

// A cuckooSession is the handles of a client, by key.
type cuckooSession struct {
	of      *Cuckoos
	client  *upstash.Client
	keys    [2]string
	handles [2]pair[bloom.Cuckoo]
	other   [2]*bloom.Cuckoo
}

// Open makes the handles of a client, whose observer must be Observe.
func (c *Cuckoos) Open(clients []*upstash.Client, key string) (Handles, error) {
	client := clients[0]
	s := &cuckooSession{of: c, client: client, keys: [2]string{key, secondKey(key)}}
	other := c.Config()
	other.Capacity, other.MustExist = 1000, true
	for i, key := range s.keys {
		made := s.handles[i].fill(func(parts bool) (*bloom.Cuckoo, error) {
			return bloom.NewCuckoo(client, key, c.configOf(parts))
		})
		var err error
		s.other[i], err = bloom.NewCuckoo(client, key, other)
		if err := errors.Join(made, err); err != nil {
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
	f := s.handles[c.Key].at(c).Load()
	switch c.Verb {
	case Open:
		return s.open(ctx, c)
	case AddOther:
		return single(s.other[c.Key].Add(ctx, c.Items[0]))
	case Stats:
		st, err := f.Stats(ctx)
		return Result{Count: int(st.Items), Yes: []bool{st.Damaged}}, err
	}
	return c.by(ctx, f, s.keys[1-c.Key])
}

var cuckooVerbs = []Verb{
	Create, Open, Open, Add, Add, Add, Add, Add, Add, Add, AddAll, AddAll, AddAll, Remove, Remove, Remove,
	Remove, RemoveAll, RemoveAll, Exists, Exists, Exists, Exists, ExistsAll, ExistsAll, Count, Stats, Delete,
	AddOther,
}

// Draw draws a call, and sometimes one that undoes it.
func (c *Cuckoos) Draw(rng *rand.Rand) []Call {
	table := cuckooTableOf(c.Slots)
	call := Call{Verb: pick(rng, cuckooVerbs)}
	if c.Renames {
		call.Key = rng.IntN(4) / 3
		if rng.IntN(8) == 0 {
			call.Verb = Rename
		}
	}
	if c.Causes && rng.IntN(3) == 0 {
		call.drawCause(rng)
	}
	n := verbs[call.Verb].items
	switch {
	case call.Verb == Open:
		call.Parts = rng.IntN(4) == 0
	case n == batch: // of items that may be equal
		n += rng.IntN(2 * c.Slots)
		call.Parts = rng.IntN(3) == 0
	}
	for range n {
		call.Items = append(call.Items, pick(rng, table.items))
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
	changes := []Verb{Clear, Clear, Overwrite}
	if c.Smudges {
		changes = append(changes, Smudge, Forge, Forge)
	}
	call.Verb = pick(rng, changes)
	if call.Verb == Smudge || call.Verb == Forge {
		call.Items = []string{pick(rng, cuckooTableOf(c.Slots).items)}
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

// The model of a Cuckoo counts the copies of each class of items. It therefore
// predicts every answer: new or not, found or not, removed or not, and full. A
// write of unknown outcome takes effect once or never, because no write is
// repeated. After another type has changed the table's cells, any answer is
// right, but Stats must report the damage.

// cuckooSlot is the model's knowledge of one key.
type cuckooSlot struct {
	holds  content
	copies [maxClasses]uint8
	birth  uint16
	// own has a bit for each Create whose unanswered attempt made this filter.
	own     uint64
	damaged bool
}

type cuckooState struct {
	at      [2]cuckooSlot
	batches [maxBatches]uint16
}

// cuckooStep is one atomic effect on the keys, with its client's answer.
type cuckooStep struct {
	of      *Cuckoos
	table   *cuckooTable
	verb    Verb
	key     int
	classes []int
	end     ending
	yes     []bool
	count   int
	birth   uint16
	call    uint64
	batch   int
}

// Initial is the state of two empty keys.
func (c *Cuckoos) Initial() any { return cuckooState{} }

// Hash mixes the fields that differ most.
func (c *Cuckoos) Hash(s any) uint64 {
	x := s.(cuckooState)
	h := uint64(0)
	for _, at := range x.at {
		for _, n := range at.copies {
			h = h*0x100000001b3 ^ uint64(n)
		}
		h ^= at.own<<17 ^ uint64(at.birth)<<3 ^ uint64(at.holds)
	}
	return h
}

// Describe returns the class of an item.
func (c *Cuckoos) Describe(item string) string {
	t := cuckooTableOf(c.Slots)
	return fmt.Sprintf("is of class %d, in buckets %b", t.class[item], t.within[t.class[item]])
}

// Next returns the state after the step, and reports whether the step's answers
// are right.
func (p *cuckooStep) Next(before any) (any, bool) {
	s := before.(cuckooState)
	ok := p.next(&s)
	return s, ok
}

func (p *cuckooStep) next(s *cuckooState) bool {
	at, other := &s.at[p.key], &s.at[1-p.key]
	switch p.end {
	case missing:
		return at.holds == nothing && !(p.of.MissingIsEmpty && p.verb.is(looksUp))
	case mismatch:
		return at.holds > filter || p.verb == AddOther && at.holds == filter
	case taken:
		return at.holds == filter && other.holds != nothing
	case full:
		return at.holds <= filter && (at.damaged || !p.fits(at))
	}
	switch p.verb {
	case Create:
		return p.make(at)
	case Add, AddAll, Remove, RemoveAll:
		return p.write(s, at)
	case Exists, ExistsAll, Count, Stats:
		return p.read(at)
	case Open:
		return at.holds == filter && p.yes[0]
	case Rename:
		if at.holds != filter || other.holds != nothing {
			return p.end == open
		}
		*other, *at = *at, cuckooSlot{}
	case Delete:
		if at.holds != filter {
			return p.end == open || at.holds == nothing && !p.yes[0]
		}
		*at = cuckooSlot{}
		return p.end == open || p.yes[0]
	case Clear:
		ok := p.yes[0] == (at.holds != nothing)
		*at = cuckooSlot{}
		return ok
	case Overwrite:
		*at = cuckooSlot{holds: foreign}
	case Smudge, Forge:
		if at.holds == nothing && p.verb == Smudge {
			at.holds = another
		}
		at.damaged = at.holds == filter && (at.damaged || p.yes[0])
	case AddOther: // it found its own filter
		return p.end == open
	}
	return true
}

func (p *cuckooStep) removes() bool { return p.verb == Remove || p.verb == RemoveAll }

// fits reports whether the table has room for the step's items.
func (p *cuckooStep) fits(at *cuckooSlot) bool {
	copies := at.copies
	for _, class := range p.classes {
		copies[class]++
	}
	return p.table.fits(&copies)
}

// make is the step of a Create.
func (p *cuckooStep) make(at *cuckooSlot) bool {
	if p.end == open || p.yes[0] {
		free := at.holds == nothing
		if free {
			*at = cuckooSlot{holds: filter, birth: p.birth, own: p.call}
		}
		return free || p.end == open
	}
	return at.holds == filter && at.own&p.call == 0
}

func (p *cuckooStep) write(st *cuckooState, at *cuckooSlot) bool {
	if at.holds == nothing && !p.removes() && !p.of.MustExist {
		*at = cuckooSlot{holds: filter, birth: p.birth}
	}
	if at.holds != filter {
		return p.end == open
	}
	if !p.sameFilter(st, at) {
		return false
	}
	if !p.removes() && !p.fits(at) { // a write of unknown outcome was refused
		return p.end == open || at.damaged
	}
	for i, class := range p.classes {
		had := at.copies[class] > 0
		switch {
		case !p.removes():
			at.copies[class]++
		case had:
			at.copies[class]--
		}
		if p.end == answered && !at.damaged && p.yes[i] != (had == p.removes()) {
			return false
		}
	}
	return true
}

// sameFilter reports whether the steps of a call with several requests meet the
// same filter.
func (p *cuckooStep) sameFilter(st *cuckooState, at *cuckooSlot) bool {
	if p.batch == 0 || p.end != answered {
		return true
	}
	of := &st.batches[p.batch-1]
	if *of != 0 && *of != at.birth {
		return false // another part went into a filter that is gone
	}
	*of = at.birth
	return true
}

func (p *cuckooStep) read(at *cuckooSlot) bool {
	switch {
	case at.holds == nothing && p.of.MissingIsEmpty && p.verb.is(looksUp):
		return p.count == 0 && !slices.Contains(p.yes, true)
	case at.holds != filter:
		return false
	case at.damaged:
		return p.verb != Stats || p.yes[0]
	}
	total := 0
	for _, n := range at.copies {
		total += int(n)
	}
	switch p.verb {
	case Count:
		return p.count == total
	case Stats:
		return p.count == total && !p.yes[0]
	}
	for i, class := range p.classes {
		if p.yes[i] != (at.copies[class] > 0) {
			return false
		}
	}
	return true
}

// cuckooSplitter turns calls into steps of the model.
type cuckooSplitter struct {
	of      *Cuckoos
	table   *cuckooTable
	steps   []porcupine.Operation
	batches int
}

// Steps makes the steps of all calls.
func (c *Cuckoos) Steps(h *History) ([]porcupine.Operation, error) {
	s := cuckooSplitter{of: c, table: cuckooTableOf(c.Slots)}
	for n, call := range h.calls {
		if err := errors.Join(c.sane(call), safe(call)); err != nil {
			return nil, fmt.Errorf("call %d: %w", n, err)
		}
		s.call(n, call)
	}
	return s.steps, nil
}

// sane returns an error for a result no history explains.
func (c *Cuckoos) sane(o *called) error {
	r := o.result
	writes := o.call.Verb == Add || o.call.Verb == Remove ||
		(o.call.Verb == AddAll || o.call.Verb == RemoveAll) && !o.call.Parts
	for i := range r.States {
		if writes && r.States[i] != r.States[0] {
			return errors.New("the items of one write have several states")
		}
	}
	switch {
	case writes && r.Tried > 1:
		return errors.New("a write was sent again although it may have run")
	case r.End == Uncertain && r.Tried == 0:
		return errors.New("uncertain, although no attempt may have run")
	case o.call.Verb == AddOther && (r.End == Answered || r.End == Full):
		return errors.New("a handle with another Config wrote")
	}
	return nil
}

// call makes the steps of one call.
func (s *cuckooSplitter) call(n int, c *called) {
	items := seq(len(c.call.Items))
	reads := c.call.Verb == ExistsAll
	if !c.call.Parts && !(reads && s.of.Lag) {
		if reads { // some items may have no answer
			items = slices.DeleteFunc(items, func(i int) bool { return stateOf(c.result, i) != bloom.ItemDone })
		}
		if !reads || len(items) > 0 {
			s.oneStep(n, c, items, 0)
		}
		return
	}
	batch := 0
	if !reads && s.batches < maxBatches {
		s.batches++
		batch = s.batches
	}
	refused := 0
	for _, i := range items {
		if stateOf(c.result, i) == bloom.ItemNotDone {
			refused++
		}
	}
	for _, i := range items {
		// Of several not done, one found the filter full. Nobody knows which.
		if stateOf(c.result, i) != bloom.ItemNotDone || refused == 1 {
			s.oneStep(n, c, []int{i}, batch)
		}
	}
}

// oneStep adds the steps of some items of a call.
func (s *cuckooSplitter) oneStep(n int, c *called, at []int, batch int) {
	r, first := c.result, 0
	if len(at) > 0 {
		first = at[0]
	}
	state := stateOf(r, first)
	p := cuckooStep{
		of: s.of, table: s.table, verb: c.call.Verb, key: c.call.Key, batch: batch, end: open,
		yes: answersOf(r, at), count: r.Count, birth: uint16(n*maxItems + 1),
	}
	for _, i := range at {
		p.birth = uint16(n*maxItems + i + 1)
		p.classes = append(p.classes, s.table.class[c.call.Items[i]])
	}
	strays := 0 // attempts that may take effect later
	switch {
	case state == bloom.ItemDone:
		p.end = endingOf(r, state)
		if c.call.Verb == Create {
			strays = r.Maybe
		}
	case state == bloom.ItemNotDone && r.Full:
		p.end = full
	case state == bloom.ItemNotDone, c.call.Verb.is(reads):
		return
	case c.call.Verb == Create:
		strays = max(1, min(r.Maybe+1, r.Tried))
	default:
		strays = 1
	}
	if strays > 0 && p.verb == Create && n < 64 {
		p.call = 1 << n
	}
	// A handle that remembers other data refuses a write without a request.
	remembered := p.end == mismatch && !c.call.Verb.is(reads) && c.call.Verb != Rename && c.call.Verb != Delete
	if p.end != open && !remembered {
		s.add(n, p, s.earliest(c, p), c.to)
	}
	p.end, p.batch = open, 0
	for range strays {
		s.add(n, p, c.from, math.MaxInt64)
	}
}

func (s *cuckooSplitter) add(n int, p cuckooStep, from, to int64) {
	s.steps = append(s.steps, porcupine.Operation{ClientId: n, Input: &p, Call: from, Return: to})
}

// earliest returns the first place at which a step may have taken effect: the
// beginning of the call, unless a region may have answered.
func (s *cuckooSplitter) earliest(c *called, p cuckooStep) int64 {
	yes := p.end == answered && p.verb != Count && !slices.Contains(p.yes, false)
	switch {
	case !s.of.Lag || !c.call.Verb.is(reads): // the primary answers
	case p.verb == Open: // so too, unless the database refuses BITFIELD
		if c.result.Refused {
			return 0
		}
	case p.verb == Stats, s.of.Reads == bloom.ReadsNearest, yes, p.end == mismatch:
		return 0
	}
	return c.from
}

// A cuckooTable is the model's knowledge of a table's geometry. Its items share
// few buckets, so they have to be moved and may find no room.
//
// The model does not place copies. They fit if no set of buckets must hold more
// of them than it has slots. The search of an Add then finds room: by Hall's
// theorem, and because a shortest path of moves augments a matching.
type cuckooTable struct {
	slots int
	size  uint64 // in buckets
	items []string
	// class numbers the items. Items of one class share the fingerprint and
	// both buckets, so no table can tell them apart.
	class map[string]int
	// within holds, for each class, the set of its buckets.
	within  []uint64
	buckets []uint64
}

const (
	maxClasses = 8
	// cuckooRoom is the number of first buckets, shared by all items.
	cuckooRoom = 3
	cuckooLast = "item-at-last"
)

var cuckooTables = func() (t [6]func() *cuckooTable) {
	for slots := range t {
		t[slots] = sync.OnceValue(func() *cuckooTable { return newCuckooTable(slots) })
	}
	return t
}()

func cuckooTableOf(slots int) *cuckooTable { return cuckooTables[slots]() }

// A cuckooPlace is an item's fingerprint and its buckets.
type cuckooPlace struct{ fp, low, high uint64 }

// place computes an item's place from the documentation of the format.
func (t *cuckooTable) place(item string) cuckooPlace {
	h := xxh3.Hash128Seed([]byte(item), 0)
	fp, a := 1+h.Lo%(1<<(53/t.slots)-1), h.Hi%t.size
	b := (fp*96280213%t.size + t.size - a) % t.size
	return cuckooPlace{fp, min(a, b), max(a, b)}
}

func newCuckooTable(slots int) *cuckooTable {
	g, err := (&Cuckoos{Slots: slots}).Config().Geometry()
	if err != nil || g.Hashes != slots {
		panic("proof: a table of other slots") // the sizes are constants
	}
	t := &cuckooTable{slots: slots, size: g.Bits / 53, class: make(map[string]int)}
	t.choose()
	classes := make(map[cuckooPlace]int)
	for _, item := range append(slices.Clone(t.items), cuckooLast) {
		p := t.place(item)
		if _, ok := classes[p]; !ok {
			classes[p] = len(t.within)
			t.within = append(t.within, t.set(p.low)|t.set(p.high))
		}
		t.class[item] = classes[p]
	}
	return t
}

// choose chooses items whose buckets are among the first ones. If the
// fingerprints are short, two of the items are in one class.
func (t *cuckooTable) choose() {
	seen := make(map[cuckooPlace]string)
	for n := 0; len(t.items) < itemCount; n++ {
		item := itemName(n)
		p := t.place(item)
		if p.high >= cuckooRoom {
			continue
		}
		twin, ok := seen[p]
		seen[p] = item
		switch {
		case len(t.items) < itemCount-2 || t.slots < 5:
			t.items = append(t.items, item)
		case ok && !slices.Contains(t.items, twin):
			t.items = append(t.items, twin, item)
		}
	}
}

// set returns the set with only this bucket.
func (t *cuckooTable) set(bucket uint64) uint64 {
	for i, b := range t.buckets {
		if b == bucket {
			return 1 << i
		}
	}
	t.buckets = append(t.buckets, bucket)
	return 1 << (len(t.buckets) - 1)
}

// fits reports whether a table has room for these numbers of copies of each
// class.
func (t *cuckooTable) fits(copies *[maxClasses]uint8) bool {
	for set := range uint64(1) << len(t.buckets) {
		n := 0
		for class, within := range t.within {
			if within&^set == 0 {
				n += int(copies[class])
			}
		}
		if n > t.slots*mathbits.OnesCount64(set) {
			return false
		}
	}
	return true
}

// open opens the filter.
func (s *cuckooSession) open(ctx context.Context, c Call) (Result, error) {
	cfg := s.of.configOf(c.Parts)
	cfg.Capacity, cfg.FPRate = 0, 0 // what the string says
	f, err := bloom.OpenCuckoo(ctx, s.client, s.keys[c.Key], cfg)
	return adopt(s.handles[c.Key].at(c), f, err)
}
