package proof

import (
	"math/rand/v2"
	"time"
)

// drawOutage draws calls of three items that show if a Mirror answers late without a
// cause, or not although it must. changes remove the filter, or replace it.
func (s *Staleness) drawOutage(rng *rand.Rand, three []string, changes odds) []Call {
	x, y, z := three[:1], three[1:2], three[2:]
	const moment = 100 * time.Millisecond
	over := rest(s.MaxTrust + moment)
	change := Call{Verb: weighted(rng, changes), Items: y}
	look, through := Call{Verb: MirrorExists, Items: x}, Call{Verb: MirrorThrough, Items: x}
	lookY, throughY := Call{Verb: MirrorExists, Items: y}, Call{Verb: MirrorThrough, Items: y}
	refresh, stats := Call{Verb: Refresh}, Call{Verb: MirrorStats}
	dead := Call{Verb: pick(rng, []Verb{MirrorExists, MirrorThrough, Refresh}), Items: x, Dead: true}
	leaves := Call{Verb: dead.Verb, Items: x, Cause: 1, CauseAfter: moment}
	asks := "BITFIELD" // how the request of a look-up begins that comes too late for the copy
	if s.MaxStale > 0 {
		asks = "EVAL"
	}
	late := func(command string, more int) Call { return Call{Verb: Hold, Command: command, More: more} }
	return weighted(rng, []choice[func() []Call]{
		{1, func() []Call { // one lost request, and then health
			return []Call{through, refresh, over, silence(rng, 1), look, stats, change, over, look, stats, look}
		}},
		{1, func() []Call { // the copy lasts, and not too long
			past := pick(rng, []time.Duration{s.MaxTrust, s.MaxCopy, s.MaxTrust + s.StaleIfError, s.MaxCopy + s.StaleIfError})
			calls := []Call{through, silence(rng, AllRequests), rest(past + moment), look, stats, look, throughY, lookY, look}
			if often(rng, 2) { // else MaxStale is not set, or no refresh has been
				calls = append([]Call{through, refresh}, calls[1:]...)
			}
			return append(calls,
				rest(2*time.Second), Call{Verb: MirrorExists, Items: x, Dead: true}, Call{Verb: Speak},
				rest(2*time.Second), look, stats)
		}},
		{1, func() []Call { // a ticker that refreshes in time, past the hour
			half := s.MaxStale * 9 / 10
			calls := []Call{refresh, rest(s.MaxCopy - s.MaxStale - half - moment), refresh, rest(half)}
			return append(calls, look, refresh, rest(half), Call{Verb: MirrorAll, Items: three[:2]}, look)
		}},
		{1, func() []Call { // a caller that is dead, and what others are told
			return []Call{through, change, over, dead, stats, look}
		}},
		{1, func() []Call { // one that leaves while its request is held
			return []Call{through, change, over, hold(""), leaves, stats, look}
		}},
		{1, func() []Call { // the answer of an Add ends an outage
			add := Call{Verb: Add, Items: y}
			return []Call{through, refresh, add, over, silence(rng, 1), through, stats, through, stats, lookY, look}
		}},
		{1, func() []Call { // the waiting counts, also of a caller that waits for another
			held, until := Call{Verb: Silence, More: AllRequests}, rest(s.MaxTrust+s.StaleIfError-moment)
			return []Call{through, refresh, change, until, held, look.aside(), look, {Verb: Speak}}
		}},
		{2, func() []Call { // a question is lost after a later one was answered
			later := refresh
			if s.MaxStale > 0 {
				later = throughY
			}
			return []Call{through, over, hold(asks), look.aside(), rest(700 * time.Millisecond), later, rest(3 * moment), stats}
		}},
		{2, func() []Call { // an answer counts from its sending
			first, begins := through, "BITFIELD"
			if often(rng, 2) {
				first, begins = refresh, "EVAL"
			}
			return []Call{
				through, late(begins, 0), first.aside(), rest(moment / 2), change,
				{Verb: Add, Items: y},
				rest(s.MaxTrust), look, lookY,
			}
		}},
		{2, func() []Call { // two attempts make a filter, and another one that came between is gone
			return []Call{
				{Verb: Clear},
				{Verb: Hold, From: 1, Command: "BITFIELD"},
				through.aside(), rest(moment / 2), throughY,
				{Verb: Clear},
				over, lookY,
			}
		}},
		{3, func() []Call { // a refresh, or its download, is answered after what came meanwhile
			first := Call{Verb: pick(rng, []Verb{change.Verb, Add}), Items: y}
			calls := []Call{through, refresh, first, late("EVAL", rng.IntN(2)), refresh.aside(), rest(moment / 2)}
			switch rng.IntN(3) {
			case 0:
				calls[2] = Call{Verb: Add, Items: z}
				calls = append(calls, change)
			case 1: // the filter is replaced when the download has all of its bits by another answer
				calls[2] = change
				calls = append(calls, throughY, change)
			}
			calls = append(calls, pick(rng, []Call{refresh, {Verb: MirrorThrough, Items: z}}), rest(3*moment), look)
			return append(calls, Call{Verb: MirrorExists, Items: z}, lookY)
		}},
		{1, func() []Call { // one call at a time asks, one a second
			return []Call{
				through, over,
				{Verb: Silence, More: AllRequests},
				look, look, rest(1200 * time.Millisecond), look.aside(), rest(moment), look,
				{Verb: Speak},
			}
		}},
		{1, func() []Call { // an outage begins while others wait for a refresh that is then given up
			return []Call{
				through, refresh, over, hold("EVAL"), leaves.aside(), rest(moment / 10), look.aside(), rest(moment / 10),
				{Verb: Silence, More: 1, From: 6, Command: "BITFIELD"},
				throughY, rest(3 * moment),
			}
		}},
		{3, func() []Call { // an answer about a filter comes after one about the next
			first := pick(rng, []Call{look, through, {Verb: MirrorAll, Items: three[:2]}})
			next := pick(rng, []Call{refresh, lookY, throughY})
			calls := []Call{{Verb: Add, Items: x}, late("BITFIELD", 0), first.aside(), rest(moment / 2), change, next}
			return append(calls, pick(rng, []Call{look, refresh, rest(3 * moment)}), rest(3*moment), look, lookY)
		}},
		{1, func() []Call { return []Call{{Verb: Speak}, look, {Verb: MirrorAll, Items: three[:2]}} }},
	})()
}
