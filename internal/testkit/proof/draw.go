package proof

import (
	"math/rand/v2"
	"time"
)

// pick draws one of a list.
func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

// A choice is drawn as often as its weight says, beside the weights of the others.
type choice[T any] struct {
	weight int
	of     T
}

type (
	odds    []choice[Verb]
	story   = []Call
	stories []choice[func(*rand.Rand) story]
)

// weighted draws one of the choices.
func weighted[T any](rng *rand.Rand, list []choice[T]) (of T) {
	sum := 0
	for _, c := range list {
		sum += c.weight
	}
	n := rng.IntN(sum)
	for _, c := range list {
		if n -= c.weight; n < 0 {
			return c.of
		}
	}
	panic("proof: the weights have another sum")
}

// tell draws the calls of one of the stories.
func (s stories) tell(rng *rand.Rand) []Call { return weighted(rng, s)(rng) }

// when returns the weight of what is drawn in some histories alone.
func when(is bool, weight int) int {
	if is {
		return weight
	}
	return 0
}

// often reports true once in n.
func often(rng *rand.Rand, n int) bool { return rng.IntN(n) == 0 }

func upTo(rng *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(1 + rng.Int64N(int64(d)))
}

// draw draws a call with one of the verbs, of the first of items, and of a batch
// at most so many.
func (b *Common) draw(rng *rand.Rand, verbs odds, of, most int) Call {
	c := Call{Verb: weighted(rng, verbs)}
	if b.Second {
		if often(rng, 8) {
			c.Verb = Rename
		}
		c.Key = rng.IntN(4) / 3
	}
	if b.Causes && often(rng, 3) {
		c.drawCause(rng)
	}
	c.drawItems(rng, of, most)
	switch {
	case c.Verb == Open:
		c.Parts = often(rng, 4)
	case c.Verb.isBatch() && !c.Verb.is(mirrored|uploads|once):
		c.Parts = often(rng, 3)
	}
	return c
}

// isBatch reports whether a call of the verb has several items.
func (v Verb) isBatch() bool { return verbs[v].items == batch }

// follow draws what follows a call at once: the use of an opened handle, or most
// often the way back after a Rename.
func (b *Common) follow(rng *rand.Rand, c Call, draw func(*rand.Rand) []Call) []Call {
	switch {
	case c.Verb == Open:
		return append([]Call{c}, draw(rng)...)
	case c.Verb == Rename && !often(rng, 4):
		return []Call{c, c.then(Rename, 1-c.Key)}
	}
	return []Call{c}
}

// then returns the call with another verb and key, and no cause.
func (c Call) then(v Verb, key int) Call {
	c.Verb, c.Key, c.Cause = v, key, 0
	return c
}

// drawItems draws, of the first items, as many as the verb takes: of a batch most
// at most.
func (c *Call) drawItems(rng *rand.Rand, of, most int) {
	n := verbs[c.Verb].items
	if n == batch {
		n += rng.IntN(most - n + 1)
	}
	if n > 0 {
		c.Items = itemsOf(rng, of, n)
	}
}

// drawCause makes the call's context end with another call's error.
func (c *Call) drawCause(rng *rand.Rand) {
	c.Cause = 1 + rng.IntN(len(causes))
	c.CauseAfter = upTo(rng, 2*time.Millisecond)
	if often(rng, 2) { // while an attempt waits for its answer
		c.CauseAfter += upTo(rng, 300*time.Millisecond)
	}
}

func items(rng *rand.Rand, n int) []string { return itemsOf(rng, itemCount, n) }

// itemsOf draws n of the first of items.
func itemsOf(rng *rand.Rand, of, n int) []string {
	list := make([]string, n)
	for i, item := range rng.Perm(of)[:n] {
		list[i] = itemName(item)
	}
	return list
}

// drawTimed draws, with the first of items, an Add that makes a filter, and another
// one while the request that sets the TTL has no answer. Both have to say so.
func drawTimed(of int) func(rng *rand.Rand) []Call {
	return func(rng *rand.Rand) []Call {
		two, lost := itemsOf(rng, of, 2), silence(rng, 1)
		lost.Command = "EVAL"
		first, next := Call{Verb: Add, Items: two[:1]}, Call{Verb: Add, Items: two[1:]}
		pause := rest(upTo(rng, 100*time.Millisecond))
		return []Call{{Verb: Clear}, lost, first.aside(), pause, next, {Verb: ProbeTTL}, {Verb: Speak}}
	}
}

// drawBackup draws, with the first of items, calls around a Backup, which is restored
// after a removal, or over a filter that is there.
func drawBackup(of int) func(rng *rand.Rand) []Call {
	return func(rng *rand.Rand) []Call {
		x := itemsOf(rng, of, 1)
		removal := Call{Verb: weighted(rng, odds{{2, Clear}, {1, Delete}})}
		restored := []Call{{Verb: RestoreBackup}, {Verb: Exists, Items: x}}
		return weighted(rng, []choice[story]{
			{3, story{{Verb: Add, Items: x}, {Verb: TakeBackup}}},
			{4, append([]Call{removal}, restored...)},
			{2, restored},
		})
	}
}

// lastCalls are a look-up of some items and one more Add, through an opened handle
// if opened is true.
func lastCalls(all []string, opened bool) []Call {
	calls := []Call{
		{Verb: Open},
		{Verb: ExistsAll, Items: all},
		{Verb: Add, Items: []string{itemAtLast}, Sure: true},
	}
	if !opened {
		return calls[1:]
	}
	return calls
}

// AllRequests is how many requests a Silence without an end loses.
const AllRequests = 1 << 20

// silence draws how the server falls silent: for one question, or until it speaks.
// Call.From is the number of the fault.
func silence(rng *rand.Rand, requests int) Call {
	return Call{Verb: Silence, From: rng.IntN(1 << 10), More: requests}
}

// hold is a silence of one question that begins with a command, and is held as long
// as its client waits.
func hold(command string) Call { return Call{Verb: Silence, More: 1, Command: command} }

func rest(d time.Duration) Call { return Call{Verb: Rest, Wait: d} }

// aside returns the call as one that the next calls do not wait for.
func (c Call) aside() Call {
	c.Aside = true
	return c
}
