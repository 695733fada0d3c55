package proof

// move is the step of a call that moves a whole filter. A Load, a Replace, a
// Rename and a Delete take effect once: a second attempt must find nothing to
// do. A Union can take effect again.
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
	case Union:
		if at.holds > filter || other.holds != filter || p.lacks(at) {
			return p.end == open
		}
		if at.holds == nothing {
			*at = p.create()
		}
		if at.birth == 0 {
			at.birth = p.birth
		}
		at.bits = at.bits.with(other.bits)
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

// load is the step of a Load, a Merge or a Restore. Its answers are whether it
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
	if p.watched && p.over != tooFull(*p.geo, p.weigh(s.bits)) {
		return false
	}
	return p.yes[0] == made && (p.count < 0 || p.count == p.weigh(s.bits)-before)
}

// sibling is the step of a call of a Config with another number of shards.
func (p *step) sibling(at *slot) bool {
	switch p.verb {
	case OtherCreate:
		if at.holds == nothing {
			*at = slot{holds: sibling, ttl: p.of.TTL != 0}
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
			ok := s.ttl && (s.holds == filter || s.holds == sibling)
			*s = slot{}
			return ok
		}
	case Lapse:
		if s.holds == filter && s.ttl {
			*s = slot{}
		}
	case HasTTL:
		return p.is(s.ttl && (s.holds == filter || s.holds == sibling))
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
