package proof

import (
	"errors"
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
	asks, silent := c.call.Dead, false
	for _, o := range all {
		for _, q := range o.result.Questions {
			began, ended := s.since(q.Asked), s.since(q.Ended)
			// Others asked within a second.
			asks = asks || began <= c.ended && ended >= c.began-time.Second
			left := o.call.Cause != 0 && ended >= o.began+o.call.CauseAfter // its caller, who says nothing
			if o.answered(q) || began > c.ended || left {
				continue
			}
			silent = silent || ended >= c.began || s.lastWord(all, q, c.began)
		}
	}
	return asks && silent
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

// outage returns an error if a Mirror fails a call that its copy could answer, or
// has it wait although a ticker refreshes in time.
func (s *rules) outage(c *called) error {
	if !s.of.Outages || c.call.Verb != MirrorExists || c.call.Dead {
		return nil
	}
	all := slices.DeleteFunc(s.sameMirror(c), func(o *called) bool { return o == c })
	asked := c.result.Questions
	for _, o := range all {
		alone := !slices.ContainsFunc(all, func(p *called) bool { return p != o && p.to > o.from })
		if alone && o.call.Verb == Refresh && o.result.End == Answered && o.to < c.from && len(asked) > 0 &&
			s.of.MaxStale > 0 && c.began-o.began <= s.of.MaxStale {
			return errors.New("a Mirror asked, although a refresh was in time")
		}
		lost := len(asked) > 0 && !asked[len(asked)-1].Answered
		if c.call.Cause != 0 || c.result.Err == "" || !lost || o.to > c.from || !o.hasItem(c.call.Items[0]) {
			continue
		}
		first := slices.MinFunc(all, func(a, b *called) int { return int(a.from - b.from) })
		age, span := c.ended-o.began, c.ended-first.began
		if age > s.of.MaxTrust+s.of.StaleIfError || span > s.of.MaxCopy+s.of.StaleIfError {
			continue
		}
		if s.learnedNothing(all, o, c) || span < time.Hour && s.alwaysThere(all, c) {
			return errors.New("a Mirror could answer from its copy, and failed in an outage")
		}
	}
	return nil
}

// hasItem reports whether the Mirror of a call knows the item after it.
func (c *called) hasItem(item string) bool {
	return c.call.Verb == MirrorThrough && c.result.End == Answered && c.call.Items[0] == item
}

// learnedNothing reports whether a Mirror has had no answer between the end of o,
// which it made alone, and that of c.
func (s *rules) learnedNothing(all []*called, o, c *called) bool {
	return !slices.ContainsFunc(append(slices.Clip(all), c), func(p *called) bool {
		if p == o {
			return false
		}
		return p.from < o.to && p.to > o.from || p.to > o.to && slices.ContainsFunc(p.result.Questions, func(q Question) bool {
			return q.Answered
		})
	})
}

// alwaysThere reports whether a Mirror can have seen one filter only.
func (s *rules) alwaysThere(all []*called, c *called) bool {
	return !s.of.MissingIsEmpty && !slices.ContainsFunc(s.removals, func(r *called) bool { return r.from < c.to }) &&
		!slices.ContainsFunc(all, func(o *called) bool {
			return o.result.Maybe > 0 || o.result.End == Missing || o.result.End == Mismatch || o.result.End == Recreated
		})
}
