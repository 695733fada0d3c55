package proof

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/lots"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Scalables describes the handles of one history of a Scalable. It promises
// what a Filter promises. Plain has the rest of its Config, and the model of a
// Filter checks its answers.
type Scalables struct {
	Plain  Filters
	FPRate float64
	// Layers is the highest number of layers. Handles with Call.Parts add none.
	Layers int
	Second bool // the filter is renamed, so there may be two
	Churn  bool // filters that have grown are deleted often
	Stays  bool // nothing removes the filter
	Causes bool // contexts end with the errors of other calls
	Watch  bool // the handles have a WarnFill
	AtOnce

	linger func()
}

// OnWarning sets what a WarnFill does besides.
func (s *Scalables) OnWarning(linger func()) { s.linger = linger }

const (
	// layerItems is the capacity of the first layer, and the minimum.
	layerItems = 1000
	// An Add of manyMore items and one other looks for room first. bigMore and
	// one other do not fit into the first layer. halfMore and others are less
	// than half of its capacity. Of pauseMore, as many are new as end the pause
	// after a warning.
	manyMore, halfMore, bigMore, pauseMore = 15, 400, layerItems, layerItems + 100
)

// DrawScalables draws the Config of a history.
func DrawScalables(rng *rand.Rand) *Scalables {
	s := &Scalables{
		FPRate: []float64{0.5, 0.3, 0.05}[rng.IntN(3)], Layers: 1 + rng.IntN(4), Second: rng.IntN(3) == 0,
		Churn: rng.IntN(4) == 0,
	}
	s.Plain.MustExist, s.Plain.MissingIsEmpty = rng.IntN(6) == 0, rng.IntN(8) == 0
	if rng.IntN(2) == 0 {
		s.Plain.TTL = time.Hour
	}
	s.Causes, s.Stays = rng.IntN(4) == 0, !s.Churn && rng.IntN(4) == 0
	s.Plain.Seed = drawSeed(rng)
	s.Plain.drawRegion(rng)
	if s.Watch = rng.IntN(3) == 0; s.Watch && rng.IntN(4) > 0 { // the last layer is soon full
		s.Layers = 1 + rng.IntN(2)
	}
	return s
}

// Config returns the Config of the handles that grow.
func (s *Scalables) Config() bloom.ScalableConfig {
	return bloom.ScalableConfig{
		Capacity: layerItems, FPRate: s.FPRate, TTL: s.Plain.TTL, MustExist: s.Plain.MustExist,
		MissingIsEmpty: s.Plain.MissingIsEmpty, Reads: s.Plain.Reads, BatchParallel: s.Parallel(),
		MaxBytes: s.offset(s.Layers) / 8, Seed: s.Plain.Seed,
	}
}

// configOf returns the Config of one of a pair of handles, and up to how many
// layers it grows.
func (s *Scalables) configOf(parts bool) (cfg bloom.ScalableConfig, layers int) {
	cfg, layers = s.Config(), s.Layers
	if parts {
		cfg.BatchBytes, cfg.MaxBytes, layers = 1, s.offset(1)/8, 1
	}
	return cfg, layers
}

// layer returns the geometry of layer i.
func (s *Scalables) layer(i int) bloom.Geometry {
	g, err := bloom.ScalableConfig{Capacity: layerItems, FPRate: s.FPRate, Seed: s.Plain.Seed}.Geometry()
	if err != nil {
		panic(err) // the sizes are constants
	}
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

type scalableSession struct {
	of      *Scalables
	client  *upstash.Client
	keys    [2]string
	handles [2]pair[bloom.Scalable] // by key

	watch *watch // nil if the handles have no WarnFill
}

// Open makes the handles of a process, whose client's observer must be Observe.
func (s *Scalables) Open(clients []*upstash.Client, key string) (Handles, error) {
	h := &scalableSession{
		of: s, client: clients[0], keys: [2]string{key, secondKey(key)}, watch: newWatch(s.Watch, s.linger),
	}
	for i := range h.keys {
		err := h.handles[i].fill(func(parts bool) (*bloom.Scalable, error) {
			cfg, layers := s.configOf(parts)
			return h.handle(i, cfg, layers)
		})
		if err != nil {
			return nil, err
		}
	}
	return h, nil
}

// Run makes one call.
func (s *scalableSession) Run(ctx context.Context, c Call) Result {
	a := newAttempts(c)
	if a.adds {
		a.sorts = func(e upstash.Event) bool { return a.putsItems(e, s.of.Plain.MustExist, c.Parts) }
	}
	do := func(ctx context.Context) Result {
		r := a.run(ctx, c, func(ctx context.Context) (Result, error) { return s.call(ctx, c) })
		if a.watched != nil && r.End == Answered && c.Verb.is(adds) {
			a.watched.New = countTrue(r.Yes)
		}
		r.Yes, r.States = r.Yes[:min(len(r.Yes), answersTo(c))], r.States[:min(len(r.States), len(c.Items))]
		return r
	}
	return s.watch.run(ctx, a, s.watchedBy(c), do)
}

func countTrue(yes []bool) (n int) {
	for _, y := range yes {
		if y {
			n++
		}
	}
	return n
}

// answersTo returns the number of answers to a call, without those for More
// items.
func answersTo(c Call) int { return max(len(c.Items), 1) }

// putsItems reports whether an attempt of an Add may put items. Earlier
// attempts are a look-up of the item, and scripts that find room or make the
// filter.
func (a *attempts) putsItems(e upstash.Event, must, parts bool) bool {
	if must {
		return e.Command != "BITFIELD"
	}
	if e.Command != "BITFIELD" {
		if !a.plain.Load() {
			a.scripts.Add(1)
			if e.MayHaveRun > 0 {
				a.lostScripts.Add(1)
			}
		}
		return false
	}
	if e.Attempt == 1 && !parts { // the look-up is over
		a.tried.Store(0)
		a.maybe.Store(0)
	}
	return true
}

func (s *scalableSession) call(ctx context.Context, c Call) (Result, error) {
	f := s.handles[c.Key].at(c).Load()
	switch c.Verb {
	case Open:
		return s.open(ctx, c)
	case Stats:
		st, err := f.Stats(ctx)
		return Result{Count: len(st.Layers)}, err
	}
	c.Items = withMore(c)
	return c.by(ctx, f, s.keys[1-c.Key])
}

func withMore(c Call) []string {
	list := append([]string(nil), c.Items...)
	for i := range c.More {
		list = append(list, moreName(i))
	}
	return list
}

func moreName(n int) string { return "more-" + strconv.Itoa(n) }

// churns returns the number of calls for each Delete of a grown filter.
func (s *Scalables) churns() int {
	if s.Churn {
		return 2
	}
	return 20
}

// removal is the verb for removing the filter. A late Delete would explain
// whatever is missing later.
func (s *Scalables) removal() Verb {
	if s.Churn {
		return Clear
	}
	return Delete
}

var scalableVerbs = []Verb{
	Create, Open, Open,
	Add, Add, Add, Add, Add, Add, Add, Add, AddAll, AddAll, AddAll, Exists, Exists, Exists, Exists,
	Exists, ExistsAll, ExistsAll, Stats, Cardinality, Delete, Delete, Persist, Persist, SetTTL, SetTTL, Open,
}

// Draw draws a call, or a Rename away and back.
func (s *Scalables) Draw(rng *rand.Rand) []Call {
	switch {
	case s.Layers > 1 && rng.IntN(s.churns()) == 0:
		return s.drawRemoval(rng)
	case s.Watch && s.Layers == 1 && s.FPRate == 0.05 && !s.Stays && rng.IntN(6) == 0:
		return s.drawPause(rng)
	case s.Watch && rng.IntN(4) == 0: // the filter is too full, or soon will be
		one := Call{Verb: Add, Items: items(rng, 1), Parts: rng.IntN(3) == 0}
		return []Call{{Verb: Fill}, one, {Verb: AddAll, Items: items(rng, 2)}}
	}
	c := Call{Verb: pick(rng, scalableVerbs), Parts: rng.IntN(4) == 0}
	switch {
	case c.Verb == Delete && s.Stays:
		c.Verb = Create
	case c.Verb == Delete:
		c.Verb = s.removal()
	}
	if s.Second && rng.IntN(8) == 0 {
		c.Verb = Rename
	}
	if s.Causes && rng.IntN(3) == 0 {
		c.drawCause(rng)
	}
	if s.Second && rng.IntN(4) == 0 {
		c.Key = 1
	}
	s.drawItems(rng, &c)
	switch c.Verb {
	case Open: // and uses the handle at once
		if s.Layers > 1 && rng.IntN(3) == 0 { // which must not grow
			c.Parts = false
			half := Call{Verb: AddAll, Items: items(rng, 1), More: halfMore, Key: c.Key}
			return []Call{c, half, {Verb: Stats, Key: c.Key}}
		}
		return append([]Call{c}, s.Draw(rng)...)
	case Rename:
		next := c
		next.Key, next.Cause = 1-c.Key, 0
		if rng.IntN(4) > 0 {
			return []Call{c, next}
		}
	}
	return []Call{c}
}

// drawRemoval draws calls of a handle that knows of two layers when another
// client deletes the filter.
func (s *Scalables) drawRemoval(rng *rand.Rand) []Call {
	more := []int{manyMore, bigMore}[rng.IntN(2)]
	last := items(rng, 1)
	calls := []Call{
		{Verb: AddAll, Items: items(rng, 1), More: more},
		{Verb: s.removal(), Parts: true},
		{Verb: Add, Items: items(rng, 1)},
		{Verb: []Verb{Persist, SetTTL, s.removal()}[rng.IntN(3)], Parts: true},
		{Verb: Add, Items: last},
		{Verb: Rest, Wait: 30 * time.Millisecond}, // a script may run late
		{Verb: Exists, Items: last},
		{Verb: HasTTL},
	}
	if s.Stays {
		return slices.DeleteFunc(calls, func(c Call) bool { return c.Verb == s.removal() })
	}
	return calls
}

// drawPause draws calls around the end of the pause after a warning.
func (s *Scalables) drawPause(rng *rand.Rand) []Call {
	return []Call{
		{Verb: Fill},
		{Verb: Add, Items: items(rng, 1)},
		{Verb: Clear},
		{Verb: AddAll, Items: items(rng, 1), More: pauseMore - 300*rng.IntN(2)},
		{Verb: Fill},
		{Verb: AddAll, Items: items(rng, 3)},
	}
}

// drawItems draws the items of a call, if it takes some.
func (s *Scalables) drawItems(rng *rand.Rand, c *Call) {
	c.drawItems(rng, itemCount, batch+1)
	if c.Verb == AddAll {
		c.Items = c.Items[rng.IntN(2):] // sometimes one item
		switch {
		case c.Parts:
		case s.Layers > 1 && rng.IntN(16) == 0:
			c.More = bigMore
		case s.Layers > 1 && rng.IntN(12) == 0:
			c.More = halfMore
		case rng.IntN(2) == 0:
			c.More = manyMore
		}
	}
}

// DrawOutside draws, after one call in six, a change from outside.
func (s *Scalables) DrawOutside(rng *rand.Rand) (c Call, ok bool) {
	verbs := []Verb{Fill, Fill, Fill, Fill, HasTTL, HasTTL, Smudge, Expire, Clear, Clear, Overwrite}
	switch {
	case s.Churn: // a removal by others shows nothing
		verbs = verbs[3:6]
	case s.Stays:
		verbs = verbs[:7]
	}
	c.Verb = verbs[rng.IntN(len(verbs))]
	if c.Verb == Smudge {
		c.Items = items(rng, 1)
	}
	return c, rng.IntN(6) == 0
}

// Finish adds last calls to the history: look-ups of every item, and one more
// Add. If the newest layer is full, the Add must make the next one.
func (s *Scalables) Finish(
	ctx context.Context, h *History, dbs []*upstashtest.Server, key string, handles Handles,
) error {
	ctx = lots.With(ctx, func() float64 { return 0 })
	outside := func(v Verb) {
		h.Do("outside", atLast, Call{Verb: v}, func(c Call) Result { return s.Outside(dbs, key, 0, c) })
	}
	outside(Fill)
	if err := lastCalls(ctx, h, handles, itemCount, true); err != nil {
		return err
	}
	outside(HasTTL)
	for i, item := range lastItems[1:] { // the last handle does not grow, and was not opened
		outside(Fill)
		add := Call{Verb: Add, Items: []string{item}, Parts: i == 1}
		h.Do(atLast, atLast, add, func(c Call) Result { return handles.Run(ctx, c) })
	}
	outside(Layers)
	for i := range 2 {
		all := allItems(itemCount)
		all.Key = i
		h.Do(atLast, atLast, all, func(c Call) Result { return handles.Run(ctx, c) })
	}
	return nil
}

// Outside makes a call on the database itself.
func (s *Scalables) Outside(dbs []*upstashtest.Server, key string, seed uint64, c Call) Result {
	switch c.Verb {
	case Fill:
		return s.fill(dbs[0], key)
	case Layers:
		n, err := s.layersAt(dbs[0], key)
		return outsideResult(err, n > 0, n)
	}
	return s.Plain.Outside(dbs, key, seed, c)
}

// layersAt returns the number of layers of the filter at key, or 0 without a
// filter.
func (s *Scalables) layersAt(db *upstashtest.Server, key string) (int, error) {
	reply, err := db.Exec("EVAL", `if redis.call('TYPE', KEYS[1]).ok ~= 'string' then return {0, 0} end
return redis.call('BITFIELD_RO', KEYS[1], 'GET', 'u53', '0', 'GET', 'u53', '128')`, "1", key)
	if err != nil {
		return 0, err
	}
	words, ok := reply.([]any)
	if !ok || len(words) != 2 {
		return 0, fmt.Errorf("two words are %v", reply)
	}
	if words[0] != s.header() {
		return 0, nil
	}
	return int(words[1].(int64) >> 48 & 15), nil
}

// header is the first word of the filter, by the documentation of the format:
// kind 2, version 1, scheme 0 and a tag of the seed.
func (s *Scalables) header() int64 {
	g := s.layer(0)
	return 1<<52 | 2<<50 | 1<<48 | int64(g.Hashes)<<39 | seedTag(s.Plain.Seed)<<32 | int64(g.Bits)
}

// fillScript sets whole bytes: KEYS[1] is the filter, ARGV[1] its header, ARGV[2]
// the number of layers, then pairs of an offset and a length.
const fillScript = `local w = redis.call('BITFIELD_RO', KEYS[1], 'GET', 'u53', '0', 'GET', 'u4', '129')
if w[1] ~= tonumber(ARGV[1]) or w[2] ~= tonumber(ARGV[2]) then return 0 end
for i = 3, #ARGV, 2 do
  redis.call('SETRANGE', KEYS[1], ARGV[i], string.rep('\255', tonumber(ARGV[i + 1])))
end
return 1`

func (s *Scalables) fill(db *upstashtest.Server, key string) Result {
	n, err := s.layersAt(db, key)
	if err != nil || n == 0 {
		return outsideResult(err, false, 0)
	}
	args := []string{"EVAL", fillScript, "1", key, strconv.FormatInt(s.header(), 10), strconv.Itoa(n)}
	for _, run := range s.freeBytes(n - 1) {
		args = append(args, strconv.FormatUint(run[0], 10), strconv.FormatUint(run[1]-run[0], 10))
	}
	reply, err := db.Exec(args...)
	return outsideResult(err, reply == int64(1), n)
}

// freeBytes returns the runs of bytes of layer i, from and to, without cells of
// the items.
func (s *Scalables) freeBytes(i int) (runs [][2]uint64) {
	g, offset := s.layer(i), s.offset(i)
	taken := make(map[uint64]bool)
	for n := range itemCount + len(lastItems) {
		for _, p := range g.Positions(nil, scalableItem(n)) {
			taken[(offset+p)/8] = true
		}
	}
	from := offset / 8
	for b := from; b <= (offset+g.Bits)/8; b++ {
		if !taken[b] && b < (offset+g.Bits)/8 {
			continue
		}
		if b > from {
			runs = append(runs, [2]uint64{from, b})
		}
		from = b + 1
	}
	return runs
}

// scalableItem returns an item. Behind the others are those of the last calls.
func scalableItem(n int) string {
	if n >= itemCount {
		return lastItems[n-itemCount]
	}
	return itemName(n)
}

// open opens the filter.
func (s *scalableSession) open(ctx context.Context, c Call) (Result, error) {
	cfg, _ := s.of.configOf(c.Parts)
	cfg.Capacity, cfg.FPRate = 0, 0 // what the string says
	f, err := bloom.OpenScalable(ctx, s.client, s.keys[c.Key], cfg)
	return adopt(s.handles[c.Key].at(c), f, err)
}

// handle makes a handle for the key that adds no layer beyond limit. It is
// watched if the history has watched handles.
func (s *scalableSession) handle(key int, cfg bloom.ScalableConfig, limit int) (*bloom.Scalable, error) {
	if s.watch == nil {
		return bloom.NewScalable(s.client, s.keys[key], cfg)
	}
	number, warn := s.watch.handle(key)
	cfg.WarnFill = func(st bloom.ScalableStats) {
		layers, items := []int{}, 0.0
		for i, l := range st.Layers {
			layers = append(layers, int(l.SetBits))
			items += estimate(s.of.layer(i), int(l.SetBits))
		}
		wrong := ""
		capacity := layersCapacity(max(len(layers), limit))
		if len(layers) < limit || items < capacity || st.MaxLayers != limit ||
			st.Capacity != uint64(capacity) || st.Geometry != s.of.layer(0) {
			wrong = fmt.Sprintf("a WarnFill of a handle for %d layers, with %v", limit, st)
		}
		warn(Warning{SetBits: int(st.SetBits), Layers: layers}, wrong)
	}
	f, err := bloom.NewScalable(s.client, s.keys[key], cfg)
	s.watch.numbers[f] = number
	return f, err
}

// watchedBy returns the number of the handle of a call, or -1 if the handle has
// no WarnFill.
func (s *scalableSession) watchedBy(c Call) int { return s.watch.number(s.handles[c.Key].at(c).Load()) }

// layerCapacity is how many items layer i is for, by the documentation.
func layerCapacity(i int) float64 { return float64(int(layerItems) << (2 * i)) }

// layersCapacity is how many items so many layers are for.
func layersCapacity(layers int) (items float64) {
	for i := range layers {
		items += layerCapacity(i)
	}
	return items
}

// estimate is how many items a filter with so many set bits has (Swamidass and
// Baldi).
func estimate(g bloom.Geometry, setBits int) float64 {
	m, k := float64(g.Bits), float64(g.Hashes)
	return -m / k * math.Log1p(-float64(setBits)/m)
}
