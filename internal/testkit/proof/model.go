package proof

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/upbloom/upbloom/bloom"
)

// content is the kind of data at a key.
type content uint8

const (
	nothing content = iota
	filter          // the filter of the calls
	another         // a filter of another geometry
	foreign         // another program's data
	sibling         // a shard of a Config with another number of shards
	table           // a filter of another type: a Cuckoo
)

// isKept reports whether a Replace leaves the data alone.
func (c content) isKept() bool { return c == foreign || c == table }

// slot is the model's knowledge of one key.
type slot struct {
	holds content
	bits  bits
	// birth is the model's birth number: the step that made the filter. It is 0
	// for a filter of another program until a write gives it one.
	birth uint16

	// ttl is true if the filter has a TTL, or gets one with the next write.
	// unsettled is true if only a Replace gives it one: with MustExist, no
	// other write to an existing filter does.
	ttl, unsettled bool

	// own has a bit for each call whose unanswered attempt took effect in this
	// filter.
	own uint64

	// Of a Cuckoo: the copies of each class of items, and whether another type
	// has changed its cells.
	copies  [maxClasses]uint8
	damaged bool
}

// maxClasses is how many classes of items a Cuckoo has at most.
const maxClasses = 8

// state is the state of the model: two keys. States are compared with ==.
type state struct {
	at   [2]slot
	kept [2]slot // by Keep; the first by TakeBackup
	// batches holds, for each call of several requests, the birth of its filter
	// or 0.
	batches [maxBatches]uint16
}

const maxBatches = 8

// Initial is the state of two empty keys.
func (b *Common) Initial() any { return state{} }

// Hash mixes the fields that differ most.
func (b *Common) Hash(s any) uint64 {
	x := s.(state)
	h := uint64(0)
	for _, at := range x.at {
		h = h*0x100000001b3 ^ at.bits[0]*0x9e3779b97f4a7c15 ^ at.bits[1]*0xc2b2ae3d27d4eb4f
		h ^= at.own<<7 ^ uint64(at.birth)<<3 ^ uint64(at.holds)
		h ^= binary.LittleEndian.Uint64(at.copies[:]) * 0x9e3779b97f4a7c15
	}
	return h
}

// create returns the empty filter of the step. All attempts of a request have
// the same birth number.
func (p *step) create() slot { return slot{holds: filter, birth: p.birth, ttl: p.of.TTL != 0} }

// add sets an item's bits and reports whether one of them was 0.
func (s *slot) add(item bits) (isNew bool) {
	isNew = !s.bits.has(item)
	s.bits = s.bits.with(item)
	return isNew
}

// ending says whether a step took effect, and what its answer was.
type ending uint8

const (
	answered  ending = iota
	uncertain        // it took effect, but everything was there before
	open             // it may take effect later, without an answer
	missing          // the answer: there is no filter
	mismatch         // the answer: the key holds other data
	taken            // the answer: the other key is not free
	noNumber         // the answer: the filter is saturated
	full             // the answer: an item has no place
)

// step is one atomic effect on the keys, with its client's answer.
type step struct {
	of    *Common
	geo   *bloom.Geometry
	verb  Verb
	key   int
	items []bits
	end   ending
	// yes holds the answers, one for each item or a single one. count and cells
	// are the Result's.
	yes   []bool
	count int
	// unsure says which items of a write may have been new, if others are not.
	unsure []bool
	cells  bits
	// filling is how many bits behind the last cell an Inspect may count.
	filling int
	// atLeast tells the two steps of a Snapshot apart.
	atLeast bool
	// birth differs for each request that can make a filter.
	birth uint16
	// call is the bit of the step's call in slot.own.
	call uint64
	// batch is 1 + the index in state.batches, or 0 for a call of one request.
	batch int
	// weigh returns how many cells of the string the bits represent.
	weigh func(bits) int
	// sized is true for a Load that says whether the filter is over its Capacity.
	// over is its answer.
	sized, over bool
	// special is the model of a type in which some steps do something else.
	special special
	part    int
	// after is what Next works on: a search tries most steps in vain.
	after state
}

// Part is the number of the step's independent model.
func (p *step) Part() int { return p.part }

// Next returns the state after the step, and reports whether the step's answers
// are right.
func (p *step) Next(before any) (any, bool) {
	p.after = before.(state)
	if !p.next(&p.after) {
		return nil, false
	}
	return p.after, true
}

// special is the part of a model for another type than a Filter. other is false
// if a step does what it does to a Filter.
type special interface {
	next(p *step, st *state, at *slot) (ok, other bool)
}

// An effect is what a step of a verb does to the keys. It reports whether the
// step's answers are right.
type effect func(p *step, k keys) bool

// keys are the state, with the step's key and the other one.
type keys struct {
	*state
	at, other *slot
}

func (p *step) next(s *state) bool {
	k := keys{s, &s.at[p.key], &s.at[1-p.key]}
	if p.special != nil {
		if ok, other := p.special.next(p, s, k.at); other {
			return ok
		}
	}
	switch p.end {
	case missing:
		return p.missing(k.at)
	case mismatch:
		return p.mismatch(k.at)
	case taken:
		if p.verb == RestoreBackup {
			return k.at.holds != nothing
		}
		return k.at.holds == filter && k.other.holds != nothing
	case noNumber:
		return k.at.holds == filter && p.weigh(k.at.bits) == int(p.geo.Bits)
	}
	does := verbs[p.verb].does
	return does == nil || does(p, k)
}

func (p *step) missing(at *slot) bool {
	if p.verb == Load {
		return p.lacks(at)
	}
	return at.holds == nothing && !(p.of.MissingIsEmpty && p.verb.is(looksUp))
}

// lacks reports whether the filter is missing and no write may make it.
func (p *step) lacks(at *slot) bool { return p.of.MustExist && at.holds == nothing }

func (p *step) mismatch(at *slot) bool {
	switch p.verb {
	case OtherCreate, OtherAdd, OtherExists, OtherDelete:
		return at.holds != nothing && at.holds != sibling
	}
	return at.holds > filter
}

// stats is the step of Stats, whose count may be unknown.
func (p *step) stats(k keys) bool {
	return k.at.holds == filter && (p.count < 0 || p.weigh(k.at.bits) == p.count)
}

// cardinality is the step of a Cardinality, which estimates by the set cells. Only
// a Filter's is predicted.
func (p *step) cardinality(k keys) bool {
	if k.at.holds == nothing && p.of.MissingIsEmpty {
		return p.count == 0
	}
	return k.at.holds == filter &&
		(p.geo.Bits == 0 || int(math.Round(p.geo.EstimateItems(uint64(p.weigh(k.at.bits))))) == p.count)
}

// is reports whether the step's single answer is this one, or unknown.
func (p *step) is(answer bool) bool { return p.end == open || len(p.yes) == 0 || p.yes[0] == answer }

// lifetime is the step of a Persist or a SetTTL.
func (p *step) lifetime(k keys) bool {
	s := k.at
	switch {
	case s.holds > filter:
		return p.end == open
	case p.end == uncertain && p.verb == SetTTL:
		return s.holds == nothing
	case s.holds == nothing:
		return p.end == open || p.end == uncertain || p.end == answered && !p.yes[0] && p.call == 0
	}
	had := s.ttl
	s.ttl, s.unsettled = p.verb == SetTTL, false
	if p.end != answered {
		return true
	}
	if p.verb == Persist && !p.yes[0] && p.call != 0 {
		return false // perhaps an attempt of its own removed the TTL
	}
	// Persist finds no TTL if none is settled yet. It must not find one if
	// there cannot be one.
	return p.verb == SetTTL && p.yes[0] || p.verb == Persist && (had || !p.yes[0])
}

// make is the step of a Create.
func (p *step) make(k keys) bool {
	s := k.at
	switch {
	case p.end == open:
		if s.holds == nothing {
			*s = p.create()
			s.own |= p.call
		}
		return true
	case p.end == uncertain:
		return s.holds == filter
	case len(p.yes) == 0: // made or found
		if s.holds == nothing {
			*s = p.create()
		}
		return s.holds == filter
	case p.yes[0]:
		if s.holds != nothing {
			return false
		}
		*s = p.create()
		return true
	}
	return s.holds == filter && s.own&p.call == 0
}

// add permits the answer "seen" only if no earlier attempt of the same call can
// be the reason.
func (p *step) add(k keys) bool {
	s := k.at
	if s.holds > filter {
		return p.end == open
	}
	if s.holds == nothing {
		if p.end == uncertain || p.of.MustExist {
			return p.end == open
		}
		*s = p.create()
	}
	if s.birth == 0 && !p.of.MustExist {
		s.birth = p.birth
	}
	own, news := s.own&p.call != 0, 0
	for i, item := range p.items {
		again := slices.Contains(p.items[:i], item) // then it is seen, for certain
		isNew := s.add(item)
		if isNew {
			news++
		}
		switch {
		case p.end == answered && i < len(p.unsure) && p.unsure[i]:
			if isNew {
				return false
			}
		case p.end == answered && p.verb == AddSeq: // only their number is known
		case p.end == answered && p.yes[i] != isNew,
			p.end == answered && !p.yes[i] && own && !again,
			p.end == uncertain && isNew:
			return false
		}
	}
	if p.end == open {
		s.own |= p.call
		return true
	}
	if p.verb == AddSeq && p.end == answered && p.count >= 0 && p.count != news {
		return false
	}
	return p.end != answered || p.sameFilter(k.state, s)
}

// sameFilter reports whether the steps of a call with several requests meet the
// same filter.
func (p *step) sameFilter(st *state, s *slot) bool {
	if p.batch == 0 || s.birth == 0 {
		return true
	}
	of := &st.batches[p.batch-1]
	if *of != 0 && *of != s.birth {
		return false // another part went into a filter that is gone
	}
	*of = s.birth
	return true
}

// snapshot is one of the two steps of a Snapshot, which is not of one moment:
// once the filter had no more cells than the copy, and once it had all of them.
func (p *step) snapshot(k keys) bool {
	ok := p.cells.has(k.at.bits)
	if p.atLeast {
		ok = k.at.bits.has(p.cells)
	}
	return ok && k.at.holds == filter && p.sameFilter(k.state, k.at)
}

// opens is the step of an Open, which takes the geometry of what it finds, even
// if that is another filter's.
func (p *step) opens(k keys) bool {
	switch {
	case len(p.yes) == 0:
		return true
	case p.yes[0]:
		return k.at.holds == filter
	}
	return k.at.holds == another || k.at.holds == sibling
}

// inspects is the step of an Inspect, which knows no Config.
func (p *step) inspects(k keys) bool {
	if p.yes[0] {
		more := p.count - p.weigh(k.at.bits)
		return k.at.holds == filter && 0 <= more && more <= p.filling
	}
	return k.at.holds == another || k.at.holds == sibling || k.at.holds == table
}

func (p *step) exists(k keys) bool {
	if k.at.holds == nothing && p.of.MissingIsEmpty {
		return !slices.Contains(p.yes, true)
	}
	if k.at.holds != filter {
		return false
	}
	for i, item := range p.items {
		if p.yes[i] != k.at.bits.has(item) {
			return false
		}
	}
	return true
}

// anySeen reports whether one of the answers of an Add is "seen".
func anySeen(yes []bool) bool { return slices.Contains(yes, false) }

// A Load, a Replace, a Rename and a Delete move a whole filter. They take effect
// once: a second attempt must find nothing to do.

// load is the step of a Load or a Merge. Its answers are whether it
// made the filter, and how many cells were 0 before.
func (p *step) load(k keys) bool {
	s := k.at
	if s.holds > filter || p.lacks(s) {
		return p.end == open
	}
	made := s.holds == nothing
	if made {
		*s = p.create()
	}
	before := p.weigh(s.bits)
	s.bits = s.bits.with(p.items[0])
	if p.end == open {
		return true
	}
	if p.sized && p.over != tooFull(*p.geo, p.weigh(s.bits)) {
		return false
	}
	return p.yes[0] == made && (p.count < 0 || p.count == p.weigh(s.bits)-before)
}

func (p *step) replace(k keys) bool {
	if k.at.holds.isKept() {
		return p.end == open
	}
	ttl := k.at.ttl
	if k.at.holds != filter || k.at.unsettled {
		ttl = p.of.TTL != 0
	}
	*k.at = slot{holds: filter, bits: p.items[0], birth: p.birth, ttl: ttl}
	return true
}

func (p *step) rename(k keys) bool {
	if k.at.holds != filter || k.other.holds != nothing {
		return p.end == open
	}
	*k.other, *k.at = *k.at, slot{}
	return true
}

// remove is the step of a Delete, which removes the filter alone.
func (p *step) remove(k keys) bool {
	ok := k.at.holds <= filter && p.is(k.at.holds == filter) || p.end == open
	if k.at.holds == filter {
		*k.at = slot{}
	}
	return ok
}

// backedUp is the step of the history's first TakeBackup, and of others.
func (p *step) backedUp(k keys) bool {
	if p.yes[0] {
		k.kept[0] = *k.at
	}
	return k.at.holds == filter
}

// restored is the step of a RestoreBackup. The filter has what the Backup has, with
// the birth number of this call and the TTL of the Config, if the key was free.
func (p *step) restored(k keys) bool {
	kept := &k.kept[0]
	if k.at.holds != nothing || kept.holds == nothing {
		return p.end == open
	}
	*k.at = slot{holds: kept.holds, bits: kept.bits, birth: p.birth, ttl: p.of.TTL != 0}
	return p.is(true)
}

// The steps of calls of a Config with another number of shards.

func (p *step) siblingMade(k keys) bool {
	if k.at.holds == nothing {
		*k.at = slot{holds: sibling}
	}
	return p.siblingAsked(k)
}

func (p *step) siblingAsked(k keys) bool { return p.end == open || k.at.holds == sibling }

func (p *step) siblingRemoved(k keys) bool {
	if k.at.holds == sibling {
		*k.at = slot{}
	}
	return p.end == open || k.at.holds == nothing
}

// The steps of changes from outside.

func (p *step) cleared(k keys) bool {
	ok := p.is(k.at.holds != nothing)
	*k.at = slot{}
	return ok
}

// expired is the step of an Expire of the filter alone: nothing sets a TTL on other
// data.
func (p *step) expired(k keys) bool {
	if !p.yes[0] {
		return true
	}
	ok := k.at.timed()
	*k.at = slot{}
	return ok
}

func (p *step) lapsed(k keys) bool {
	if k.at.timed() {
		*k.at = slot{}
	}
	return true
}

// timed reports whether there is a filter with a TTL.
func (s *slot) timed() bool { return s.ttl && s.holds == filter }

func (p *step) hasTTL(k keys) bool { return p.is(k.at.timed()) }

func (p *step) overwritten(k keys) bool {
	*k.at = slot{holds: foreign}
	if p.is(true) {
		k.at.holds = table
	}
	return true
}

func (p *step) planted(k keys) bool {
	*k.at = slot{
		holds: filter, bits: p.items[0],
		ttl: p.of.TTL != 0 && !p.of.MustExist, unsettled: p.of.MustExist,
	}
	return true
}

// smudged is the step of a Smudge. It writes the header if nothing is there, and sets
// the bits in any case.
func (p *step) smudged(k keys) bool {
	switch k.at.holds {
	case nothing:
		*k.at = slot{holds: another}
	case filter:
		k.at.bits = k.at.bits.with(p.items[0])
		if k.at.birth == 0 {
			k.at.birth = p.birth
		}
	}
	return true
}

func (p *step) noted(k keys) bool {
	k.kept[p.key] = *k.at
	return true
}

func (p *step) reverted(k keys) bool {
	*k.at = k.kept[p.key]
	return true
}

func (p *step) copiedOver(k keys) bool {
	if k.at.holds != nothing {
		*k.other = *k.at
	}
	return true
}
