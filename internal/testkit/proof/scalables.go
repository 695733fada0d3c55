package proof

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Scalables describes the handles of one history of a Scalable. It promises
// what a Filter promises.
type Scalables struct {
	Common
	FPRate float64
	// Layers is the highest number of layers. If Mixed is true, handles with
	// Call.Parts add none.
	Layers int
	Mixed  bool
	Churn  bool // filters that have grown are deleted often
	Stays  bool // nothing removes the filter
	// Latecomers makes first attempts come late, after the filter has gone.
	Latecomers bool
	// Untimed handles have no TTL: those with Call.Parts. The next write of another
	// handle sets it.
	Untimed bool
}

const (
	// layerItems is the capacity of the first layer, and the minimum.
	layerItems = 1000
	// With bigMore further items, an AddAll has more than a layer or a request
	// takes. moreItems is how many further items there are.
	manyMore, halfMore, bigMore, moreItems = 15, 400, layerItems + halfMore, 3 * layerItems
	// leaves is up to how many items a Fill leaves room for.
	leaves = 20
)

func (s *Scalables) drawConfig(rng *rand.Rand, _ Theme) {
	s.FPRate, s.Layers = pick(rng, []float64{0.5, 0.3, 0.05}), 1+rng.IntN(4)
	s.Second, s.Churn, s.Mixed = often(rng, 3), often(rng, 4), often(rng, 4)
	s.MustExist, s.MissingIsEmpty = often(rng, 6), often(rng, 8)
	if often(rng, 2) {
		s.TTL = time.Hour
	}
	s.Causes, s.Stays = often(rng, 4), !s.Churn && often(rng, 4)
	s.Untimed = s.TTL != 0 && !s.MustExist && often(rng, 4)
	s.Losses = !s.Stays && often(rng, 4)
	s.drawSeed(rng)
	s.drawRegion(rng)
	if often(rng, 4) { // the last layer is soon full
		s.Layers = 1 + rng.IntN(2)
	}
	s.Latecomers = !s.MustExist && !s.Stays && !s.Losses && !s.Lag && often(rng, 6)
	if s.Latecomers {
		s.Parallel = 1
	}
}

// config returns the Config of a handle.
func (s *Scalables) config(v variant) bloom.ScalableConfig {
	cfg := bloom.ScalableConfig{
		Capacity: layerItems, FPRate: s.FPRate, TTL: s.TTL, MustExist: s.MustExist,
		MissingIsEmpty: s.MissingIsEmpty, ReadsNearest: s.ReadsNearest,
		MaxBytes: s.offset(s.limit(v == inParts)) / 8, Seed: s.Seed,
	}
	if v == inParts && s.Untimed {
		cfg.TTL = 0
	}
	return cfg
}

// limit is the number of layers up to which a handle grows.
func (s *Scalables) limit(inParts bool) int {
	if inParts && s.Mixed {
		return 1
	}
	return s.Layers
}

func (s *Scalables) make(c []*upstash.Client, key string, v variant) (handle, error) {
	return bloom.NewScalable(c[0], key, s.config(v))
}

func (s *Scalables) open(ctx context.Context, c []*upstash.Client, key string, v variant) (handle, error) {
	cfg := s.config(v)
	cfg.Capacity, cfg.FPRate = 0, 0 // what the string says
	return bloom.OpenScalable(ctx, c[0], key, cfg)
}

// layer returns the geometry of layer i.
func (s *Scalables) layer(i int) bloom.Geometry {
	g := geometryOf(bloom.ScalableConfig{Capacity: layerItems, FPRate: s.FPRate, Seed: s.Seed})
	g.Bits <<= 2 * i
	return g
}

// offset returns where layer i begins, in bits, by the documentation of the
// format.
func (s *Scalables) offset(i int) uint64 {
	at := uint64(192)
	for n := range i {
		at += (s.layer(n).Bits + 7) / 8 * 8
	}
	return at
}

// items puts the further items behind the first one. If they are many, the others are
// in the next request.
func (s *Scalables) items(c Call) []string {
	if c.More == 0 {
		return c.Items
	}
	return slices.Insert(slices.Clone(c.Items), 1, s.more()[c.From:c.From+c.More]...)
}

// moreOf has what more returns, by the type of the handles.
var moreOf sync.Map

// more returns items that share no cell with those that calls ask for, in no
// layer. So the answers about those are no false positives.
func (s *Scalables) more() []string {
	type of struct {
		rate float64
		seed uint64
	}
	if list, ok := moreOf.Load(of{s.FPRate, s.Seed}); ok {
		return list.([]string)
	}
	asked := make(map[uint64]bool) // by offset
	for _, item := range ownItems {
		for i := range maxLayers {
			for _, p := range s.layer(i).Positions(nil, item) {
				asked[s.offset(i)+p] = true
			}
		}
	}
	isApart := func(item string) bool {
		for i := range maxLayers {
			for _, p := range s.layer(i).Positions(nil, item) {
				if asked[s.offset(i)+p] {
					return false
				}
			}
		}
		return true
	}
	var list []string
	for n := 0; len(list) < moreItems; n++ {
		if item := "more-" + strconv.Itoa(n); isApart(item) {
			list = append(list, item)
		}
	}
	moreOf.Store(of{s.FPRate, s.Seed}, list)
	return list
}

// removal is the verb for removing the filter. A late Delete would explain
// whatever is missing later.
func (s *Scalables) removal() Verb {
	if s.Churn {
		return Clear
	}
	return Delete
}

var scalableVerbs = odds{
	{1, Create},
	{3, Open},
	{8, Add},
	{3, AddAll},
	{5, Exists},
	{2, ExistsAll},
	{1, Stats},
	{1, Cardinality},
	{2, Delete},
	{2, Persist},
	{2, SetTTL},
}

// Draw draws a call, or a Rename away and back, or a change from outside.
func (s *Scalables) Draw(rng *rand.Rand) []Call {
	return stories{
		{100, s.drawPlain},
		{20, s.drawOutside},
		{when(s.Losses, 15), func(rng *rand.Rand) []Call { return []Call{s.drawLoss(rng)} }},
		{when(s.Latecomers && s.Silences, 300), s.drawLatecomer},
		{when(s.TTL != 0 && !s.MustExist && !s.Untimed, 10), s.drawProbe},
		{when(s.Backups != nil, 60), drawBackup(itemCount)},
		{when(s.Layers > 1, 8+when(s.Churn, 120)), s.drawRemoval},
		{24, s.drawFilled},
	}.tell(rng)
}

// drawProbe draws an Add whose filter must have a TTL, which comes with it.
func (s *Scalables) drawProbe(rng *rand.Rand) []Call {
	return []Call{{Verb: Add, Items: items(rng, 1)}, {Verb: ProbeTTL}}
}

// drawFilled draws calls by which several clients meet at the end of a layer.
func (s *Scalables) drawFilled(rng *rand.Rand) []Call {
	all := Call{Verb: AddAll, Items: items(rng, 1), More: manyMore, From: s.from(rng), Parts: often(rng, 3)}
	return []Call{{Verb: Fill, More: rng.IntN(leaves)}, all, {Verb: Layers}}
}

func (s *Scalables) drawPlain(rng *rand.Rand) []Call {
	c := s.draw(rng, scalableVerbs, itemCount, batch+1)
	c.Parts = often(rng, 4)
	switch {
	case c.Verb == Delete && s.Stays:
		c.Verb = Create
	case c.Verb == Delete:
		c.Verb = s.removal()
	case c.Verb == AddAll:
		s.drawMore(rng, &c)
	}
	return s.follow(rng, c, s.Draw)
}

// drawLatecomer draws an AddAll that needs two requests.
func (s *Scalables) drawLatecomer(rng *rand.Rand) []Call {
	three := items(rng, 3)
	add := Call{Verb: AddAll, Items: three[1:], More: bigMore, From: s.from(rng)}
	makes := Call{Verb: Add, Items: three[:1]}
	calls := drawLate(rng, comesLate("EVAL", 0), makes, []Call{{Verb: Clear}}, pauses(add, "EVAL", 0))
	return append(calls, Call{Verb: ExistsAll, Items: three})
}

// drawMore draws the further items of an AddAll.
func (s *Scalables) drawMore(rng *rand.Rand, c *Call) {
	c.Items = c.Items[rng.IntN(2):] // sometimes one item
	c.More = weighted(rng, []choice[int]{{5, 0}, {5, manyMore}, {when(!c.Parts, 1), halfMore}, {when(!c.Parts, 1), bigMore}})
	if c.More > 0 {
		c.From = s.from(rng)
	}
}

// drawRemoval draws calls of a handle that knows of two layers when another
// client deletes the filter.
func (s *Scalables) drawRemoval(rng *rand.Rand) []Call {
	more := pick(rng, []int{manyMore, bigMore})
	last := items(rng, 1)
	calls := []Call{
		{Verb: AddAll, Items: items(rng, 1), More: more, From: s.from(rng)},
		{Verb: s.removal(), Parts: true},
		{Verb: Add, Items: items(rng, 1)},
		{Verb: pick(rng, []Verb{Persist, SetTTL, s.removal()}), Parts: true},
		{Verb: Add, Items: last},
		{Verb: Rest, Wait: 30 * time.Millisecond}, // a script may run late
		{Verb: Exists, Items: last},
		{Verb: HasTTL},
	}
	return slices.DeleteFunc(calls, func(c Call) bool {
		return s.Stays && c.Verb == s.removal() || s.Untimed && c.Verb == HasTTL
	})
}

// from draws the first of further items. Calls of several clients have the same,
// or others.
func (s *Scalables) from(rng *rand.Rand) int { return rng.IntN(3) * (moreItems - bigMore) / 2 }

// drawOutside draws a change from outside, or a look. A removal by others shows nothing
// if the clients remove much; and a Backup is of any type, so there are no other data.
func (s *Scalables) drawOutside(rng *rand.Rand) []Call {
	removed := !s.Churn && !s.Stays
	c := Call{Verb: weighted(rng, odds{
		{4, Fill},
		{2, Layers},
		{when(!s.Untimed, 2), HasTTL}, // else nobody knows yet
		{when(!s.Churn && s.Backups == nil, 1), Smudge},
		{when(removed, 1), Expire},
		{when(removed, 2), Clear},
		{when(removed && s.Backups == nil, 1), Overwrite},
	})}
	c.drawItems(rng, itemCount, 1)
	if c.Verb == Fill {
		c.More = rng.IntN(leaves)
	}
	return []Call{c}
}

// last looks up every item, and adds more. If the newest layer is full, an Add
// must begin the next one.
func (s *Scalables) last(n int) []Call {
	add := func(item string, parts bool) Call { return Call{Verb: Add, Items: []string{item}, Parts: parts} }
	all := Call{Verb: ExistsAll, Items: allItems(itemCount)}
	other := all
	other.Key = 1
	calls := append([]Call{{Verb: Layers}, {Verb: Fill}}, lastCalls(all.Items, n%2 == 0)...)
	calls = append(calls,
		Call{Verb: HasTTL}, Call{Verb: Fill}, add(lastItems[1], false),
		Call{Verb: Fill}, add(lastItems[2], true), // by a handle that does not grow, and was not opened
		Call{Verb: Layers}, all, other)
	if s.Untimed { // who finds the item settles the TTL too
		calls = append(calls, Call{Verb: Clear}, add(itemAtLast, true), add(itemAtLast, false), Call{Verb: HasTTL})
	}
	return calls
}

// Outside makes a call on the database itself.
func (s *Scalables) Outside(dbs []*upstashtest.Server, key string, seed uint64, c Call) Result {
	switch c.Verb {
	case Fill:
		return s.fill(dbs[0], key, c.More)
	case Layers:
		return s.look(dbs[0], key)
	case Smudge: // it sets bits of any layer
		if _, err := dbs[0].Exec("HSET", filledKey, smudged, "1"); err != nil {
			return outsideResult(err, false, 0)
		}
	}
	return s.Common.Outside(dbs, key, seed, c)
}

// header is the first word of the filter, by the documentation of the format:
// kind 2, version 1, scheme 0 and a tag of the seed.
func (s *Scalables) header() int64 {
	g := s.layer(0)
	return 1<<52 | 2<<50 | 1<<48 | int64(g.Hashes)<<39 | seedTag(s.Seed)<<32 | int64(g.Bits)
}

const (
	maxLayers = 5
	// filledKey holds what each Fill added, by birth number and layer: numbers, each
	// with a space before it.
	filledKey = "filled"
	smudged   = "smudged"
)

// fillScript raises what the newest layer has taken. KEYS[1] is the filter, ARGV[1]
// its header, ARGV[2] the number of layers and ARGV[3] what the newest is to have
// taken.
const fillScript = `local w = redis.call('BITFIELD_RO', KEYS[1], 'GET', 'u53', '0', 'GET', 'u53', '64',
  'GET', 'u53', '128', 'GET', 'u4', '145', 'GET', 'u32', '149')
if w[1] ~= tonumber(ARGV[1]) or w[4] ~= tonumber(ARGV[2]) then return 0 end
local more = tonumber(ARGV[3]) - w[5]
if more <= 0 then return 1 end
redis.call('BITFIELD', KEYS[1], 'SET', 'u53', '128', string.format('%.0f', w[3] + more))
local field = string.format('%.0f:%d', w[2], w[4])
redis.call('HSET', KEYS[2], field, (redis.call('HGET', KEYS[2], field) or '') .. ' ' .. more)
return 2`

// fill has the newest layer count as many items as it is for, less those it still
// takes.
func (s *Scalables) fill(db *upstashtest.Server, key string, leave int) Result {
	l, err := s.layersAt(db, key)
	if err != nil || l.n == 0 {
		return outsideResult(err, false, 0)
	}
	taken := int(layerCapacity(l.n-1)) - leave
	reply, err := db.Exec("EVAL", fillScript, "2", key, filledKey,
		strconv.FormatInt(s.header(), 10), strconv.Itoa(l.n), strconv.Itoa(taken))
	done, _ := reply.(int64)
	return outsideResult(err, done > 0, l.n)
}

// layered is the string of a filter at one moment, by the documentation of the
// format.
type layered struct {
	value    string
	birth    int64
	capacity int64 // as the kind's word writes it
	n        int   // layers, 0 without a filter
	taken    int
	filled   map[string]string // the fields of filledKey
}

func (s *Scalables) layersAt(db *upstashtest.Server, key string) (layered, error) {
	reply, err := db.Exec("EVAL", `if redis.call('TYPE', KEYS[1]).ok ~= 'string' then return {} end
local w = redis.call('BITFIELD_RO', KEYS[1], 'GET', 'u53', '0', 'GET', 'u53', '64', 'GET', 'u53', '128')
return {redis.call('GET', KEYS[1]), w[1], w[2], w[3], redis.call('HGETALL', KEYS[2])}`, "2", key, filledKey)
	if err != nil {
		return layered{}, err
	}
	answers, ok := reply.([]any)
	if !ok || len(answers) != 5 || answers[1] != s.header() {
		return layered{}, nil
	}
	word := answers[3].(int64)
	l := layered{
		value: answers[0].(string), birth: answers[2].(int64), capacity: word >> 36,
		n: int(word >> 32 & 15), taken: int(uint32(word)), filled: make(map[string]string),
	}
	for pair := range slices.Chunk(answers[4].([]any), 2) {
		l.filled[pair[0].(string)] = pair[1].(string)
	}
	return l, nil
}

// has reports whether a bit of the string is set.
func (l *layered) has(bit uint64) bool {
	return bit/8 < uint64(len(l.value)) && l.value[bit/8]>>(7-bit%8)&1 == 1
}

// filledIn returns how many items Fills may have added to layer i: each sum of
// some of them. A Revert takes back those that came later, and leaves the note.
func (l *layered) filledIn(i int) []int {
	sums := []int{0}
	for _, f := range strings.Fields(l.filled[fmt.Sprintf("%d:%d", l.birth, i+1)]) {
		n, _ := strconv.Atoi(f)
		for _, sum := range sums {
			sums = append(sums, sum+n)
		}
	}
	return sums
}

// look reads the string, and compares its layers with what it counts.
func (s *Scalables) look(db *upstashtest.Server, key string) Result {
	l, err := s.layersAt(db, key)
	r := outsideResult(err, l.n > 0, l.n)
	if l.n > 0 && l.filled[smudged] == "" && s.Backups == nil { // whose birth number is another
		r.Alarm = s.wrongIn(&l)
	}
	return r
}

// wrongIn says what is wrong with the layers, or "". A script is one step, so
// the rules hold at every moment: a layer but the newest holds as many items as
// it is for, the newest those that the word says it took, no other any, and no
// item is in two layers. Handles that add no layer put more into the newest.
func (s *Scalables) wrongIn(l *layered) string {
	const capacity = 1<<16 | 9<<11 | 1952 // 1,000 = (1 + 1952/2048) * 2^9
	if l.capacity != capacity || l.n > s.Layers {
		return fmt.Sprintf("a filter for %d with %d layers", l.capacity, l.n)
	}
	in := make(map[string]int) // the layer that an item was put into, from 1
	for i := range s.Layers {
		certain, held := s.putInto(l, i)
		for _, item := range certain {
			if in[item] > 0 {
				return fmt.Sprintf("item %s was put into layers %d and %d", item, in[item]-1, i)
			}
			in[item] = i + 1
		}
		took, most := int(layerCapacity(i)), int(layerCapacity(i))
		switch {
		case i >= l.n:
			took, most = 0, 0
		case i == l.n-1:
			took, most = l.taken, l.taken
			if i < s.Layers-1 && l.taken > int(layerCapacity(i)) && !s.Mixed {
				return fmt.Sprintf("layer %d took %d items, and there was no next one", i, l.taken)
			}
		case s.Mixed:
			most = math.MaxInt
		}
		fits := func(by int) bool { return len(certain)+by <= most && held+by >= took }
		if by := l.filledIn(i); !slices.ContainsFunc(by, fits) {
			return fmt.Sprintf("layer %d of %d took %d items, and has %d to %d, and of %d of Fills",
				i, l.n, took, len(certain), held, by)
		}
	}
	return ""
}

// putInto returns the items that were certainly put into layer i, because one of
// their cells is no other's, and how many the layer holds, false positives
// included.
func (s *Scalables) putInto(l *layered, i int) (certain []string, held int) {
	g, offset := s.layer(i), s.offset(i)
	var items []string
	users := make([]uint8, g.Bits)
	var cells []uint64
	for _, item := range slices.Concat(s.more(), ownItems) {
		cells = g.Positions(cells[:0], item)
		if slices.ContainsFunc(cells, func(p uint64) bool { return !l.has(offset + p) }) {
			continue
		}
		items = append(items, item)
		for _, p := range cells {
			users[p] = min(users[p]+1, 2)
		}
	}
	for _, item := range items {
		if slices.ContainsFunc(g.Positions(cells[:0], item), func(p uint64) bool { return users[p] == 1 }) {
			certain = append(certain, item)
		}
	}
	return certain, len(items)
}

// layerCapacity is how many items layer i is for, by the documentation.
func layerCapacity(i int) float64 { return float64(int(layerItems) << (2 * i)) }
