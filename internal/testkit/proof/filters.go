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
	if !around && !f.Twice && !f.Lag && !f.MustExist && !f.Losses && often(rng, 4) {
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

var nearVerbs = odds{{4, Add}, {2, AddAll}, {1, Exists}, {1, ExistsAll}, {1, Stats}, {4, Snapshot}}

// headedVerbs follow in a filter with a header.
var headedVerbs = append(slices.Clip(nearVerbs),
	odds{{1, Create}, {1, Delete}, {3, Exists}, {1, ExistsAll}, {2, Stats}, {2, Inspect}}...)

var plainVerbs = odds{
	{2, Create},
	{6, Add},
	{1, AddAll},
	{1, AddSeq},
	{1, AddIn},
	{5, Exists},
	{1, ExistsIn},
	{2, ExistsAll},
	{2, Delete},
	{1, Persist},
	{1, SetTTL},
	{3, Open},
}

// themeVerbs are drawn half as often as the plain ones.
var themeVerbs = []struct {
	theme Theme
	verbs odds
}{
	{Moves, odds{{1, Load}, {1, Merge}, {3, Replace}, {1, ReplaceWrong}}},
	{Copies, odds{{3, Snapshot}, {3, Rename}}},
	{Counts, odds{{2, Stats}, {2, Inspect}, {1, Cardinality}}},
	{Mirrors, odds{
		{3, MirrorExists},
		{2, MirrorAll},
		{1, MirrorAdd},
		{3, MirrorThrough},
		{2, MirrorAddAll},
		{2, Refresh},
		{2, Replace},
	}},
	{Crowds, odds{{1, Crowd}}},
	// An Inspect counts again what another program's filter has lengthened.
	{Writers, odds{{3, Inspect}, {1, Add}, {1, Exists}, {1, Delete}}},
}

// Draw draws the calls a client makes without a rest: most often one, or a
// Rename away and back, or an Add and a look-up of its item, or calls around a
// Mirror; or a change from outside.
func (f *Filters) Draw(rng *rand.Rand) []Call {
	around, mirrors := f.NoScripts || f.Slow || f.Crossing, f.Themes&Mirrors != 0 && !f.Near
	timed := f.Silences && f.TTL != 0 && !f.MustExist && !f.Near
	return stories{
		{100, f.drawPlain},
		{f.weighOutside(), f.drawOutside},
		{when(timed, 10), drawTimed(itemCount)},
		{when(f.Latecomers != "" && f.Silences, 300), f.drawLatecomer},
		{when(f.Outages, 400), f.drawOutage},
		{when(around, 700), f.drawAroundMirror},
		{when(f.Twice, 700), f.drawTwice},
		{when(mirrors && f.Losses, 15), f.drawLost},
		{when(mirrors && !f.Losses, 15), f.drawReplaced},
	}.tell(rng)
}

// drawTwice draws calls around an upload, all of them about one item.
func (f *Filters) drawTwice(rng *rand.Rand) []Call {
	x := []string{itemName(0)}
	return weighted(rng, []choice[story]{
		{1, story{{Verb: Load, Items: x}, {Verb: Exists, Items: x}}},
		{1, story{rest(upTo(rng, 700*time.Millisecond)), {Verb: Exists, Items: x}, {Verb: Clear}}},
	})
}

// drawPlain draws a call of the themes, and what follows it.
func (f *Filters) drawPlain(rng *rand.Rand) []Call {
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

// drawOutage draws calls that show if a Mirror answers late without a cause, or not
// although it must.
func (f *Filters) drawOutage(rng *rand.Rand) []Call {
	three := items(rng, 3)
	if f.MissingIsEmpty && !often(rng, 4) {
		return f.drawMissing(rng, three[:1])
	}
	return f.Staleness.drawOutage(rng, three, odds{{1, Clear}, {1, Replace}, {1, Delete}})
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

// drawLatecomers has first attempts come late in a history. A filter that is read in
// parts is Long.
func (f *Filters) drawLatecomers(rng *rand.Rand) {
	f.Latecomers = weighted(rng, odds{{4, Snapshot}, {2, TakeBackup}, {1, AddAll}, {1, AddSeq}, {1, MirrorThrough}})
	f.Parallel = 1
	if f.Latecomers == Snapshot || f.Latecomers == TakeBackup {
		f.Long, f.Bits, f.Hashes, f.Scheme = true, longBits, longHashes, bloom.SchemeBlocked
		f.Themes &^= Writers
	}
}

// drawLatecomer draws calls by which a Filter's client compares two answers.
func (f *Filters) drawLatecomer(rng *rand.Rand) []Call {
	four := items(rng, 4)
	w, x := Call{Verb: Add, Items: four[:1]}, four[1:]
	clear := []Call{{Verb: Clear}}
	late := comesLate("BITFIELD", 0)
	switch f.Latecomers {
	case Snapshot, TakeBackup:
		read := pauses(Call{Verb: Snapshot, Parts: f.Latecomers == TakeBackup}, "EVAL", 1+rng.IntN(2))
		return drawLate(rng, late, w, clear, append([]Call{{Verb: AddAll, Items: x}}, read...))
	case AddAll, AddSeq:
		add := Call{Verb: f.Latecomers, Items: x, Parts: true}
		calls := drawLate(rng, late, w, clear, pauses(add, "BITFIELD", rng.IntN(2)))
		return append(calls, Call{Verb: ExistsAll, Items: four})
	}
	return []Call{
		{Verb: Clear},
		late, w,
		{Verb: MirrorThrough, Items: x[:1]},
		{Verb: Clear},
		rest(200 * time.Millisecond),
		{Verb: MirrorThrough, Items: x[1:2]},
		{Verb: pick(rng, []Verb{MirrorExists, MirrorAdd}), Items: x[:1]},
	}
}

func (f *Filters) drawCall(rng *rand.Rand) Call {
	plain := plainVerbs
	switch {
	case f.Bare:
		plain = nearVerbs
	case f.Near:
		plain = headedVerbs
	}
	lists := []choice[odds]{{2, plain}}
	for _, t := range themeVerbs {
		lists = append(lists, choice[odds]{when(f.Themes&t.theme != 0, 1), t.verbs})
	}
	list := weighted(rng, lists)
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

// weighOutside returns the weight of a change from outside.
func (f *Filters) weighOutside() int {
	switch {
	case f.Bare:
		return 0
	case f.Near:
		return 4
	case f.Losses:
		return 50
	case f.Themes&Writers != 0:
		return 20
	}
	return 12
}

// drawOutside draws a change from outside.
func (f *Filters) drawOutside(rng *rand.Rand) []Call {
	c, writers := Call{}, f.Themes&Writers != 0
	list := odds{
		{2, Expire},
		{1, Clear},
		{1, Overwrite},
		{when(f.Themes&Moves != 0, 2), ClearParts},
		{when(writers, 4), Plant},
		{when(writers, 2), Smudge},
	}
	if f.Losses {
		list, c.Key = odds{{3, Keep}, {3, Revert}, {1, CopyOver}, {1, Clear}}, rng.IntN(6)/5
	}
	c.Verb = weighted(rng, list)
	c.drawItems(rng, itemCount, 4)
	return []Call{c}
}

// last looks up every item, adds one more, and loads and copies the filter if
// filters are moved. By then a filter meant to have a TTL has one. Other data has
// none.
func (f *Filters) last(n int) []Call {
	calls := lastCalls(allItems(f.itemCount()), !f.Bare && n%2 == 0)
	copied := Call{Verb: Snapshot, Sure: true}
	switch {
	case f.Near:
		calls = append(calls, copied)
	case f.Themes&(Moves|Copies) != 0:
		calls = append(calls, Call{Verb: Snapshot}, Call{Verb: Load, Items: allItems(2), Sure: true}, copied)
	}
	return append(calls, Call{Verb: HasTTL})
}
