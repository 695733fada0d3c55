package proof

import (
	"math"
	"slices"
	"time"

	"github.com/upbloom/upbloom/bloom"
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

// mayAnswerLate reports whether a Mirror may have answered a call late: one whose TIME
// was lost, or in an outage. Without Outages nobody knows which answers the package
// has refused.
func (s *rules) mayAnswerLate(c *called) bool {
	if !s.Outages || c.result.LostTime {
		return true
	}
	all := s.sameMirror(c)
	asks := c.call.Dead || slices.ContainsFunc(questionsOf(all), func(q Question) bool { // within a second
		return s.since(q.Asked) <= c.ended && s.since(q.Ended) >= c.began-time.Second
	})
	return asks && s.mayBeOutage(all, c.began, c.ended)
}

// staleNo returns how old the "no" of a Mirror may be.
func (s *rules) staleNo(c *called) time.Duration {
	if s.MaxStale > 0 && s.mayAnswerLate(c) {
		return s.MaxStale + s.StaleIfError
	}
	return s.MaxStale
}

// mayBeOutage reports whether a question of a Mirror may have begun an outage that
// lasts at the beginning of an interval, or meanwhile.
func (s *rules) mayBeOutage(all []*called, from, to time.Duration) bool {
	for _, o := range all {
		for _, q := range o.result.Questions {
			ended := s.since(q.Ended)
			if o.answered(q) || s.since(q.Asked) > to || o.left(ended) {
				continue
			}
			if ended >= from || s.lastWord(all, q, from) {
				return true
			}
		}
	}
	return false
}

// left reports whether a caller had left when its question ended: that says nothing.
func (c *called) left(ended time.Duration) bool {
	return c.call.Cause != 0 && ended >= c.began+c.call.CauseAfter
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
		if s.span > 0 && s.of.MustExist && o.call.Verb.is(adds) { // its last script may be a turn
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
	asked, stood := s.since(lost.Sent), time.Duration(0)
	for _, o := range all {
		if o.ended <= asked {
			stood = max(stood, o.result.Stood)
		}
	}
	for _, o := range all {
		for _, q := range o.result.Questions {
			before, sent := q.Ended.Before(lost.Ended), s.since(q.Sent)
			if s.span > 0 { // on its own clock a Mirror knows only when it began to ask, if need be for the time
				sent = o.began
			}
			switch {
			case !o.answered(q):
			// While its clock stands, a Mirror cannot tell what it asked later.
			case before && sent-o.result.Stood > asked-stood, !before && s.since(q.Ended) < at:
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
	case !s.mayAnswerLate(c):
		return s.h.before(c.began - limit)
	case !s.Outages:
		return s.h.before(c.began - limit - s.StaleIfError)
	}
	const slack = 10 * time.Millisecond // until the call returns
	return s.h.before(min(c.began, c.ended-s.StaleIfError-slack) - limit)
}

// mirrorRules are of a call through a Mirror: what its batch says was sent; and,
// with Outages, what it says of the server, whether it need not have asked, and
// whether it fails although its copy could answer.
var mirrorRules = []rule[judged]{
	{"the items that were sent have several states", func(j judged) bool {
		failed := func(s bloom.ItemState) bool { return !isIn(s) }
		return j.call.Verb == MirrorAddAll && slices.ContainsFunc(j.result.States, failed) &&
			j.hasItemThat(func(s bloom.ItemState, yes bool) bool { return s == bloom.ItemDone && yes })
	}},
	{"an item is new, and nothing was sent", func(j judged) bool {
		return j.call.Verb == MirrorAddAll && j.result.Tried == 0 && slices.Contains(j.result.Yes, true)
	}},
	{"a look-up has a state of a write", func(j judged) bool {
		return j.call.Verb == MirrorAll && j.hasItemThat(func(s bloom.ItemState, _ bool) bool {
			return s != bloom.ItemDone && s != bloom.ItemNotDone
		})
	}},
	{"an item without an answer was found", func(j judged) bool {
		return j.call.Verb == MirrorAll && j.hasItemThat(func(s bloom.ItemState, yes bool) bool {
			return s != bloom.ItemDone && yes
		})
	}},
	{"the server did not answer, and an item was not found", func(j judged) bool {
		return j.call.Verb == MirrorAll && j.MaxStale == 0 && j.hasItemThat(func(s bloom.ItemState, yes bool) bool {
			return s == bloom.ItemDone && !yes
		})
	}},
	{"a refresh says that the filter was made again, and nobody did anything meanwhile", func(j judged) bool {
		return j.call.Verb == Refresh && j.result.End == Recreated && !slices.ContainsFunc(j.h.calls, func(o *called) bool {
			return o != j.called && j.overlaps(o)
		})
	}},
	{"a Mirror speaks of an outage that no question has begun", func(j judged) bool {
		return j.says(true) && !j.mayBeOutage(j.all, j.began, j.ended) && !j.reopened(j.called, j.called)
	}},
	{"a Mirror does not know of an outage", func(j judged) bool {
		return j.says(false) && j.isOutage(j.all, j.began) && !j.answers(j.all, j.began, j.ended)
	}},
	{"a Mirror asked, although a refresh was in time", judged.asksInTime},
	{"a Mirror asked in an outage, although another call had just done so, or did", judged.asksBesideAnother},
	{"a Mirror could answer from its copy, and failed in an outage", judged.failsWithACopy},
}

// hasItemThat reports whether an item of a batch that failed is so.
func (c *called) hasItemThat(is func(s bloom.ItemState, yes bool) bool) bool {
	for i, s := range c.result.States {
		if is(s, i < len(c.result.Yes) && c.result.Yes[i]) {
			return true
		}
	}
	return false
}

// says reports whether a Mirror was asked for an outage, and says so.
func (j judged) says(outage bool) bool {
	return j.Outages && j.call.Verb == MirrorStats && j.result.Yes[0] == outage
}

// others are the other calls of a Mirror.
func (j judged) others() []*called {
	return slices.DeleteFunc(slices.Clone(j.all), func(o *called) bool { return o == j.called })
}

// hadAlone reports whether the Mirror of a look-up had a call before that no other
// overlapped, and that is so. The clocks of its process were right meanwhile.
func (j judged) hadAlone(is func(o *called) bool) bool {
	return j.Outages && j.call.Verb == MirrorExists && j.isSteady() && slices.ContainsFunc(j.all, func(o *called) bool {
		return o.to <= j.from && o != j.called && is(o) && !slices.ContainsFunc(j.all, func(p *called) bool {
			return p != o && p.from < o.to && p.to > o.from
		})
	})
}

// isSteady reports whether the clocks of a Mirror were always as wrong as they are now,
// also while it learned something: else that may seem to be too old, or of the future.
func (j judged) isSteady() bool {
	return !slices.ContainsFunc(j.all, func(o *called) bool {
		return o.result.Leapt || o.result.Ahead != j.result.Ahead || o.result.Stood != j.result.Stood
	})
}

func (j judged) asksInTime() bool {
	return len(j.result.Questions) > 0 && j.MaxStale > 0 && j.hadAlone(func(o *called) bool {
		return o.call.Verb == Refresh && o.result.End == Answered && j.began-o.began <= j.MaxStale &&
			!(j.isOpen != nil && j.isOpen(j.called)) &&
			!slices.ContainsFunc(j.others(), func(p *called) bool { return p.to > o.to })
	})
}

func (j judged) asksBesideAnother() bool {
	others := j.others()
	at, isOutage := j.asks(others)
	return isOutage && j.hasAsked(others, at) && j.hadAlone(func(o *called) bool {
		return o.hasItem(j.call.Items[0]) && j.keeps(others, o, at)
	})
}

func (j judged) failsWithACopy() bool {
	asked := j.result.Questions
	lost := !j.call.Dead && len(asked) > 0 && !asked[len(asked)-1].Answered
	return j.result.Err != "" && j.call.Cause == 0 && j.hadAlone(func(o *called) bool {
		return o.hasItem(j.call.Items[0]) && j.keeps(j.all, o, j.ended)
	}) && (lost || j.isOutage(j.others(), j.began) && !j.answers(j.all, j.began, j.ended))
}

// asks returns when a call decided to ask in a certain outage: when it began, or, if
// there was none, later.
func (j judged) asks(others []*called) (at time.Duration, ok bool) {
	if len(j.result.Questions) == 0 {
		return 0, false
	}
	if at = j.began; !j.mayBeOutage(others, at, at) {
		at = j.since(j.result.Questions[0].Asked)
	}
	return at, j.isOutage(others, at)
}

// hasAsked reports whether a call of a Mirror asked within a second before, or asks
// because it is its turn in an outage.
func (s *rules) hasAsked(others []*called, at time.Duration) bool {
	asks := func(o *called, since, until time.Duration) bool {
		return slices.ContainsFunc(o.result.Questions, func(q Question) bool {
			ended := s.since(q.Ended)
			return s.since(q.Asked) < at && ended > since && ended < until && (ended > at || !o.left(ended))
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
	if at-o.began > s.MaxTrust+s.StaleIfError || span > s.MaxCopy+s.StaleIfError || s.span > 0 && at-o.began > s.span {
		return false
	}
	return s.learnedNothing(all, o) && !s.mayForget(o) || span < time.Hour && s.oneFilter(all, o, at)
}

// mayForget reports whether a later answer to the call, as about the TTL, may have shown
// another filter than that with its item.
func (s *rules) mayForget(c *called) bool {
	asked := len(c.result.Questions) > 1 || c.result.Sent > 0
	return asked && slices.ContainsFunc(s.removals, c.overlaps)
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
		end := p.result.End
		other := end == Missing || end == Mismatch || end == Recreated
		return p.to > o.from && (other || p.call.Verb.is(adds) && p.result.Maybe > 0)
	})
}
