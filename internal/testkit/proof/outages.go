package proof

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// What a Mirror may answer late in an outage, and what it must. The last word of
// the server decides: a call may be answered late if a question of the Mirror got
// no answer, and no later one did.

// A Question is what a call through a Mirror asked the server, with all attempts.
type Question struct {
	Asked, Sent, Ended time.Time // the first attempt, and the last
	Answered           bool      // the server answered, whatever it said
}

// String leaves out the day, which is always the same.
func (q Question) String() string {
	const clock = "15:04:05.000000"
	end := "lost"
	if q.Answered {
		end = "answered"
	}
	return q.Asked.Format(clock) + "-" + q.Ended.Format(clock) + " " + end
}

// asked takes note of an attempt of a call through a Mirror.
func (a *attempts) asked(e upstash.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := Question{Asked: e.Start, Sent: e.Start, Ended: e.Start.Add(e.Duration), Answered: e.Err == nil}
	if n := len(a.questions); e.Attempt > 1 && n > 0 {
		q.Asked = a.questions[n-1].Asked
		a.questions = a.questions[:n-1]
	}
	a.questions = append(a.questions, q)
}

// DrawOutages has a history's Mirrors outlive outages.
func (f *Filters) DrawOutages(rng *rand.Rand) {
	f.Outages = true
	f.Themes |= Mirrors
	f.MaxStale = pick(rng, []time.Duration{0, 0, time.Second, 5 * time.Second})
	f.StaleIfError = pick(rng, []time.Duration{2 * time.Second, time.Minute, 2 * time.Hour, 2 * time.Hour})
	f.limit()
}

// AllRequests is how many requests a Silence without an end loses.
const AllRequests = 1 << 20

// silence draws how the server falls silent: for one question, or until it speaks.
// Call.From is the number of the fault.
func silence(rng *rand.Rand, requests int) Call {
	return Call{Verb: Silence, From: rng.IntN(1 << 10), More: requests}
}

// drawOutage draws calls that show if a Mirror answers late without a cause, or not
// although it must.
func (f *Filters) drawOutage(rng *rand.Rand) []Call {
	two := items(rng, 2)
	x, y := two[:1], two[1:]
	rest := func(d time.Duration) Call { return Call{Verb: Rest, Wait: d} }
	const moment = 100 * time.Millisecond
	over := rest(f.MaxTrust + moment)
	change := Call{Verb: pick(rng, []Verb{Clear, Replace, Delete}), Items: y}
	look, through := Call{Verb: MirrorExists, Items: x}, Call{Verb: MirrorThrough, Items: x}
	switch rng.IntN(9) {
	case 0: // one lost request, and then health
		return []Call{through, {Verb: Refresh}, over, silence(rng, 1), look, change, over, look, look}
	case 1: // the copy lasts, and not too long
		past := pick(rng, []time.Duration{f.MaxTrust, f.MaxCopy, f.MaxTrust + f.StaleIfError, f.MaxCopy + f.StaleIfError})
		calls := []Call{
			through,
			{Verb: Refresh},
			silence(rng, AllRequests), rest(past + moment), look, look,
			{Verb: MirrorThrough, Items: y},
			{Verb: MirrorExists, Items: y},
			look,
			{Verb: Speak},
			rest(2 * time.Second), look,
		}
		if often(rng, 2) { // MaxStale is not set, or no refresh has been
			calls = slices.Delete(calls, 1, 2)
		}
		return calls
	case 2: // a ticker that refreshes in time, past the hour
		half := f.MaxStale * 9 / 10
		calls := []Call{{Verb: Refresh}, rest(f.MaxCopy - f.MaxStale - half - moment), {Verb: Refresh}, rest(half)}
		return append(calls, look, Call{Verb: Refresh}, rest(half), Call{Verb: MirrorAll, Items: two}, look)
	case 3: // a caller that is dead, and what others are told
		dead := Call{Verb: pick(rng, []Verb{MirrorExists, MirrorThrough, Refresh}), Items: x, Dead: true}
		return []Call{through, change, over, dead, look}
	case 4: // one that leaves while its request is held
		leaves := Call{Verb: pick(rng, []Verb{MirrorExists, MirrorThrough, Refresh}), Items: x, Cause: 1, CauseAfter: moment}
		held := silence(rng, 1)
		held.From = 0
		return []Call{through, change, over, held, leaves, look}
	case 5: // the answer of an Add ends an outage
		lost := silence(rng, 1)
		return []Call{
			through, {Verb: Refresh}, {Verb: Add, Items: y}, over, lost, through, through, {Verb: MirrorExists, Items: y}, look,
		}
	case 6: // the waiting counts
		held := silence(rng, AllRequests)
		held.From = 0
		return []Call{
			through, {Verb: Refresh}, change, rest(f.MaxTrust + f.StaleIfError - moment), held, look, {Verb: Speak},
		}
	case 7: // a question is lost after a later one was answered: of another caller
		held := silence(rng, 1)
		held.From = 0
		return []Call{through, change, over, held, look, look}
	}
	return []Call{{Verb: Speak}, look, {Verb: MirrorAll, Items: two}}
}

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
			if o.answered(q) || began > c.ended {
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

// dead is a context that has ended.
func dead(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}
