package proof

import (
	"math/rand/v2"
	"slices"
	"time"
)

// The first attempt at a command that makes a filter comes late: its retry made the
// filter, and that has gone. Who compares the answers to several requests, or keeps
// a copy, must not take the filter of the late attempt for the one before.

// comesLate has one request that begins with a command run late, after so many
// others have passed. Its client sends it again at once.
func comesLate(command string, after int) Call {
	return Call{Verb: Hold, From: 2, Command: command, More: after}
}

// pauses makes a call of several requests wait between two of them. Of a write the
// answer to one is late: after one that is sent again, the model allows for more. Of
// a call that only reads one is not run until its client sends it again. The other
// requests may be under way meanwhile.
func pauses(c Call, command string, after int) []Call {
	held := Call{Verb: Hold, Command: command, More: after}
	if c.Verb.is(reads) {
		held.From = 3
	}
	return []Call{held, c.aside()}
}

// drawLate draws a filter made by two attempts, the first of which is late, and calls
// across the change, the last of which pauses. clear removes the filter.
func drawLate(rng *rand.Rand, late, makes Call, clear, across []Call) []Call {
	calls := append(append(slices.Clone(clear), late, makes), across...)
	calls = append(append(calls, rest(upTo(rng, 50*time.Millisecond))), clear...)
	return append(calls, rest(500*time.Millisecond))
}
