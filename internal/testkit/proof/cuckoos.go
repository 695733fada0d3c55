package proof

import (
	"context"
	"errors"
	"fmt"
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
	Common
	Slots int // of a bucket: 2 to 5
	// Smudges lets other types write to the table by mistake.
	Smudges bool
}

func (c *Cuckoos) drawConfig(rng *rand.Rand, _ Theme) {
	c.Slots = pick(rng, []int{2, 2, 2, 3, 5})
	c.MustExist, c.MissingIsEmpty, c.Smudges = often(rng, 8), often(rng, 8), often(rng, 8)
	c.Losses, c.Second, c.Causes, c.OldServer = often(rng, 4), often(rng, 3), often(rng, 4), often(rng, 6)
	c.drawRegion(rng)
}

// config returns the Config of a handle.
func (c *Cuckoos) config(v variant) bloom.CuckooConfig {
	rate := map[int]float64{2: 6e-8, 3: 1e-4, 4: 1e-3, 5: 1e-2}[c.Slots]
	cfg := bloom.CuckooConfig{
		Capacity: 1, FPRate: rate, MustExist: c.MustExist, MissingIsEmpty: c.MissingIsEmpty,
		ReadsNearest: c.ReadsNearest,
	}
	if v == reshaped {
		cfg.Capacity, cfg.MustExist = 1000, true
	}
	return cfg
}

func (c *Cuckoos) make(cs []*upstash.Client, key string, v variant) (handle, error) {
	return bloom.NewCuckoo(cs[0], key, c.config(v))
}

func (c *Cuckoos) open(ctx context.Context, cs []*upstash.Client, key string, v variant) (handle, error) {
	cfg := c.config(v)
	cfg.Capacity, cfg.FPRate = 0, 0 // what the string says
	return bloom.OpenCuckoo(ctx, cs[0], key, cfg)
}

var cuckooVerbs = odds{
	{1, Create},
	{2, Open},
	{7, Add},
	{3, AddAll},
	{4, Remove},
	{2, RemoveAll},
	{4, Exists},
	{2, ExistsAll},
	{1, Count},
	{1, Stats},
	{1, Delete},
	{1, AddOther},
}

// Draw draws a call, and sometimes one that undoes it; or seldom a change from
// outside.
func (c *Cuckoos) Draw(rng *rand.Rand) []Call {
	return stories{
		{100, c.drawPlain},
		{7, c.drawOutside},
		{when(c.Losses, 15), func(rng *rand.Rand) []Call { return []Call{c.drawLoss(rng)} }},
	}.tell(rng)
}

func (c *Cuckoos) drawPlain(rng *rand.Rand) []Call {
	items := cuckooTableOf(c.Slots).items
	call := c.draw(rng, cuckooVerbs, itemCount, batch)
	if call.Verb.isBatch() { // of items that may be equal
		call.Items = call.Items[:0]
		for range batch + rng.IntN(2*c.Slots) {
			call.Items = append(call.Items, pick(rng, items))
		}
	} else if len(call.Items) > 0 {
		call.Items = []string{pick(rng, items)}
	}
	next := call.then(call.Verb, call.Key)
	switch {
	case call.Verb == Add && often(rng, 3):
		next.Verb = pick(rng, []Verb{Remove, Exists})
	case call.Verb == AddAll && often(rng, 3):
		next.Verb = pick(rng, []Verb{RemoveAll, ExistsAll})
	default:
		return c.follow(rng, call, c.Draw)
	}
	return []Call{call, next}
}

func (c *Cuckoos) drawOutside(rng *rand.Rand) []Call {
	call := Call{Verb: weighted(rng, odds{
		{2, Clear}, {1, Overwrite}, {when(c.Smudges, 1), Smudge}, {when(c.Smudges, 2), Forge},
	})}
	if verbs[call.Verb].items > 0 {
		call.Items = []string{pick(rng, cuckooTableOf(c.Slots).items)}
	}
	return []Call{call}
}

// Outside changes the database itself. The answer to a Forge says whether it
// changed a bit.
func (c *Cuckoos) Outside(dbs []*upstashtest.Server, key string, seed uint64, call Call) Result {
	if call.Verb != Forge {
		return c.Common.Outside(dbs, key, seed, call)
	}
	width := 53 / c.Slots
	fp := cuckooTableOf(c.Slots).place(call.Items[0])
	last := 192 + 53*(fp.low+1) - uint64(width*c.Slots) // the last slot
	// Another fingerprint with as many bits could not be told from it.
	reply, err := dbs[0].Exec(eval(`if redis.call('EXISTS', KEYS[1]) == 0 or
  redis.call('BITFIELD_RO', KEYS[1], 'GET', ARGV[1], ARGV[2])[1] ~= 0 then return 0 end
redis.call('BITFIELD', KEYS[1], 'SET', ARGV[1], ARGV[2], ARGV[3])
return 1`,
		key, fmt.Sprint("u", width), fmt.Sprint(last), fmt.Sprint(fp.fp))...)
	return outsideResult(err, reply == int64(1), 0)
}

// last looks up every item, adds one more, and counts the copies.
func (c *Cuckoos) last(int) []Call {
	return append(lastCalls(cuckooTableOf(c.Slots).items, true), Call{Verb: Count}, Call{Verb: Stats})
}

// The model of a Cuckoo counts the copies of each class of items. It therefore
// predicts every answer: new or not, found or not, removed or not, and full. A
// write of unknown outcome takes effect once or never, because no write is
// repeated. After another type has changed the table's cells, any answer is
// right, but Stats must report the damage. The rest is as in a Filter, with the
// class of an item as its cell.

// Describe returns the class of an item.
func (c *Cuckoos) Describe(item string) string {
	t := cuckooTableOf(c.Slots)
	return fmt.Sprintf("is of class %d, in buckets %b", t.class[item], t.within[t.class[item]])
}

// Steps makes the steps of all calls.
func (c *Cuckoos) Steps(h *History) ([]porcupine.Operation, error) {
	for n, call := range h.calls {
		if err := errors.Join(judge(call, cuckooRules), judge(call, callRules), judge(call, copiesRules)); err != nil {
			return nil, fmt.Errorf("call %d: %w", n, err)
		}
	}
	t := cuckooTableOf(c.Slots)
	s := splitter{rules: newRules(&c.Common, Staleness{}, h), cells: t.cell, own: t}
	return s.split()
}

// cuckooRules are of a Cuckoo, whose writes are sent once.
var cuckooRules = []rule[*called]{
	{"the items of one write have several states", func(c *called) bool {
		list := slices.Clone(c.result.States)
		return c.isOneWrite() && len(slices.Compact(list)) > 1
	}},
	{"a write was sent again although it may have run", func(c *called) bool {
		return c.isOneWrite() && c.result.Tried > 1
	}},
	{"uncertain, although no attempt may have run", func(c *called) bool {
		return c.result.End == Uncertain && c.result.Tried == 0
	}},
	{"a handle with another Config wrote", func(c *called) bool {
		return c.call.Verb == AddOther && (c.result.End == Answered || c.result.End == Full)
	}},
}

// isOneWrite reports whether a call to a Cuckoo is one request that writes.
func (c *called) isOneWrite() bool {
	v := c.call.Verb
	return v == Add || v == Remove || (v == AddAll || v == RemoveAll) && !c.call.Parts
}

// cell returns an item's class as a cell.
func (t *cuckooTable) cell(_ Verb, item string) bits {
	return bitsOf([]uint64{uint64(t.class[item])}, MaxBits)
}

// classOf returns the class that is an item's cell.
func classOf(item bits) int { return mathbits.TrailingZeros64(item[0]) }

// next is the effect of a step that is another one than a Filter's.
func (t *cuckooTable) next(p *step, st *state, at *slot) (ok, other bool) {
	switch {
	case p.end == full:
		return at.holds <= filter && (at.damaged || !t.holds(p, at)), true
	case p.end == mismatch, p.end == missing, p.end == taken:
		return false, false
	}
	switch p.verb {
	case Add, AddAll, Remove, RemoveAll:
		return t.write(p, st, at), true
	case Exists, ExistsAll, Count, Stats:
		return t.read(p, at), true
	case Smudge, Forge:
		if at.holds == nothing && p.verb == Smudge {
			at.holds = another
		}
		at.damaged = at.holds == filter && (at.damaged || p.yes[0])
		return true, true
	case AddOther: // it found its own filter
		return p.end == open, true
	}
	return false, false
}

// holds reports whether the table has room for the step's items.
func (t *cuckooTable) holds(p *step, at *slot) bool {
	copies := at.copies
	for _, item := range p.items {
		copies[classOf(item)]++
	}
	return t.fits(&copies)
}

func (t *cuckooTable) write(p *step, st *state, at *slot) bool {
	removes := p.verb == Remove || p.verb == RemoveAll
	if at.holds == nothing && !removes && !p.of.MustExist {
		*at = p.create()
	}
	if at.holds != filter {
		return p.end == open
	}
	if p.end == answered && !p.sameFilter(st, at) {
		return false
	}
	if !removes && !t.holds(p, at) { // a write of unknown outcome was refused
		return p.end == open || at.damaged
	}
	for i, item := range p.items {
		class := classOf(item)
		had := at.copies[class] > 0
		switch {
		case !removes:
			at.copies[class]++
		case had:
			at.copies[class]--
		}
		if p.end == answered && !at.damaged && p.yes[i] != (had == removes) {
			return false
		}
	}
	return true
}

func (t *cuckooTable) read(p *step, at *slot) bool {
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
	for i, item := range p.items {
		if p.yes[i] != (at.copies[classOf(item)] > 0) {
			return false
		}
	}
	return true
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

// cuckooRoom is the number of first buckets, shared by all items.
const cuckooRoom = 3

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
	g, err := (&Cuckoos{Slots: slots}).config(plain).Geometry()
	if err != nil || g.Hashes != slots {
		panic("proof: a table of other slots") // the sizes are constants
	}
	t := &cuckooTable{slots: slots, size: g.Bits / 53, class: make(map[string]int)}
	t.choose()
	classes := make(map[cuckooPlace]int)
	for _, item := range append(slices.Clone(t.items), itemAtLast) {
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
