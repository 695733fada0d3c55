package proof

import (
	"slices"

	"github.com/anishathalye/porcupine"
)

// content is what a key holds.
type content uint8

const (
	nothing content = iota
	filter          // the one that the calls are about
	foreign         // another program's data
)

// bits is a set of cells. It bounds the filters of a history: see MaxBits.
type bits [2]uint64

// MaxBits is the largest number of cells of a filter under proof. A small one
// fills up in a few calls, so that false positives happen.
const MaxBits = 128

func bitsOf(positions []uint64) (b bits) {
	for _, p := range positions {
		b[p/64] |= 1 << (p % 64)
	}
	return b
}

func (b bits) with(c bits) bits { return bits{b[0] | c[0], b[1] | c[1]} }

func (b bits) has(c bits) bool { return b.with(c) == b }

// state is the model: one key. It is compared with ==.
type state struct {
	holds content
	bits  bits
	birth uint16 // the step that made the filter: its birth number, so to say

	// own has a bit for each call of which an attempt without an answer has
	// taken effect in this filter.
	own uint64
	// batches holds, for each AddAll of several requests, which filter its
	// items went into, 0 if none has yet.
	batches [maxBatches]uint16
}

const maxBatches = 8

// create makes an empty filter. All attempts of one request give it the same
// birth number.
func (s *state) create(birth uint16) { s.become(filter, birth) }

// remove leaves nothing, whatever was there.
func (s *state) remove() { s.become(nothing, 0) }

func (s *state) become(holds content, birth uint16) {
	s.holds, s.birth, s.bits, s.own = holds, birth, bits{}, 0
}

// add sets an item's bits and reports whether one of them was 0. A filter that
// is not there is made.
func (s *state) add(item bits, birth uint16) (isNew bool) {
	if s.holds == nothing {
		s.create(birth)
	}
	isNew = !s.bits.has(item)
	s.bits = s.bits.with(item)
	return isNew
}

// ending is what is known of a step's effect and answer.
type ending uint8

const (
	answered  ending = iota
	uncertain        // in effect, and all of it was there before
	open             // perhaps in effect at some time, without an answer
	missing          // answered: there is no filter
	mismatch         // answered: there is other data
)

// step is one atomic effect on the key, with what its client was told.
type step struct {
	verb  Verb
	items []bits
	end   ending
	// yes holds the answers: one an item, or a single one.
	yes []bool
	// birth tells the requests apart that can make a filter.
	birth uint16
	// call is the bit of state.own that belongs to the step's call.
	call uint64
	// batch is 1 + the index in state.batches, 0 for a call of one request.
	batch int
}

// next is the state after the step, and whether the model gives these answers.
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
	case Delete, Clear:
		was := s.holds != nothing
		s.remove()
		ok = p.end == open || p.yes[0] == was
	case Expire: // of the filter alone: nothing sets a TTL on other data
		if p.yes[0] {
			ok = s.holds == filter
			s.remove()
		}
	case Lapse:
		if s.holds == filter {
			s.remove()
		}
	case Overwrite:
		s.become(foreign, 0)
	}
	return s, ok
}

func (p *step) create(s *state) bool {
	switch {
	case p.end == open:
		if s.holds == nothing {
			s.create(p.birth)
			s.own |= p.call
		}
		return true
	case p.end == uncertain:
		return s.holds == filter
	case p.yes[0]:
		if s.holds != nothing {
			return false
		}
		s.create(p.birth)
		return true
	}
	return s.holds == filter && s.own&p.call == 0
}

// add allows "seen" only if the call's own earlier attempts are not the reason.
func (p *step) add(s *state) bool {
	if s.holds == foreign {
		return p.end == open
	}
	if p.end == uncertain && s.holds == nothing {
		return false
	}
	own := s.holds == filter && s.own&p.call != 0
	for i, item := range p.items {
		isNew := s.add(item, p.birth)
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
			return false // a part went into a filter that is gone
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

// model is the key as porcupine wants it.
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
