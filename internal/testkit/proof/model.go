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
	// part is the number of the step's independent model.
	part int
}

func (p *step) inPart() int { return p.part }

// Next returns the state after the step, and reports whether the step's answers
// are right.
func (p *step) Next(before any) (any, bool) {
	s := before.(state)
	ok := p.next(&s)
	return s, ok
}

// special is the part of a model for another type than a Filter. other is false
// if a step does what it does to a Filter.
type special interface {
	next(p *step, st *state, at *slot) (ok, other bool)
}

func (p *step) next(s *state) bool {
	at, other := &s.at[p.key], &s.at[1-p.key]
	if p.special != nil {
		if ok, other := p.special.next(p, s, at); other {
			return ok
		}
	}
	switch p.end {
	case missing:
		return p.missing(at)
	case mismatch:
		return p.mismatch(at)
	case taken:
		if p.verb == RestoreBackup {
			return at.holds != nothing
		}
		return at.holds == filter && other.holds != nothing
	case noNumber:
		return at.holds == filter && p.weigh(at.bits) == int(p.geo.Bits)
	}
	switch p.verb {
	case Create:
		return p.make(at)
	case Add, AddAll, AddSeq, MirrorAdd, MirrorAddAll, MirrorThrough:
		return p.add(s, at)
	case Exists, ExistsAll, MirrorExists, Crowd:
		return p.exists(at)
	case Open:
		return p.opens(at)
	case Inspect:
		return p.inspects(at)
	case Stats:
		return at.holds == filter && (p.count < 0 || p.weigh(at.bits) == p.count)
	case Cardinality:
		return at.holds == filter && p.cardinality(at) || at.holds == nothing && p.of.MissingIsEmpty && p.count == 0
	case Snapshot:
		return p.snapshot(s, at)
	case Persist, SetTTL:
		return p.lifetime(at)
	case Load, Replace, Rename, Delete:
		return p.move(at, other)
	case OtherCreate, OtherAdd, OtherExists, OtherDelete:
		return p.sibling(at)
	case TakeBackup:
		if p.yes[0] {
			s.kept[0] = *at
		}
		return at.holds == filter
	case RestoreBackup:
		return p.restored(s, at)
	case Keep:
		s.kept[p.key] = *at
		return true
	case Revert:
		*at = s.kept[p.key]
		return true
	case CopyOver:
		if at.holds != nothing {
			*other = *at
		}
		return true
	}
	return p.outside(at)
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
	case Replace:
		return at.holds.isKept()
	}
	return at.holds > filter
}

// cardinality reports whether the answer is the estimate of the set cells. Only
// a Filter's is predicted.
func (p *step) cardinality(at *slot) bool {
	return p.geo.Bits == 0 || int(math.Round(p.geo.EstimateItems(uint64(p.weigh(at.bits))))) == p.count
}

// is reports whether the step's single answer is this one, or unknown.
func (p *step) is(answer bool) bool { return p.end == open || len(p.yes) == 0 || p.yes[0] == answer }

func (p *step) lifetime(s *slot) bool {
	switch {
	case s.holds > filter:
		return p.end == open
	case s.holds == nothing:
		return p.end == open || p.end == answered && !p.yes[0]
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
func (p *step) make(s *slot) bool {
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
func (p *step) add(st *state, s *slot) bool {
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
	return p.end != answered || p.sameFilter(st, s)
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
func (p *step) snapshot(st *state, s *slot) bool {
	ok := p.cells.has(s.bits)
	if p.atLeast {
		ok = s.bits.has(p.cells)
	}
	return ok && s.holds == filter && p.sameFilter(st, s)
}

// opens is the step of an Open, which takes the geometry of what it finds, even
// if that is another filter's.
func (p *step) opens(s *slot) bool {
	switch {
	case len(p.yes) == 0:
		return true
	case p.yes[0]:
		return s.holds == filter
	}
	return s.holds == another || s.holds == sibling
}

// inspects is the step of an Inspect, which knows no Config.
func (p *step) inspects(s *slot) bool {
	if p.yes[0] {
		more := p.count - p.weigh(s.bits)
		return s.holds == filter && 0 <= more && more <= p.filling
	}
	return s.holds == another || s.holds == sibling || s.holds == table
}

func (p *step) exists(s *slot) bool {
	if s.holds == nothing && p.of.MissingIsEmpty {
		return !slices.Contains(p.yes, true)
	}
	if s.holds != filter {
		return false
	}
	for i, item := range p.items {
		if p.yes[i] != s.bits.has(item) {
			return false
		}
	}
	return true
}

// anySeen reports whether one of the answers of an Add is "seen".
func anySeen(yes []bool) bool { return slices.Contains(yes, false) }

// move is the step of a call that moves a whole filter. A Load, a Replace, a
// Rename and a Delete take effect once: a second attempt must find nothing to
// do.
func (p *step) move(at, other *slot) bool {
	switch p.verb {
	case Load:
		return p.load(at)
	case Replace:
		if at.holds.isKept() {
			return p.end == open
		}
		ttl := at.ttl
		if at.holds != filter || at.unsettled {
			ttl = p.of.TTL != 0
		}
		*at = slot{holds: filter, bits: p.items[0], birth: p.birth, ttl: ttl}
	case Rename:
		if at.holds != filter || other.holds != nothing {
			return p.end == open
		}
		*other, *at = *at, slot{}
	case Delete: // of the filter alone
		ok := at.holds <= filter && p.is(at.holds == filter) || p.end == open
		if at.holds == filter {
			*at = slot{}
		}
		return ok
	}
	return true
}

// load is the step of a Load or a Merge. Its answers are whether it
// made the filter, and how many cells were 0 before.
func (p *step) load(s *slot) bool {
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

// sibling is the step of a call of a Config with another number of shards.
func (p *step) sibling(at *slot) bool {
	switch p.verb {
	case OtherCreate:
		if at.holds == nothing {
			*at = slot{holds: sibling}
		}
	case OtherDelete:
		if at.holds == sibling {
			*at = slot{}
		}
		return p.end == open || at.holds == nothing
	}
	return p.end == open || at.holds == sibling
}

// outside is the step of a change from outside.
func (p *step) outside(s *slot) bool {
	switch p.verb {
	case Clear:
		ok := p.is(s.holds != nothing)
		*s = slot{}
		return ok
	case Expire: // of the filter alone: nothing sets a TTL on other data
		if p.yes[0] {
			ok := s.ttl && s.holds == filter
			*s = slot{}
			return ok
		}
	case Lapse:
		if s.holds == filter && s.ttl {
			*s = slot{}
		}
	case HasTTL:
		return p.is(s.ttl && s.holds == filter)
	case Overwrite:
		*s = slot{holds: foreign}
		if p.is(true) {
			s.holds = table
		}
	case Plant:
		*s = slot{
			holds: filter, bits: p.items[0],
			ttl: p.of.TTL != 0 && !p.of.MustExist, unsettled: p.of.MustExist,
		}
	case Smudge:
		// The header is written if nothing was there. The bits are set in any
		// case.
		if s.holds == nothing {
			*s = slot{holds: another}
		} else if s.holds == filter {
			s.bits = s.bits.with(p.items[0])
			if s.birth == 0 {
				s.birth = p.birth
			}
		}
	}
	return true
}

// restored is the step of a RestoreBackup. The filter has what the Backup has, with
// the birth number of this call and the TTL of the Config, if the key was free.
func (p *step) restored(st *state, at *slot) bool {
	kept := &st.kept[0]
	if at.holds != nothing || kept.holds == nothing {
		return p.end == open
	}
	*at = slot{holds: kept.holds, bits: kept.bits, birth: p.birth, ttl: p.of.TTL != 0}
	return p.is(true)
}
