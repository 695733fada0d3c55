package proof

import (
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

// nearItems is the number of items of a Near filter. Its clients make more calls,
// of which many must find something new.
const nearItems = 16

func (f Filters) items() int {
	if f.Near {
		return nearItems
	}
	return itemCount
}

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
)

var themeNames = []string{"moves", "copies", "counts", "mirrors", "writers", "causes", "oldserver", "crowds"}

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

var plainVerbs = []Verb{
	Create, Create, Add, Add, Add, Add, Add, Add, AddAll, AddSeq, AddIn,
	Exists, Exists, Exists, Exists, Exists, ExistsIn, ExistsAll, ExistsAll, Delete, Delete,
	Persist, SetTTL, Open, Open, Open,
}

// themeVerbs are drawn about as often as the plain ones.
var themeVerbs = []struct {
	theme Theme
	verbs []Verb
}{
	{Moves, []Verb{Load, Merge, Restore, Replace, Replace, Replace, ReplaceWrong}},
	{Copies, []Verb{Snapshot, Snapshot, Snapshot, Rename, Rename, Rename, Union, Union}},
	{Counts, []Verb{Stats, Stats, Inspect, Inspect, Overlap}},
	{Mirrors, []Verb{
		MirrorExists, MirrorExists, MirrorExists, MirrorAll, MirrorAll, MirrorAdd, MirrorThrough, MirrorThrough,
		MirrorThrough, MirrorAddAll, MirrorAddAll, Refresh, Refresh, Replace, Replace,
	}},
	{Crowds, []Verb{Crowd}},
	// An Inspect counts again what another program's filter has lengthened.
	{Writers, []Verb{Inspect, Inspect, Inspect, Add, Exists, Delete}},
}

// DrawFilters draws the Config of a history, with at most two of the themes.
func DrawFilters(rng *rand.Rand, themes Theme) Filters {
	sizes := []Filters{{Bits: 53, Hashes: 2}, {Bits: 106, Hashes: 4}}
	f := sizes[rng.IntN(2)]
	if rng.IntN(2) == 0 {
		f.TTL = time.Hour
	}
	f.MustExist, f.Seed = rng.IntN(8) == 0, drawSeed(rng)
	f.Watch = rng.IntN(3) == 0
	f.MissingIsEmpty = rng.IntN(8) == 0
	var on []Theme
	for i := range themeNames {
		if t := Theme(1 << i); themes&t != 0 {
			on = append(on, t)
		}
	}
	for range min(2, len(on)) {
		f.Themes |= on[rng.IntN(len(on))]
	}
	stale := []time.Duration{0, 100 * time.Microsecond, 10 * time.Millisecond, time.Second, time.Second}
	trust := []time.Duration{time.Minute, time.Minute, 20 * time.Millisecond}
	f.MaxStale, f.MaxTrust = stale[rng.IntN(len(stale))], trust[rng.IntN(len(trust))]
	if f.Themes&^(Mirrors|Causes|Writers|OldServer|Crowds) == 0 && f.Themes != 0 && rng.IntN(2) == 0 {
		f.Lag, f.Reads = true, bloom.ReadsNearest
		if rng.IntN(2) == 0 {
			f.Reads = bloom.Reads(rng.IntN(3))
		}
	}
	if f.Themes&Mirrors != 0 && !f.MustExist && rng.IntN(3) == 0 {
		f.NoScripts, f.Slow = f.Lag, !f.Lag
		f.MaxStale = time.Second
		if f.Lag { // to make a region's answer older
			f.MaxStale = stale[1]
		}
	}
	if f.Themes&(Moves|Copies) != 0 && f.Themes&Writers == 0 && rng.IntN(3) == 0 {
		f.Long, f.Bits, f.Hashes = true, longBits, longHashes
	} else if rng.IntN(4) == 0 {
		f.drawScheme(rng)
	}
	return f
}

// drawNear draws the Config of a history near a region that lags. The look-ups of
// a Bare filter ask the primary.
func drawNear(rng *rand.Rand) *Filters {
	f := &Filters{Bits: 106, Hashes: 2, Seed: drawSeed(rng), Lag: true, Near: true}
	if rng.IntN(2) == 0 {
		f.MissingIsEmpty, f.Bare = true, true
		f.drawScheme(rng)
		return f
	}
	f.Reads = bloom.Reads(rng.IntN(3))
	if rng.IntN(2) == 0 {
		f.TTL = time.Hour
	}
	if rng.IntN(2) == 0 {
		f.Themes = Mirrors
	}
	f.MaxStale, f.MaxTrust = []time.Duration{0, 10 * time.Millisecond, time.Second}[rng.IntN(3)], time.Minute
	return f
}

// drawScheme draws a scheme of independent bits, which has filters of any size.
func (f *Filters) drawScheme(rng *rand.Rand) {
	f.Bits, f.Hashes = 20+rng.Uint64N(100), 1+rng.IntN(5)
	if f.Scheme = bloom.SchemeXXH3; rng.IntN(2) == 0 { // which has no seeds
		f.Scheme, f.Seed = bloom.SchemeFNV1a, 0
	}
}

var nearVerbs = []Verb{
	Add, Add, Add, Add, AddAll, AddAll, Exists, ExistsAll, Stats, Snapshot, Snapshot, Snapshot, Snapshot,
}

// headedVerbs follow in a filter with a header.
var headedVerbs = append(slices.Clip(nearVerbs),
	Create, Delete, Exists, Exists, Exists, ExistsAll, Stats, Stats, Inspect, Inspect,
)

// drawRegion occasionally draws a region that stays behind.
func (f *Filters) drawRegion(rng *rand.Rand) {
	if rng.IntN(4) == 0 {
		f.Lag, f.Reads = true, bloom.Reads(rng.IntN(3))
	}
}

// Draw draws the calls a client makes without a rest: most often one, or a
// Rename away and back, or an Add and a look-up of its item, or calls around a
// Mirror.
func (f Filters) Draw(rng *rand.Rand) []Call {
	if (f.NoScripts || f.Slow) && rng.IntN(8) > 0 {
		return f.drawAroundMirror(rng)
	}
	c := f.drawCall(rng)
	next := c
	next.Cause = 0
	switch {
	case f.Near && !f.Bare && c.adds() && rng.IntN(2) == 0: // and looks for it soon
		next.Verb, next.Parts = []Verb{Stats, Inspect, ExistsAll, ExistsAll, Snapshot}[rng.IntN(5)], false
		return []Call{c, {Verb: Rest, Wait: upTo(rng, 100*time.Millisecond)}, next}
	case f.Bare, c.Verb != Open && rng.IntN(4) == 0:
		return []Call{c}
	case c.Verb == Rename:
		next.Key = 1 - c.Key
	case c.Verb == MirrorThrough && rng.IntN(2) == 0: // the copy may know one of two
		next.Verb = []Verb{MirrorAll, MirrorAddAll}[rng.IntN(2)]
		if next.Items = append(items(rng, 1), c.Items...); rng.IntN(2) == 0 {
			slices.Reverse(next.Items)
		}
		return []Call{{Verb: Refresh}, c, next}
	case c.Verb == MirrorThrough:
		next.Verb = MirrorExists
	case c.Verb == Open: // and uses the handle at once
		return append([]Call{c}, f.Draw(rng)...)
	default:
		return []Call{c}
	}
	return []Call{c, next}
}

// drawAroundMirror draws calls whose answers show if a Mirror forgets.
func (f Filters) drawAroundMirror(rng *rand.Rand) []Call {
	two := items(rng, 2)
	x, y := two[:1], two[1:]
	switch {
	case f.NoScripts: // a stuck region may lack x
		return []Call{{Verb: Add, Items: x}, {Verb: MirrorExists, Items: y}, {Verb: MirrorExists, Items: x}}
	case rng.IntN(3) == 0:
		// If x is new to AddThrough, the filter was replaced after the Add. x
		// must be found, although the copy is of the old filter and lacks it.
		return []Call{
			{Verb: Refresh}, {Verb: Add, Items: x}, {Verb: MirrorThrough, Items: x}, {Verb: MirrorExists, Items: x},
		}
	}
	// Meanwhile another caller of the Mirror learns of the old filter, and then
	// nothing until the Add has ended.
	return []Call{
		{Verb: MirrorThrough, Items: y}, {Verb: Replace, Items: y}, {Verb: Rest, Wait: 300 * time.Millisecond},
	}
}

func (f Filters) drawCall(rng *rand.Rand) Call {
	verbs := plainVerbs
	switch {
	case f.Bare:
		verbs = nearVerbs
	case f.Near:
		verbs = headedVerbs
	}
	for _, t := range themeVerbs {
		if f.Themes&t.theme != 0 && rng.IntN(3) == 0 {
			verbs = t.verbs
		}
	}
	c := Call{Verb: verbs[rng.IntN(len(verbs))]}
	if f.Themes&(Copies|Counts) != 0 && !c.mirrored() && rng.IntN(4) == 0 {
		c.Key = 1
	}
	if f.Themes&Causes != 0 && rng.IntN(3) == 0 {
		c.drawCause(rng)
	}
	if c.Verb == AddSeq && (f.Watch || rng.IntN(2) == 0) { // it may look in each round
		c.Verb = AddAll
	}
	if c.Verb == Exists && f.Lag && rng.IntN(4) == 0 {
		c.Verb, c.Key = ExistsIn, 0
	}
	switch c.Verb {
	case Open:
		c.Parts = rng.IntN(4) == 0
	case Add, Exists, MirrorExists, MirrorAdd, MirrorThrough:
		c.Items = itemsOf(rng, f.items(), 1)
	case AddAll, AddSeq, ExistsAll, MirrorAll, MirrorAddAll:
		c.Items = itemsOf(rng, f.items(), 2+rng.IntN(2))
		c.Parts = !c.mirrored() && rng.IntN(3) == 0
		if c.Parts && !f.Near && rng.IntN(3) == 0 { // the first part goes alone
			c.Items = append(c.Items, c.Items[len(c.Items)-1])
		}
	case Load, Merge, Restore, Replace:
		c.Items = items(rng, rng.IntN(4))
	case AddIn, ExistsIn, Crowd:
		x := items(rng, 1)[0]
		c.Items = []string{x, x}
		if c.Verb == Crowd {
			c.Items = append(c.Items, x, x, x)
		} else {
			c.Key, c.Into = 0, []int{0, rng.IntN(2)}
		}
	}
	return c
}

// drawCause makes the call's context end with another call's error.
func (c *Call) drawCause(rng *rand.Rand) {
	c.Cause = 1 + rng.IntN(len(causes))
	c.CauseAfter = time.Duration(1 + rng.Int64N(int64(2*time.Millisecond)))
	if rng.IntN(2) == 0 { // while an attempt waits for its answer
		c.CauseAfter += time.Duration(rng.Int64N(int64(300 * time.Millisecond)))
	}
}

// mirrored reports whether the call goes through a Mirror.
func (c Call) mirrored() bool { return strings.HasPrefix(string(c.Verb), "mirror.") }

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

// DrawOutside draws, after one call in ten, a change from outside.
func (f Filters) DrawOutside(rng *rand.Rand) (c Call, ok bool) {
	verbs := []Verb{Expire, Expire, Clear, Overwrite}
	often := 10
	if f.Themes&Moves != 0 && rng.IntN(3) == 0 {
		verbs = []Verb{ClearParts}
	}
	if f.Themes&Writers != 0 {
		verbs, often = append(verbs, Plant, Plant, Plant, Plant, Smudge, Smudge), 6
	}
	c.Verb = verbs[rng.IntN(len(verbs))]
	switch c.Verb {
	case Plant:
		c.Items = items(rng, 1+rng.IntN(4))
	case Smudge:
		c.Items = items(rng, 1)
	}
	return c, rng.IntN(often) == 0 && !f.Bare && (!f.Near || rng.IntN(3) == 0)
}
