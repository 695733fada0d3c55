package proof

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/upbloom/upbloom/bloom"
)

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
		return at.holds == nothing && !(p.of.MissingIsEmpty && p.looksUp())
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

func (p *cuckooStep) looksUp() bool {
	return p.verb == Exists || p.verb == ExistsAll || p.verb == Count
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
	case at.holds == nothing && p.of.MissingIsEmpty && p.looksUp():
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
	case state == bloom.ItemNotDone, c.looksUp():
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
	remembered := p.end == mismatch && !c.looksUp() && c.call.Verb != Rename && c.call.Verb != Delete
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

// looksUp reports whether a call changes nothing.
func (c *called) looksUp() bool {
	switch c.call.Verb {
	case Exists, ExistsAll, Count, Stats, Open:
		return true
	}
	return false
}

// earliest returns the first place at which a step may have taken effect: the
// beginning of the call, unless a region may have answered.
func (s *cuckooSplitter) earliest(c *called, p cuckooStep) int64 {
	yes := p.end == answered && p.verb != Count && !slices.Contains(p.yes, false)
	switch {
	case !s.of.Lag || !c.looksUp(): // the primary answers
	case p.verb == Open: // so too, unless the database refuses BITFIELD
		if c.result.Refused {
			return 0
		}
	case p.verb == Stats, s.of.Reads == bloom.ReadsNearest, yes, p.end == mismatch:
		return 0
	}
	return c.from
}
