package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/upbloom/upbloom/bloom"
)

// itemCount is the number of items to choose from. It is small, so calls share
// items.
const itemCount = 6

// Theme is a set of groups of verbs. A history has the plain verbs and few
// themes, so calls of one theme meet often.
type Theme uint16

const (
	Moves     Theme = 1 << iota // Load, Merge, Restore, Replace
	Copies                      // Snapshot, Rename away and back, Union
	Counts                      // Stats, EstimateIntersection
	Mirrors                     // calls through a Mirror
	Writers                     // other programs and other Configs, from outside
	Causes                      // contexts that end with another call's error
	OldServer                   // the server knows no flags in scripts
	Crowds                      // several callers of a Mirror at once
	Losses                      // the database comes back with an older state, or others copy the filter
)

var themeNames = []string{
	"moves", "copies", "counts", "mirrors", "writers", "causes", "oldserver", "crowds", "losses",
}

// String lists the names that ParseTheme reads.
func (t Theme) String() string {
	var names []string
	for i, name := range themeNames {
		if t>>i&1 == 1 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// ParseTheme reads names separated by commas. It ignores unknown ones.
func ParseTheme(s string) (t Theme) {
	for i, name := range themeNames {
		for part := range strings.SplitSeq(s, ",") {
			if part == name || part == "all" {
				t |= 1 << i
			}
		}
	}
	return t
}

// pick draws one of a list.
func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

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
	c.CauseAfter = time.Duration(1 + rng.Int64N(int64(2*time.Millisecond)))
	if rng.IntN(2) == 0 { // while an attempt waits for its answer
		c.CauseAfter += time.Duration(rng.Int64N(int64(300 * time.Millisecond)))
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

func itemName(n int) string { return "item-" + strconv.Itoa(n) }

// lastCalls adds a look-up of all items and one more Add to the history, half of
// the time through an opened handle, if the type has any.
func lastCalls(ctx context.Context, h *History, s Handles, all Call, opens bool) error {
	run := func(c Call) Result {
		return h.Do(atLast, atLast, c, func(c Call) Result { return s.Run(ctx, c) })
	}
	if opens && h.Len()%2 == 0 {
		run(Call{Verb: Open})
	}
	run(all)
	// The item is none of the clients', because a LostThenError may wait for
	// the repetition of one of their requests.
	add := Call{Verb: Add, Items: []string{itemAtLast}}
	return unharmed(add, run(add))
}

// unharmed returns an error if a call that met no fault has failed.
func unharmed(c Call, r Result) error {
	switch r.End {
	case Answered, Mismatch, Missing:
		return nil
	}
	return fmt.Errorf("%v met no fault: %v", c, r)
}

// The session of the last calls, and the item of their Add.
const (
	atLast     = "at last"
	itemAtLast = "item-at-last"
)

// lastItems are the items of the last Adds to a Scalable.
var lastItems = [...]string{itemAtLast, itemAtLast + "-2", itemAtLast + "-3"}

// allItems returns a look-up of n items.
func allItems(n int) Call {
	all := Call{Verb: ExistsAll}
	for i := range n {
		all.Items = append(all.Items, itemName(i))
	}
	return all
}

// drawBackup draws calls around a Backup, which is restored after a removal, or
// over a filter that is there.
func drawBackup(rng *rand.Rand, x []string) []Call {
	calls := []Call{{Verb: Add, Items: x}, {Verb: TakeBackup}}
	if rng.IntN(3) > 0 {
		calls = []Call{{Verb: pick(rng, []Verb{Clear, Clear, Delete})}, {Verb: RestoreBackup}, {Verb: Exists, Items: x}}
	}
	if calls[1].Verb == RestoreBackup && rng.IntN(3) == 0 {
		return calls[1:]
	}
	return calls
}

func upTo(rng *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(1 + rng.Int64N(int64(d)))
}

// ownCell returns the cell of an item in a type whose items share none. An item
// added to another filter has no cell.
func ownCell(v Verb, item string) bits {
	if v == Smudge {
		return bits{}
	}
	n, err := strconv.Atoi(strings.TrimPrefix(item, "item-"))
	if err != nil {
		n = MaxBits - 1 - slices.Index(lastItems[:], item)
	}
	return bitsOf([]uint64{uint64(n)}, MaxBits)
}

const (
	// longBits makes three parts of partBytes, which is as small as a part can
	// be.
	longBits, longHashes = 53 * 400, 4
	partBytes            = 1 << 10
	// fromNowhere is a cell of the model that no item has.
	fromNowhere = MaxBits - 1
)

// longItem returns an item of a Long filter. The one of the last calls is behind
// the others.
func longItem(n int) string {
	if n == itemCount {
		return itemAtLast
	}
	return itemName(n)
}

// longCellsOf returns the cells of an item in the model.
func longCellsOf(item string) (b bits) {
	for n := range itemCount + 1 {
		for i := range uint64(longHashes) {
			if longItem(n) == item {
				b = b.with(bitsOf([]uint64{uint64(n)*longHashes + i}, MaxBits))
			}
		}
	}
	return b
}

// longCells returns the cells of the model for those of a string. A cell that no
// item has is fromNowhere.
func longCells(g bloom.Geometry, isSet func(uint64) bool) (b bits) {
	known := 0
	for n := range itemCount + 1 {
		for i, at := range g.Positions(nil, longItem(n)) {
			if isSet(at) {
				known++
				b = b.with(bitsOf([]uint64{uint64(n*longHashes + i)}, MaxBits))
			}
		}
	}
	for at := range g.Bits {
		if isSet(at) {
			known--
		}
	}
	if known != 0 {
		b = b.with(bitsOf([]uint64{fromNowhere}, MaxBits))
	}
	return b
}

// secretSeed is the seed of the handles that have one.
const secretSeed = 0x5eed5eed5eed5eed

// drawSeed draws the seed of a history's handles.
func drawSeed(rng *rand.Rand) uint64 {
	if rng.IntN(3) == 0 {
		return secretSeed
	}
	return 0
}
