package proof

import (
	"errors"
	"math"
	"slices"
	"time"
)

// What a Mirror may answer late in an outage, and what it must. The last word of
// the server decides: a call may be answered late if a question of the Mirror got
// no answer, and no later one did.

// sameMirror returns the calls that have used the Mirror of c, with c itself.
func (s *rules) sameMirror(c *called) (all []*called) {
	for _, o := range s.h.calls {
		v := o.call.Verb
		if o.session == c.session && v.is(mirrored) && v != Crowd && o.from < c.to && !s.reopened(o, c) && !s.reopened(c, o) {
			all = append(all, o)
		}
	}
	return all
}

// since returns when something was, from the beginning of the history.
func (s *rules) since(t time.Time) time.Duration { return t.Sub(s.h.begin) }

// answered reports whether a question of a call certainly told the Mirror of the
// filter.
func (c *called) answered(q Question) bool {
	switch c.result.End {
	case Answered, Missing, Mismatch:
		return q.Answered
	}
	return false
}

// mayAnswerLate reports whether a Mirror may have answered a call late.
func (s *rules) mayAnswerLate(c *called) bool {
	all := s.sameMirror(c)
	asks := c.call.Dead || slices.ContainsFunc(questionsOf(all), func(q Question) bool { // within a second
		return s.since(q.Asked) <= c.ended && s.since(q.Ended) >= c.began-time.Second
	})
	return asks && s.mayBeOutage(all, c.began, c.ended)
}

// mayBeOutage reports whether a question of a Mirror may have begun an outage that
// lasts at the beginning of an interval, or meanwhile.
func (s *rules) mayBeOutage(all []*called, from, to time.Duration) bool {
	for _, o := range all {
		for _, q := range o.result.Questions {
			ended := s.since(q.Ended)
			left := o.call.Cause != 0 && ended >= o.began+o.call.CauseAfter // its caller, who says nothing
			if o.answered(q) || s.since(q.Asked) > to || left {
				continue
			}
			if ended >= from || s.lastWord(all, q, from) {
				return true
			}
		}
	}
	return false
}

// isOutage reports whether a question of a Mirror has certainly begun an outage that
// lasts at some time.
func (s *rules) isOutage(all []*called, at time.Duration) bool {
	return slices.ContainsFunc(all, func(o *called) bool {
		asked := o.result.Questions
		if o.result.End == Missing || o.result.End == Mismatch || o.result.End == Recreated ||
			o.call.Cause != 0 || o.call.Dead || len(asked) == 0 {
			return false
		}
		last := asked[len(asked)-1]
		return !last.Answered && s.since(last.Ended) < at && !s.answers(all, o.began, at)
	})
}

// answers reports whether a question of a Mirror was answered in an interval.
func (s *rules) answers(all []*called, from, to time.Duration) bool {
	return slices.ContainsFunc(questionsOf(all), func(q Question) bool {
		return q.Answered && s.since(q.Ended) >= from && s.since(q.Asked) <= to
	})
}

func questionsOf(all []*called) (list []Question) {
	for _, o := range all {
		list = append(list, o.result.Questions...)
	}
	return list
}

// lastWord reports whether nothing that a Mirror learned says that a lost question
// was no outage, or that this was over at some time.
func (s *rules) lastWord(all []*called, lost Question, at time.Duration) bool {
	for _, o := range all {
		for _, q := range o.result.Questions {
			before := q.Ended.Before(lost.Ended)
			switch {
			case !o.answered(q):
			case before && q.Sent.After(lost.Sent), !before && s.since(q.Ended) < at:
				return false
			}
		}
	}
	return true
}

// oldest returns the place of the oldest answer by which a Mirror may have answered
// a call, if the limit of the answer is so long.
func (s *rules) oldest(c *called, limit time.Duration) int64 {
	switch {
	case !s.of.Outages:
		return s.h.before(c.began - limit - s.of.StaleIfError)
	case !s.mayAnswerLate(c):
		return s.h.before(c.began - limit)
	}
	const slack = 10 * time.Millisecond // until the call returns
	return s.h.before(min(c.began, c.ended-s.of.StaleIfError-slack) - limit)
}

// outage returns an error if a Mirror fails a call that its copy could answer, asks
// although it need not, or is wrong about whether the server answers.
func (s *rules) outage(c *called) error {
	if !s.of.Outages || c.call.Verb != MirrorExists && c.call.Verb != MirrorStats {
		return nil
	}
	all := s.sameMirror(c)
	others := slices.DeleteFunc(slices.Clone(all), func(o *called) bool { return o == c })
	if c.call.Verb == MirrorStats {
		switch says := c.result.Yes[0]; {
		case says && !s.mayBeOutage(all, c.began, c.ended):
			return errors.New("a Mirror speaks of an outage that no question has begun")
		case !says && s.isOutage(all, c.began) && !s.answers(all, c.began, c.ended):
			return errors.New("a Mirror does not know of an outage")
		}
		return nil
	}
	asked := c.result.Questions
	lost := !c.call.Dead && len(asked) > 0 && !asked[len(asked)-1].Answered
	failed := c.result.Err != "" && c.call.Cause == 0 &&
		(lost || s.isOutage(others, c.began) && !s.answers(all, c.began, c.ended))
	for _, o := range others {
		alone := !slices.ContainsFunc(all, func(p *called) bool { return p != o && p.from < o.to && p.to > o.from })
		if o.to > c.from || !alone {
			continue
		}
		last := !slices.ContainsFunc(others, func(p *called) bool { return p.to > o.to })
		if o.call.Verb == Refresh && o.result.End == Answered && len(asked) > 0 && last &&
			s.of.MaxStale > 0 && c.began-o.began <= s.of.MaxStale {
			return errors.New("a Mirror asked, although a refresh was in time")
		}
		if !o.hasItem(c.call.Items[0]) {
			continue
		}
		if at, ok := s.asks(others, c); ok && s.keeps(others, o, at) && s.hasAsked(others, at) {
			return errors.New("a Mirror asked in an outage, although another call had just done so, or did")
		}
		if failed && s.keeps(all, o, c.ended) {
			return errors.New("a Mirror could answer from its copy, and failed in an outage")
		}
	}
	return nil
}

// asks returns when a call decided to ask in a certain outage: when it began, or, if
// there was none, later.
func (s *rules) asks(others []*called, c *called) (at time.Duration, ok bool) {
	if len(c.result.Questions) == 0 {
		return 0, false
	}
	if at = c.began; !s.mayBeOutage(others, at, at) {
		at = s.since(c.result.Questions[0].Asked)
	}
	return at, s.isOutage(others, at)
}

// hasAsked reports whether a call of a Mirror asked within a second before, or asks
// because it is its turn in an outage.
func (s *rules) hasAsked(others []*called, at time.Duration) bool {
	asks := func(o *called, since, until time.Duration) bool {
		return slices.ContainsFunc(o.result.Questions, func(q Question) bool {
			return s.since(q.Asked) < at && s.since(q.Ended) > since && s.since(q.Ended) < until
		})
	}
	return slices.ContainsFunc(others, func(o *called) bool {
		if asks(o, at-time.Second, at) {
			return true
		}
		turn := o.call.Verb == MirrorExists && s.isOutage(others, o.began) && !slices.ContainsFunc(others, func(p *called) bool {
			return p != o && p.from < o.from && p.ended > o.began-time.Second-time.Millisecond
		})
		return turn && asks(o, at, math.MaxInt64)
	})
}

// keeps reports whether a Mirror's copy certainly has what it learned by o, and may
// answer late with it.
func (s *rules) keeps(all []*called, o *called, at time.Duration) bool {
	span := at - all[0].began
	if at-o.began > s.of.MaxTrust+s.of.StaleIfError || span > s.of.MaxCopy+s.of.StaleIfError {
		return false
	}
	return s.learnedNothing(all, o) || span < time.Hour && s.oneFilter(all, o, at)
}

// hasItem reports whether the Mirror of a call knows the item after it.
func (c *called) hasItem(item string) bool {
	return c.call.Verb == MirrorThrough && c.result.End == Answered && c.call.Items[0] == item
}

// learnedNothing reports whether calls of a Mirror brought no answer since o, which
// none of them overlaps.
func (s *rules) learnedNothing(all []*called, o *called) bool {
	return !slices.ContainsFunc(all, func(p *called) bool {
		return p.to > o.to && slices.ContainsFunc(p.result.Questions, func(q Question) bool { return q.Answered })
	})
}

// oneFilter reports whether a Mirror can have seen one filter only since o.
func (s *rules) oneFilter(all []*called, o *called, at time.Duration) bool {
	return !s.of.MissingIsEmpty && !slices.ContainsFunc(s.removals, func(r *called) bool {
		return r.began <= at && (r.to > o.from || r.mayBeLate() && r.ended+late > o.began)
	}) && !slices.ContainsFunc(all, func(p *called) bool {
		return p.to > o.from && (p.call.Verb.is(adds) && p.result.Maybe > 0 || p.result.End == Missing || p.result.End == Mismatch || p.result.End == Recreated)
	})
}
