package proof

import (
	"slices"

	"github.com/anishathalye/porcupine"
)

// content is the kind of data that a key holds.
type content uint8

const (
	nothing content = iota
	filter          // the one that the calls are about
	foreign         // another program's data
)

// bits is a set of at most MaxBits cells.
type bits [2]uint64

// MaxBits is the largest number of cells of a filter here. A small filter fills
// up in a few calls, so that false positives happen.
const MaxBits = 128

func bitsOf(positions []uint64) (b bits) {
	for _, p := range positions {
		b[p/64] |= 1 << (p % 64)
	}
	return b
}

func (b bits) with(c bits) bits { return bits{b[0] | c[0], b[1] | c[1]} }

func (b bits) has(c bits) bool { return b.with(c) == b }

// state is the state of the model, which is one key. States are compared with
// ==.
type state struct {
	holds content
	bits  bits
	birth uint16 // which step made the filter: the birth number of the model

	// ttl says that the filter has a TTL, or gets one with the next write.
	ttl bool

	// own has a bit for each call of which an attempt without an answer took
	// effect in this filter.
	own uint64
	// batches holds, for each AddAll of several requests, the birth of the
	// filter that its items went into, or 0.
	batches [maxBatches]uint16
}

const maxBatches = 8

// become replaces what the key holds.
func (s *state) become(c content) {
	s.holds, s.birth, s.bits, s.ttl, s.own = c, 0, bits{}, false, 0
}

// create makes the empty filter of the step p. All attempts of one request have
// the same birth number.
func (s *state) create(p *step) {
	s.become(filter)
	s.birth, s.ttl = p.birth, p.kind.TTL
}

// add sets an item's bits and reports whether one of them was 0.
func (s *state) add(item bits) (isNew bool) {
	isNew = !s.bits.has(item)
	s.bits = s.bits.with(item)
	return isNew
}

// ending says whether a step took effect, and what its answer was.
type ending uint8

const (
	answered  ending = iota
	uncertain        // it took effect, but all of it was there before
	open             // it may take effect at some time, without an answer
	missing          // the answer is that there is no filter
	mismatch         // the answer is that there are other data
)

// step is one atomic effect on the key, with the answer that its client got.
type step struct {
	kind  Kind
	verb  Verb
	items []bits
	end   ending
	// yes holds the answers: one an item, or a single one.
	yes []bool
	// birth is another one for each request that can make a filter.
	birth uint16
	// call is the bit of state.own that belongs to the step's call.
	call uint64
	// batch is 1 + the index in state.batches, or 0 for a call of one request.
	batch int
}

// next returns the state after the step, and reports whether the step's answers
// are right.
func (p *step) next(s state) (state, bool) {
	if p.end == missing {
		return s, s.holds == nothing
	}
	if p.end == mismatch {
		return s, s.holds == foreign
	}
	ok := true
	switch p.verb {
	case Create:
		ok = p.create(&s)
	case Add, AddAll:
		ok = p.add(&s)
	case Exists, ExistsAll:
		ok = p.exists(s)
	case Delete: // of the filter alone
		ok = s.holds != foreign && p.is(s.holds == filter) || p.end == open
		if s.holds == filter {
			s.become(nothing)
		}
	case Persist, SetTTL:
		ok = p.lifetime(&s)
	case Clear:
		ok = p.is(s.holds != nothing)
		s.become(nothing)
	case Expire: // of the filter alone: nothing sets a TTL on other data
		if p.yes[0] {
			ok = s.holds == filter && s.ttl
			s.become(nothing)
		}
	case Lapse:
		if s.holds == filter && s.ttl {
			s.become(nothing)
		}
	case HasTTL:
		ok = p.is(s.holds == filter && s.ttl)
	case Overwrite:
		s.become(foreign)
	}
	return s, ok
}

// is reports whether the step's single answer is this one, or unknown.
func (p *step) is(answer bool) bool { return p.end == open || p.yes[0] == answer }

func (p *step) lifetime(s *state) bool {
	switch {
	case s.holds == foreign:
		return p.end == open
	case s.holds == nothing:
		return p.end == open || p.end == answered && !p.yes[0]
	}
	had := s.ttl
	s.ttl = p.verb == SetTTL
	if p.end != answered {
		return true
	}
	// Persist finds no TTL if none was settled yet. It must not find one if none
	// may be there.
	return p.verb == SetTTL && p.yes[0] || p.verb == Persist && (had || !p.yes[0])
}

func (p *step) create(s *state) bool {
	switch {
	case p.end == open:
		if s.holds == nothing {
			s.create(p)
			s.own |= p.call
		}
		return true
	case p.end == uncertain:
		return s.holds == filter
	case p.yes[0]:
		if s.holds != nothing {
			return false
		}
		s.create(p)
		return true
	}
	return s.holds == filter && s.own&p.call == 0
}

// add allows the answer "seen" only if no earlier attempt of the same call
// could be the reason.
func (p *step) add(s *state) bool {
	if s.holds == foreign {
		return p.end == open
	}
	if s.holds == nothing {
		if p.end == uncertain || p.kind.MustExist {
			return p.end == open
		}
		s.create(p)
	}
	own := s.own&p.call != 0
	for i, item := range p.items {
		isNew := s.add(item)
		switch {
		case p.end == answered && p.yes[i] != isNew,
			p.end == answered && !p.yes[i] && own,
			p.end == uncertain && isNew:
			return false
		}
	}
	if p.end == open {
		s.own |= p.call
		return true
	}
	if p.batch != 0 && p.end == answered {
		of := &s.batches[p.batch-1]
		if *of != 0 && *of != s.birth {
			return false // another part went into a filter that is gone
		}
		*of = s.birth
	}
	return true
}

func (p *step) exists(s state) bool {
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

// model is the model in porcupine's terms.
var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(s, input, _ any) (bool, any) {
		after, ok := input.(*step).next(s.(state))
		return ok, after
	},
	Hash: func(s any) uint64 {
		x := s.(state)
		h := x.bits[0]*0x9e3779b97f4a7c15 ^ x.bits[1]*0xc2b2ae3d27d4eb4f
		return h ^ x.own<<7 ^ uint64(x.birth)<<3 ^ uint64(x.holds)
	},
}

// anySeen reports whether one of the answers of an Add is "seen".
func anySeen(yes []bool) bool { return slices.Contains(yes, false) }
