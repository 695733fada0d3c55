package proof

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Filters describes the handles of one history, which share a Config.
type Filters struct {
	Common
	Bits   uint64 // at most MaxBits, unless it is Long
	Hashes int
	Scheme bloom.Scheme
	// Near makes the verbs those that a region answers, and the writes beside.
	Near bool
	// Bare leaves out the header. Nothing removes such a filter: an item stays
	// in it, and no answer proves which filter it is of.
	Bare bool
	// NoScripts makes the server refuse scripts. No refresh of a Mirror
	// succeeds then.
	NoScripts bool
	// Slow makes the server hold many writes longer than their clients wait.
	Slow bool
	// Crossing makes many answers to the callers of a Mirror come after later ones.
	Crossing bool
	// Twice makes parts of uploads come late, and the answers about uploads too,
	// while others remove the filter.
	Twice bool
	// Latecomers makes first attempts come late, after the filter has gone. It is the
	// verb of the calls that then compare two filters, or "".
	Latecomers Verb
	Staleness
	// Long makes the string so long that it moves in several parts. Its items
	// share no cells: see TestLongItemsApart.
	Long bool
	// Sized gives the handles a Capacity: three items are too many.
	Sized bool
	// Themes are the groups of verbs drawn besides the plain ones.
	Themes Theme
}

func (f *Filters) sized() bool { return f.Sized }

// config returns the Config of a handle.
func (f *Filters) config(v variant) bloom.Config {
	cfg := bloom.Config{
		Bits: f.Bits, Hashes: f.Hashes, Scheme: f.Scheme, TTL: f.TTL, MustExist: f.MustExist || v == strict,
		MissingIsEmpty: f.MissingIsEmpty, Seed: f.Seed, ReadsNearest: f.ReadsNearest,
	}
	if f.Sized {
		cfg.Capacity = sizedCapacity
	}
	if f.Bare {
		cfg.Layout = bloom.LayoutBare
	}
	return cfg
}

func (f *Filters) geometry() bloom.Geometry { return geometryOf(f.config(plain)) }

func (f *Filters) make(c []*upstash.Client, key string, v variant) (handle, error) {
	return bloom.New(c[0], key, f.config(v))
}

func (f *Filters) open(ctx context.Context, c []*upstash.Client, key string, v variant) (handle, error) {
	cfg := f.config(v)
	cfg.Capacity, cfg.Bits, cfg.Hashes, cfg.Scheme = 0, 0, 0, 0 // what the string says
	return bloom.Open(ctx, c[0], key, cfg)
}

// Outside makes a call on the database itself.
func (f *Filters) Outside(dbs []*upstashtest.Server, key string, seed uint64, c Call) Result {
	if c.Key == 1 && (c.Verb == Overwrite || c.Verb == Plant) {
		key = secondKey(key)
	}
	switch {
	case c.Verb == Overwrite && f.Themes&Moves != 0 && seed%3 == 0:
		_, err := dbs[0].Exec("SET", key, emptyTable+string(make([]byte, 113)))
		return outsideResult(err, true, 0)
	case c.Verb == Plant:
		_, err := dbs[0].Exec("SET", key, string(stringOf(localOf(f.geometry(), c.Items))))
		return outsideResult(err, false, 0)
	}
	return f.Common.Outside(dbs, key, seed, c)
}

// emptyTable is other data for the calls that replace a filter: an empty Cuckoo.
const emptyTable = "\x8d\x08\x00\x00\x00\x1c\x28\x00" + "\x80\x00\x00\x00\x00\x00\x08\x00" +
	"\x80\x00\x00\x00\x00\x00\x00\x00"

// Theme is a set of groups of verbs. A history has the plain verbs and few
// themes, so calls of one theme meet often.
type Theme uint16

const (
	Moves     Theme = 1 << iota // Load, Merge, Replace
	Copies                      // Snapshot, Rename away and back
	Counts                      // Stats, Inspect, Cardinality
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

func (f *Filters) itemCount() int {
	if f.Near {
		return nearItems
	}
	return itemCount
}

// nearItems is the number of items of a Near filter. Its clients make more calls,
// of which many must find something new.
const nearItems = 16

// drawConfig draws the Config of a history, with at most two of the themes.
func (f *Filters) drawConfig(rng *rand.Rand, themes Theme) {
	if f.Near {
		f.drawNear(rng)
		return
	}
	f.Bits, f.Hashes = 53, 2
	if often(rng, 2) {
		f.Bits, f.Hashes = 106, 4
	}
	if often(rng, 2) {
		f.TTL = 24 * time.Hour // more than the rests of a history
	}
	f.MustExist = often(rng, 8)
	f.drawSeed(rng)
	f.Sized = often(rng, 3)
	f.MissingIsEmpty = often(rng, 8)
	var on []Theme
	for i := range themeNames {
		if t := Theme(1 << i); themes&t != 0 {
			on = append(on, t)
		}
	}
	for range min(2, len(on)) {
		f.Themes |= on[rng.IntN(len(on))]
	}
	f.Losses, f.Causes, f.OldServer = f.Themes&Losses != 0, f.Themes&Causes != 0, f.Themes&OldServer != 0
	if f.Losses && often(rng, 2) {
		f.Themes |= Mirrors
	}
	stale := []time.Duration{0, 100 * time.Microsecond, 10 * time.Millisecond, time.Second, time.Second}
	f.MaxStale = pick(rng, stale)
	if often(rng, 3) {
		f.StaleIfError = pick(rng, []time.Duration{50 * time.Millisecond, 2 * time.Second})
	}
	if f.Themes&^(Mirrors|Causes|Writers|OldServer|Crowds) == 0 && f.Themes != 0 && often(rng, 2) {
		f.Lag, f.ReadsNearest = true, !often(rng, 3)
	}
	if f.Themes&Mirrors != 0 && !f.MustExist && often(rng, 2) {
		f.Crossing = !f.Lag && often(rng, 2)
		f.NoScripts, f.Slow = f.Lag, !f.Lag && !f.Crossing
		f.MaxStale = time.Second
		if f.Lag { // to make a region's answer older
			f.MaxStale = stale[1]
		}
	}
	if f.Themes&(Moves|Copies) != 0 && f.Themes&Writers == 0 && often(rng, 3) {
		f.Long, f.Bits, f.Hashes = true, longBits, longHashes
	} else if often(rng, 4) {
		f.drawScheme(rng)
	}
	f.limit()
	around := f.NoScripts || f.Slow || f.Crossing
	f.Twice = f.Themes&Moves != 0 && !f.Long && !around && often(rng, 3)
	if !around && !f.Twice && !f.Lag && !f.MustExist && !f.Losses && often(rng, 6) {
		f.drawLatecomers(rng)
	}
}

// drawNear draws the Config of a history near a region that lags. The look-ups of
// a Bare filter ask the primary.
func (f *Filters) drawNear(rng *rand.Rand) {
	f.Bits, f.Hashes, f.Lag, f.Parallel = 106, 2, true, 1
	f.drawSeed(rng)
	if often(rng, 2) {
		f.MissingIsEmpty, f.Bare = true, true
		f.drawScheme(rng)
		return
	}
	f.ReadsNearest = often(rng, 2)
	if often(rng, 2) {
		f.TTL = 24 * time.Hour
	}
	if often(rng, 2) {
		f.Themes = Mirrors
	}
	f.MaxStale = []time.Duration{0, 10 * time.Millisecond, time.Second}[rng.IntN(3)]
	f.limit()
}

// drawScheme draws a scheme of independent bits, which has filters of any size.
func (f *Filters) drawScheme(rng *rand.Rand) {
	f.Bits, f.Hashes = 20+rng.Uint64N(100), 1+rng.IntN(5)
	f.Scheme = bloom.SchemeXXH3 // which has no seeds
	if often(rng, 2) {
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
	{Moves, []Verb{Load, Merge, Replace, Replace, Replace, ReplaceWrong}},
	{Copies, []Verb{Snapshot, Snapshot, Snapshot, Rename, Rename, Rename}},
	{Counts, []Verb{Stats, Stats, Inspect, Inspect, Cardinality}},
	{Mirrors, []Verb{
		MirrorExists, MirrorExists, MirrorExists, MirrorAll, MirrorAll, MirrorAdd, MirrorThrough, MirrorThrough,
		MirrorThrough, MirrorAddAll, MirrorAddAll, Refresh, Refresh, Replace, Replace,
	}},
	{Crowds, []Verb{Crowd}},
	// An Inspect counts again what another program's filter has lengthened.
	{Writers, []Verb{Inspect, Inspect, Inspect, Add, Exists, Delete}},
}

// Draw draws the calls a client makes without a rest: most often one, or a
// Rename away and back, or an Add and a look-up of its item, or calls around a
// Mirror. Of ten, one is a change from outside.
func (f *Filters) Draw(rng *rand.Rand) []Call {
	if c, ok := f.drawOutside(rng); ok {
		return []Call{c}
	}
	if f.Silences && f.TTL != 0 && !f.MustExist && !f.Near && often(rng, 12) {
		return drawTimed(rng, items(rng, 2))
	}
	if f.Latecomers != "" && f.Silences && !often(rng, 3) {
		return f.drawLatecomer(rng)
	}
	if f.Outages && !often(rng, 4) {
		return f.drawOutage(rng)
	}
	if (f.NoScripts || f.Slow || f.Crossing) && !often(rng, 8) {
		return f.drawAroundMirror(rng)
	}
	if f.Twice && !often(rng, 8) { // all of them about one item
		x := []string{itemName(0)}
		if often(rng, 2) {
			return []Call{{Verb: Load, Items: x}, {Verb: Exists, Items: x}}
		}
		return []Call{{Verb: Rest, Wait: upTo(rng, 700*time.Millisecond)}, {Verb: Exists, Items: x}, {Verb: Clear}}
	}
	if f.Themes&Mirrors != 0 && !f.Near && often(rng, 8) {
		if f.Losses {
			return f.drawLost(rng)
		}
		return f.drawReplaced(rng)
	}
	c := f.drawCall(rng)
	if c.Verb == AddIn && f.OldServer && !f.MustExist {
		c.Into = [][]int{{0, intoStrict}, {intoStrict, 0}}[rng.IntN(2)]
		return []Call{c, {Verb: FlushScripts}, {Verb: AddIn, Items: items(rng, 1), Into: c.Into}}
	}
	next := c.then(c.Verb, c.Key)
	switch {
	case (c.Verb == Add || c.Verb == AddAll) && f.TTL != 0 && !f.MustExist && !f.Bare && often(rng, 2):
		next.Verb, next.Items, next.Parts = ProbeTTL, nil, false
		return []Call{c, next}
	case f.Near && !f.Bare && c.Verb.is(adds) && often(rng, 2): // and looks for it soon
		next.Verb, next.Parts = pick(rng, []Verb{Stats, Inspect, ExistsAll, ExistsAll, Snapshot}), false
		return []Call{c, {Verb: Rest, Wait: upTo(rng, 100*time.Millisecond)}, next}
	case c.Verb != MirrorThrough || often(rng, 4):
		return f.follow(rng, c, f.Draw)
	case often(rng, 2):
		next.Verb = MirrorExists
		return []Call{c, next}
	}
	next.Verb = pick(rng, []Verb{MirrorAll, MirrorAddAll}) // the copy may know one of two
	next.Items = append(items(rng, 1), c.Items...)
	if often(rng, 2) {
		slices.Reverse(next.Items)
	}
	return []Call{{Verb: Refresh}, c, next}
}

// drawReplaced draws calls that show if a Mirror takes an item of a filter that was
// replaced for one of the new filter: the Mirror learns of that, and is asked for
// the item when the old filter is no excuse any more.
func (f *Filters) drawReplaced(rng *rand.Rand) []Call {
	two := items(rng, 2)
	x, y := two[:1], two[1:]
	return []Call{
		{Verb: MirrorThrough, Items: x},
		{Verb: Replace, Items: y},
		{Verb: MirrorThrough, Items: y},
		{Verb: Rest, Wait: f.MaxTrust},
		{Verb: MirrorThrough, Items: y},
		{Verb: MirrorExists, Items: x},
	}
}

// drawLost draws calls that show if a Mirror counts for longer than MaxCopy what the
// database has lost, x, and denies what has come instead.
func (f *Filters) drawLost(rng *rand.Rand) []Call {
	two := items(rng, 2)
	x, y := two[:1], two[1:]
	calls := []Call{
		{Verb: Keep},
		{Verb: MirrorThrough, Items: x},
		{Verb: Refresh},
		{Verb: Revert},
		{Verb: Add, Items: y},
		{Verb: Rest, Wait: f.MaxCopy + f.StaleIfError},
		{Verb: Refresh},
		{Verb: MirrorExists, Items: y},
		{Verb: MirrorExists, Items: x},
	}
	if often(rng, 2) { // without the second refresh
		calls = slices.Delete(calls, 6, 7)
	}
	return calls
}

// drawAroundMirror draws calls whose answers show if a Mirror forgets.
func (f *Filters) drawAroundMirror(rng *rand.Rand) []Call {
	two := items(rng, 2)
	x, y := two[:1], two[1:]
	switch {
	case f.Crossing && often(rng, 2): // the copy is fresh, and an answer comes late
		return []Call{{Verb: Refresh}, {Verb: MirrorThrough, Items: y}, {Verb: MirrorThrough, Items: y}}
	case f.Crossing:
		// The answer about the new filter comes after one about the old filter
		// that was under way with it. x must be found all the same.
		return []Call{
			{Verb: Rest, Wait: upTo(rng, 300*time.Millisecond)},
			{Verb: Replace},
			{Verb: MirrorThrough, Items: x},
			{Verb: MirrorExists, Items: x},
		}
	case f.NoScripts: // a stuck region may lack x
		return []Call{{Verb: Add, Items: x}, {Verb: MirrorExists, Items: y}, {Verb: MirrorExists, Items: x}}
	case often(rng, 3):
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

// DrawOutages has a history's Mirrors outlive outages.
func (f *Filters) DrawOutages(rng *rand.Rand) {
	f.Outages = true
	f.MissingIsEmpty = !f.MustExist && !f.Long && often(rng, 4)
	f.Themes |= Mirrors
	f.MaxStale = pick(rng, []time.Duration{0, 0, time.Second, 5 * time.Second})
	f.StaleIfError = pick(rng, []time.Duration{2 * time.Second, time.Minute, 2 * time.Hour, 2 * time.Hour})
	if f.MissingIsEmpty {
		f.MaxStale = pick(rng, []time.Duration{time.Second, time.Minute})
	}
	f.limit()
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

// drawOutage draws calls that show if a Mirror answers late without a cause, or not
// although it must.
func (f *Filters) drawOutage(rng *rand.Rand) []Call {
	three := items(rng, 3)
	if f.MissingIsEmpty && !often(rng, 4) {
		return f.drawMissing(rng, three[:1])
	}
	x, y, z := three[:1], three[1:2], three[2:]
	const moment = 100 * time.Millisecond
	over := rest(f.MaxTrust + moment)
	change := Call{Verb: pick(rng, []Verb{Clear, Replace, Delete}), Items: y}
	look, through := Call{Verb: MirrorExists, Items: x}, Call{Verb: MirrorThrough, Items: x}
	refresh, stats := Call{Verb: Refresh}, Call{Verb: MirrorStats}
	dead := Call{Verb: pick(rng, []Verb{MirrorExists, MirrorThrough, Refresh}), Items: x, Dead: true}
	leaves := Call{Verb: dead.Verb, Items: x, Cause: 1, CauseAfter: moment}
	asks := "BITFIELD" // how the request of a look-up begins that comes too late for the copy
	if f.MaxStale > 0 {
		asks = "EVAL"
	}
	switch rng.IntN(15) {
	case 0: // one lost request, and then health
		return []Call{through, refresh, over, silence(rng, 1), look, stats, change, over, look, stats, look}
	case 1: // the copy lasts, and not too long
		past := pick(rng, []time.Duration{f.MaxTrust, f.MaxCopy, f.MaxTrust + f.StaleIfError, f.MaxCopy + f.StaleIfError})
		calls := []Call{
			through,
			refresh,
			silence(rng, AllRequests), rest(past + moment), look, stats, look,
			{Verb: MirrorThrough, Items: y},
			{Verb: MirrorExists, Items: y},
			look,
			rest(2 * time.Second),
			{Verb: MirrorExists, Items: x, Dead: true},
			{Verb: Speak},
			rest(2 * time.Second), look, stats,
		}
		if often(rng, 2) { // MaxStale is not set, or no refresh has been
			calls = slices.Delete(calls, 1, 2)
		}
		return calls
	case 2: // a ticker that refreshes in time, past the hour
		half := f.MaxStale * 9 / 10
		calls := []Call{refresh, rest(f.MaxCopy - f.MaxStale - half - moment), refresh, rest(half)}
		return append(calls, look, refresh, rest(half), Call{Verb: MirrorAll, Items: three[:2]}, look)
	case 3: // a caller that is dead, and what others are told
		return []Call{through, change, over, dead, stats, look}
	case 4: // one that leaves while its request is held
		return []Call{through, change, over, hold(""), leaves, stats, look}
	case 5: // the answer of an Add ends an outage
		return []Call{
			through, refresh,
			{Verb: Add, Items: y},
			over, silence(rng, 1), through, stats, through, stats,
			{Verb: MirrorExists, Items: y},
			look,
		}
	case 6: // the waiting counts, also of a caller that waits for another
		held := Call{Verb: Silence, More: AllRequests}
		return []Call{
			through, refresh, change, rest(f.MaxTrust + f.StaleIfError - moment), held, look.aside(), look, {Verb: Speak},
		}
	case 7: // a question is lost after a later one was answered
		later := refresh
		if f.MaxStale > 0 {
			later = Call{Verb: MirrorThrough, Items: y}
		}
		return []Call{through, over, hold(asks), look.aside(), rest(700 * time.Millisecond), later, rest(3 * moment), stats}
	case 8: // an answer counts from its sending
		first, begins := through, "BITFIELD"
		if often(rng, 2) {
			first, begins = refresh, "EVAL"
		}
		return []Call{
			through,
			{Verb: Hold, Command: begins},
			first.aside(), rest(moment / 2), change,
			{Verb: Add, Items: y},
			rest(f.MaxTrust), look,
			{Verb: MirrorExists, Items: y},
		}
	case 9: // two attempts make a filter, and another one that came between is gone
		return []Call{
			{Verb: Clear},
			{Verb: Hold, From: 1, Command: "BITFIELD"},
			through.aside(), rest(moment / 2),
			{Verb: MirrorThrough, Items: y},
			{Verb: Clear},
			over,
			{Verb: MirrorExists, Items: y},
		}
	case 10: // a refresh, or its download, is answered after what came meanwhile
		change.Verb = pick(rng, []Verb{Replace, Add})
		late := Call{Verb: Hold, More: rng.IntN(2), Command: "EVAL"}
		calls := []Call{through, refresh, change, late, refresh.aside(), rest(moment / 2)}
		switch rng.IntN(3) {
		case 0:
			calls[2] = Call{Verb: Add, Items: z}
			calls = append(calls, change)
		case 1: // the filter is replaced when the download has all of its bits by another answer
			calls[2].Verb = Replace
			calls = append(calls, Call{Verb: MirrorThrough, Items: y}, Call{Verb: Replace})
		}
		calls = append(calls, pick(rng, []Call{refresh, {Verb: MirrorThrough, Items: z}}), rest(3*moment), look)
		return append(calls, Call{Verb: MirrorExists, Items: z}, Call{Verb: MirrorExists, Items: y})
	case 11: // one call at a time asks, one a second
		return []Call{
			through, over,
			{Verb: Silence, More: AllRequests},
			look, look, rest(1200 * time.Millisecond), look.aside(),
			rest(moment), look,
			{Verb: Speak},
		}
	case 12: // an outage begins while others wait for a refresh that is then given up
		return []Call{
			through, refresh, over, hold("EVAL"), leaves.aside(), rest(moment / 10), look.aside(), rest(moment / 10),
			{Verb: Silence, More: 1, From: 6, Command: "BITFIELD"},
			{Verb: MirrorThrough, Items: y},
			rest(3 * moment),
		}
	case 13: // an answer about a filter comes after one about the next
		next := pick(rng, []Call{refresh, {Verb: MirrorExists, Items: y}})
		return []Call{
			{Verb: Add, Items: x},
			{Verb: Hold, Command: "BITFIELD"},
			look.aside(), rest(moment / 2), change, next, rest(3 * moment), look,
		}
	}
	return []Call{{Verb: Speak}, look, {Verb: MirrorAll, Items: three[:2]}}
}

// drawMissing draws calls of three callers that show if answers of no filter, which
// come late, make a Mirror forget its own Add: a look-up asks if its refresh is lost.
func (f *Filters) drawMissing(rng *rand.Rand, x []string) []Call {
	look, through := Call{Verb: MirrorExists, Items: x}, Call{Verb: MirrorThrough, Items: x}
	lost := Call{Verb: Silence, More: 1, From: 6} // which is not repeated
	switch rng.IntN(5) {
	case 0:
		return []Call{{Verb: Clear}, lost, look}
	case 1:
		return []Call{{Verb: Refresh}}
	case 2: // the same of one caller
		const moment = 10 * time.Millisecond
		lost.Command = "EVAL"
		calls := []Call{{Verb: Clear}, rest(f.MaxStale), lost, look, {Verb: Hold, Command: "BITFIELD"}, look.aside(), rest(moment)}
		calls = append(calls, Call{Verb: Hold, Command: "EVAL"}, Call{Verb: Refresh, Aside: true}, rest(moment), through)
		return append(calls, rest(30*moment), look)
	}
	return []Call{through, look, look}
}

func (f *Filters) drawCall(rng *rand.Rand) Call {
	list := plainVerbs
	switch {
	case f.Bare:
		list = nearVerbs
	case f.Near:
		list = headedVerbs
	}
	for _, t := range themeVerbs {
		if f.Themes&t.theme != 0 && often(rng, 3) {
			list = t.verbs
		}
	}
	c := f.draw(rng, list, f.itemCount(), batch+1)
	if f.Themes&(Copies|Counts) != 0 && !c.Verb.is(mirrored) && often(rng, 4) {
		c.Key = 1
	}
	if c.Verb == Exists && f.Lag && often(rng, 4) {
		c.Verb = ExistsIn
	}
	switch c.Verb {
	case AddAll, AddSeq, ExistsAll:
		if c.Verb == AddSeq && often(rng, 2) {
			c.Verb = AddAll
		}
		if c.Parts && !f.Near && often(rng, 3) { // the first part goes alone
			c.Items = append(c.Items, pick(rng, c.Items))
		}
	case Load, Merge, Replace:
		c.Items = items(rng, rng.IntN(4))
	case Crowd:
		c.Items = slices.Repeat(c.Items, 5)
	case AddIn, ExistsIn:
		c.Key, c.Into = 0, []int{0, rng.IntN(2)}
	}
	return c
}

// drawOutside draws a change from outside.
func (f *Filters) drawOutside(rng *rand.Rand) (c Call, ok bool) {
	verbs := []Verb{Expire, Expire, Clear, Overwrite}
	n := 10
	if f.Themes&Moves != 0 && often(rng, 3) {
		verbs = []Verb{ClearParts}
	}
	if f.Themes&Writers != 0 {
		verbs, n = append(verbs, Plant, Plant, Plant, Plant, Smudge, Smudge), 6
	}
	if f.Losses {
		verbs, n = []Verb{Keep, Keep, Keep, Revert, Revert, Revert, CopyOver, Clear}, 3
		c.Key = rng.IntN(6) / 5
	}
	c.Verb = pick(rng, verbs)
	c.drawItems(rng, itemCount, 4)
	return c, often(rng, n) && !f.Bare && (!f.Near || often(rng, 3))
}

// last looks up every item, adds one more, and loads and copies the filter if
// filters are moved. By then a filter meant to have a TTL has one. Other data has
// none.
func (f *Filters) last(n int) []Call {
	calls := lastCalls(allItems(f.itemCount()), !f.Bare && n%2 == 0)
	copied := Call{Verb: Snapshot, Sure: true}
	switch {
	case f.Near:
		calls = append(calls, Call{Verb: Snapshot}, copied) // the first may meet a lost-then-error
	case f.Themes&(Moves|Copies) != 0:
		calls = append(calls, Call{Verb: Snapshot}, Call{Verb: Load, Items: allItems(2), Sure: true}, copied)
	}
	return append(calls, Call{Verb: HasTTL})
}
