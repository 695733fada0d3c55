package bloom

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

// A Window is a filter that forgets: an item is found for at least
// [WindowConfig.Span] after it was last added, and is forgotten some time
// later. Of any number of concurrent Adds of an item exactly one is told "new".
//
// Make a Window with [NewWindow] or [OpenWindow]. It is safe for concurrent use
// and must not be copied. Look-ups go to the primary of a global database.
//
// A window has [WindowConfig.Panes] + 2 panes, each of them a filter for the
// whole Capacity. Adds go to the newest pane. When its time, an epoch, is over,
// the next Add turns the window: it clears the oldest pane. So an item is
// forgotten within 3 Spans and 15 s with one pane, within 2 Spans and 10 s with
// two. If more items come in a Span than Capacity, Add soon answers "seen" for
// most new ones.
//
// Epochs count by the server's clock: see [upstash.Client.ServerTime]. If an
// answer comes more than a second after its epoch has ended, the Add is sent
// again. If it then finds the item, perhaps its own, the error is
// [ErrUncertain].
//
// These can make a Window forget too early, or tell two callers "new": a
// restored backup; a jump of the server's clock by more than 2 s; an eviction,
// if a writer that was panes late makes it again; a process frozen between the
// last look at the clock and its return. If the clock is set back, nothing is
// forgotten until it has caught up.
type Window struct {
	handle
	cfg   WindowConfig
	shape *windowShape
}

// opened takes the rate, and the capacity that follows from it, from the string,
// unless the config says them.
func (w *Window) opened(rate uint64) {
	if w.rec.Rate == 0 {
		w.rec.Rate = rate
	}
}

// NewWindow is [New] for a Window.
func NewWindow(c *upstash.Client, key string, cfg WindowConfig) (*Window, error) {
	geo, err := cfg.Geometry()
	if err != nil {
		return nil, err
	}
	if err := checkTarget(c, key); err != nil {
		return nil, err
	}
	return newWindow(c, key, cfg, geo, &windowShape{
		geo: geo, areas: windowAreas(geo, cfg.panes()+2), seconds: cfg.paneSeconds(), idle: cfg.ExpireIdle,
	}), nil
}

// OpenWindow is [Open] for a Window: what the WindowConfig sets of Capacity and
// FPRate, Span, Panes and ExpireIdle must be as the window has it.
func OpenWindow(ctx context.Context, c *upstash.Client, key string, cfg ...WindowConfig) (_ *Window, err error) {
	defer fault.OnlyReads(&err)
	want, seen, err := openedState(ctx, c, key, cfg)
	if err != nil {
		return nil, err
	}
	if err := seen.isOf(KindWindow, want.Seed); err != nil {
		return nil, err
	}
	shape, err := windowShapeOf(&seen, want.Seed)
	if err != nil {
		return nil, err
	}
	if want, err = want.openedAs(&seen, shape); err != nil {
		return nil, err
	}
	w := newWindow(c, key, want, shape.geo, shape)
	w.opened(rateIn(seen.birth))
	return w, nil
}

func newWindow(c *upstash.Client, key string, cfg WindowConfig, geo Geometry, shape *windowShape) *Window {
	w := &Window{cfg: cfg, shape: shape}
	shared := cfg.shared()
	if cfg.ExpireIdle {
		shared.TTL = shape.idleTTL()
	}
	w.init(c, key, shared, geo, KindWindow, shape, shape)
	return w
}

// shared returns what a Config says too.
func (c WindowConfig) shared() Config {
	return Config{
		Capacity: c.Capacity, FPRate: c.FPRate, Seed: c.Seed, MissingIsEmpty: c.ExpireIdle, MustExist: c.MustExist,
		BatchBytes: c.BatchBytes, BatchParallel: c.BatchParallel,
	}
}

// Create is [Filter.Create] for a Window.
func (w *Window) Create(ctx context.Context) (created bool, err error) {
	ctx = w.rec.Label(ctx, "bloom.Window.Create")
	if w.rec.Client.ReadOnly() {
		return false, w.rec.MayWrite()
	}
	now, err := w.shape.serverTime(ctx, w.rec.Client, nil)
	if err != nil {
		return false, err
	}
	last := w.shape.areas[len(w.shape.areas)-1]
	return w.create(ctx, last.end(), w.shape.wordAt(w.shape.epochAt(now)))
}

// Add puts an item into the window, or renews it, and reports whether it was
// new: true if it was not added in the last Span, false if it was, or if it is
// a false positive. It makes the window and costs as [Filter.Add] does, with
// the same errors and [ErrNoClock]. If an [ErrUncertain] wraps another error,
// the item is in, but may be forgotten before a Span is over.
func (w *Window) Add(ctx context.Context, item string) (added bool, err error) {
	return w.write(w.rec.Label(ctx, "bloom.Window.Add"), item, engine.Call{})
}

// AddAll is [Filter.AddAll], with the promises of [Window.Add].
func (w *Window) AddAll(ctx context.Context, items []string) ([]bool, error) {
	return w.writeAll(w.rec.Label(ctx, "bloom.Window.AddAll"), items, engine.Call{})
}

// Exists reports whether the item was added in the last Span. If it returns
// true, the item may also have been added a little earlier, or be a false
// positive. It is one request and one billed command, with few exceptions
// (COSTS.md).
//
// A missing window is [ErrNotFound], unless [WindowConfig.ExpireIdle] is set. A
// full database refuses look-ups, but not those of [upstash.WithReadOnly]. A
// token that may not run TIME is answered as of the last turn.
func (w *Window) Exists(ctx context.Context, item string) (bool, error) {
	return w.exists(w.rec.Label(ctx, "bloom.Window.Exists"), item, engine.Call{})
}

// ExistsAll is [Filter.ExistsAll], with the promises of [Window.Exists].
func (w *Window) ExistsAll(ctx context.Context, items []string) ([]bool, error) {
	return w.existsAll(w.rec.Label(ctx, "bloom.Window.ExistsAll"), items, engine.Call{})
}

// String describes the handle without its key and seed.
func (w *Window) String() string {
	return fmt.Sprintf("bloom.Window(%d panes of %ds, each %v)", len(w.shape.areas), w.shape.seconds, w.rec.geo)
}

// Format is String for every verb.
func (w *Window) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, w.String()) }

// A WindowConfig says how much a [Window] holds, and for how long. All programs
// that share one must use the same Capacity, FPRate, Span, Panes, Seed and
// ExpireIdle; the zero value lacks the first three. It is plain data.
type WindowConfig struct {
	_ struct{}

	// Capacity is the number of distinct items in any Span, at least 1. A
	// window for 1 in 1,000 answers "seen" for up to 4% of the new items with
	// twice the Capacity, and for up to 72% with five times.
	Capacity uint64

	// FPRate is the false positive rate at Capacity, of the whole window: above
	// 0 and below 1. FPRate/(Panes+1) must be 1e-9 or more.
	FPRate float64

	// Span is how long an item is found after its last Add, from 10 s to 97
	// days for each of the Panes. Parts of a second are rounded up.
	Span time.Duration

	// Panes is how many panes make a Span, 1 to 4; the default, for 0, is 1.
	// More panes forget sooner, and cost larger commands and more memory: at 1
	// in 100, 34 bits an item for one, 50 for two.
	Panes int

	// Seed is that of [Config].
	Seed uint64 `json:"-"`

	// ExpireIdle makes the whole window expire Panes + 3 panes after it was
	// made or last turned, when all is forgotten. Without it a missing window
	// is [ErrNotFound], with it an empty one.
	ExpireIdle bool

	// MustExist is [Config.MustExist]. It cannot be combined with ExpireIdle.
	MustExist bool

	// BatchBytes and BatchParallel are those of [Config]. An item takes about
	// 40 to 85 bytes a hash in an Add, 29 to 72 in a look-up.
	BatchBytes    int
	BatchParallel int
}

// panes returns the number of panes in a Span.
func (c WindowConfig) panes() int {
	if c.Panes == 0 {
		return 1
	}
	return c.Panes
}

// paneSeconds returns how long a pane lasts.
func (c WindowConfig) paneSeconds() uint64 {
	d := time.Second * time.Duration(c.panes())
	return uint64((c.Span + clockSlack + d - 1) / d)
}

// Geometry is [Config.Geometry], of one pane.
func (c WindowConfig) Geometry() (Geometry, error) {
	switch {
	case c.Panes < 0 || c.Panes > maxPanes:
		return Geometry{}, windowErrorf("Panes", "is %d: it must be from 1 to %d, or 0 for 1", c.Panes, maxPanes)
	case c.Span < time.Duration(c.panes())*minPaneSpan:
		return Geometry{}, windowErrorf("Span", "is %v: it must be at least %v, 10s for each pane",
			c.Span, time.Duration(c.panes())*minPaneSpan)
	case c.Span > maxSpan(c.panes()):
		return Geometry{}, windowErrorf("Span", "is %v: it must be at most %v, 97 days for each of 1 to 4 Panes",
			c.Span, maxSpan(c.panes()))
	case c.MustExist && c.ExpireIdle:
		return Geometry{}, windowErrorf("MustExist", "and ExpireIdle are both set: a window that"+
			" expires is created again by an Add")
	// Written so that NaN is refused as well.
	case !(c.FPRate > 0 && c.FPRate < 1):
		return Geometry{}, windowErrorf("FPRate", "is %v: it must be above 0 and below 1, e.g. 0.01", c.FPRate)
	case c.FPRate/float64(c.panes()+1) < cells.MinBlockedRate:
		return Geometry{}, windowErrorf("FPRate", "is %v: with Panes %d it must be at least %v",
			c.FPRate, c.panes(), cells.MinBlockedRate*float64(c.panes()+1))
	}
	pane := c.shared()
	pane.FPRate /= float64(c.panes() + 1)
	g, err := pane.Geometry()
	if c.Capacity != 0 && namesCapacity(err) {
		return Geometry{}, windowErrorf("Capacity", "is %s, and at FPRate %v one pane does not fit into a Redis"+
			" string: lower it, raise FPRate, or spread the items over several windows",
			human.Count(c.Capacity), c.FPRate)
	}
	if err != nil {
		return Geometry{}, ofConfig(err, "WindowConfig")
	}
	if end := windowAreas(g, c.panes()+2)[c.panes()+1].end(); end > maxStringBits {
		return Geometry{}, windowErrorf("Capacity", "is %s, which takes %s bits in all %d panes at FPRate %v,"+
			" and %s fit into a Redis string: lower it, raise FPRate, or spread the items over several windows",
			human.Count(c.Capacity), human.Count(end), c.panes()+2, c.FPRate, human.Count(maxStringBits))
	}
	return g, nil
}

func (c WindowConfig) isSized() bool { return c.Capacity != 0 || c.FPRate != 0 }

// checkOpen checks what does not depend on the window to be opened.
func (c WindowConfig) checkOpen() error {
	if !c.isSized() {
		c.Capacity, c.FPRate = 1, 0.5
	}
	if c.Span == 0 || c.Panes == 0 { // the window's Panes say which Spans there are
		c.Span = maxPanes * minPaneSpan
	}
	_, err := c.Geometry()
	return err
}

// openedAs returns the config with the panes of a window that was found. It
// returns an error if what it says is not the window's.
func (c WindowConfig) openedAs(seen *state, shape *windowShape) (WindowConfig, error) {
	panes := int(shape.span())
	if c.Panes != 0 && c.Panes != panes {
		return c, seen.differsIn("Panes", c.Seed)
	}
	c.Panes = panes
	if c.isSized() {
		all := c
		all.Span = max(c.Span, time.Duration(panes)*minPaneSpan)
		geo, err := all.Geometry()
		if err == nil {
			err = seen.isSized(geo)
		}
		if err != nil {
			return c, err
		}
	}
	switch {
	case c.Span != 0 && c.paneSeconds() != shape.seconds:
		return c, seen.differsIn("Span", c.Seed)
	case c.ExpireIdle && !shape.idle:
		return c, seen.differsIn("ExpireIdle", c.Seed)
	case c.MustExist && shape.idle:
		return c, windowErrorf("MustExist", "is set, and this window expires when it is idle: an Add makes"+
			" it again")
	}
	c.ExpireIdle = shape.idle
	return c, nil
}

func maxSpan(panes int) time.Duration {
	return maxPaneSeconds*time.Second*time.Duration(panes) - clockSlack
}

func windowErrorf(field, format string, args ...any) error {
	return &ConfigError{Field: field, Reason: fmt.Sprintf(format, args...), of: "WindowConfig"}
}

// String shows the fields that are set, without the seed.
func (c WindowConfig) String() string { return describe(c) }

// Format is String for every verb.
func (c WindowConfig) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, c.String()) }

// WindowStats is the state of a window at one moment. It is plain data.
type WindowStats struct {
	// Geometry is that of one pane. Seeded is true if the window has a seed.
	Geometry Geometry
	Seeded   bool
	// PaneSpan is how long a pane lasts. Span is how long an item is found
	// after its last Add: [WindowConfig.Span], rounded up.
	PaneSpan, Span time.Duration
	// Bytes is the length of the Redis string now.
	Bytes uint64
	// Panes are those that count for a look-up now, the newest first. The first
	// is the next to be filled, and empty. The Adds of the present epoch are in
	// the second, unless an epoch has ended since the last Add. If the server's
	// time is not known, they are those of the last turn: see
	// [upstash.Client.ServerTime].
	Panes []PaneStats
	// Items is the estimated number of distinct items that a look-up finds now:
	// those of the last Span, and of up to one pane before. An item of several
	// epochs counts once. COSTS.md has the error.
	Items uint64
	// Capacity and FPRate are as in [Stats], of the whole window.
	Capacity uint64
	FPRate   float64
	// LiveFPRate is the false positive rate of the whole window now.
	LiveFPRate float64
	// TTL is the time until the window expires, 0 if it does not.
	TTL time.Duration
}

// PaneStats is the state of one pane.
type PaneStats struct {
	// SetBits is how many cells are set, Fill their share, 0 to 1.
	SetBits uint64
	Fill    float64
	// Items is the estimated number of distinct items. An item added again in a
	// later epoch is in both panes.
	Items uint64
	// Newest is true if the Adds of the present epoch go into this pane. None is
	// the newest if the last Add was two epochs ago or more.
	Newest bool
	// LiveFPRate is the false positive rate of the pane now. Saturated is true
	// if every cell is set.
	LiveFPRate float64
	Saturated  bool
}

// OverCapacity is [Stats.OverCapacity] of a pane.
func (s WindowStats) OverCapacity() bool {
	for _, p := range s.Panes {
		if (Stats{Capacity: s.Capacity, Items: p.Items, Saturated: p.Saturated}).OverCapacity() {
			return true
		}
	}
	return false
}

// Stats is [Filter.Stats] for a Window.
func (w *Window) Stats(ctx context.Context) (out WindowStats, err error) {
	defer fault.OnlyReads(&err)
	ctx = w.rec.Label(ctx, "bloom.Window.Stats")
	r, s := &w.rec, w.shape
	reads := []upstash.Command{upstash.Cmd("STRLEN", r.Key), upstash.Cmd("PTTL", r.Key)}
	for _, a := range s.areas {
		reads = append(reads, a.count(r.Key))
	}
	own, words, n, err := r.ReadNumbers(ctx, s.sample(), reads...)
	if err != nil {
		return WindowStats{}, err
	}
	out = WindowStats{
		Geometry: r.geo, Seeded: r.geo.Seed != 0, Capacity: w.cfg.Capacity,
		PaneSpan: time.Duration(s.seconds) * time.Second,
		Span:     time.Duration(s.span()*s.seconds)*time.Second - clockSlack,
	}
	if out.Bytes, out.TTL, err = storedAs(n[0], n[1]); err != nil {
		return WindowStats{}, err
	}
	if out.Capacity == 0 {
		out.Capacity = s.holds(rateIn(own.Birth))
	}
	if out.Capacity != 0 {
		out.FPRate = s.rateAt(out.Capacity)
	}
	t, known := door.KnownServerTime(r.Client)
	c := epochOf(own.Kind)
	e := c
	if known {
		e = s.epochAt(t)
	}
	counts, newest := s.counting(e, c), s.later(e, c)
	union := unionOf{geo: r.geo, or: make([]uint64, len(words)/len(s.areas))}
	for i := range s.panes() {
		epoch := (c + 1 + s.cycle() - i) % s.cycle()
		pane := s.pane(epoch)
		if counts&(1<<pane) == 0 {
			continue
		}
		if n[2+pane] < 0 {
			return WindowStats{}, engine.ErrNegative
		}
		p := statsOf(r.geo, LayoutHeaded, 0, uint64(n[2+pane]))
		out.Panes = append(out.Panes, PaneStats{
			SetBits: p.SetBits, Fill: p.Fill, Items: p.Items, Newest: epoch == newest,
			LiveFPRate: p.LiveFPRate, Saturated: p.Saturated,
		})
		out.LiveFPRate = either(out.LiveFPRate, p.LiveFPRate)
		union.add(p.SetBits, words[pane*len(union.or):])
	}
	out.Items = union.items()
	return out, nil
}

// sampledWords is how many words of all panes Stats reads: up to 25 KB of a
// request, and 17 KB of its answer.
const sampledWords = 1000

// sample returns the bits at which the first words of each pane are.
func (s *windowShape) sample() []uint64 {
	each := min(s.geo.Bits/wordBits, sampledWords/s.panes())
	at := make([]uint64, 0, each*s.panes())
	for _, a := range s.areas {
		for i := range each {
			at = append(at, a.offset+wordBits*i)
		}
	}
	return at
}

// A unionOf estimates how many distinct items several panes hold. An item has the
// same bits in each pane, so the OR of all panes is a filter of all their items.
// No command that only reads counts its bits. So they are counted in the sampled
// words alone. There the sum of the panes' items is too large by some share, and
// by the same share the sum of all is.
type unionOf struct {
	geo          Geometry // of a pane
	or           []uint64 // of the sampled words of all panes
	most, sum    float64  // items: of the largest pane, and of all together
	sampledItems float64  // the sum of all, by the sampled words alone
}

// add adds a pane, with its set bits and the words from its sample on.
func (u *unionOf) add(setBits uint64, words []int64) {
	n := itemsIn(u.geo, setBits)
	u.most, u.sum = max(u.most, n), u.sum+n
	ones := uint64(0)
	for i := range u.or {
		u.or[i] |= uint64(words[i])
		ones += uint64(bits.OnesCount64(uint64(words[i])))
	}
	u.sampledItems += itemsIn(u.sampled(), ones)
}

// sampled returns the geometry of a filter as long as the sample.
func (u *unionOf) sampled() Geometry {
	g := u.geo
	g.Bits = wordBits * uint64(len(u.or))
	return g
}

func (u *unionOf) items() uint64 {
	if u.sampledItems == 0 {
		return uint64(math.Round(u.sum))
	}
	ones := uint64(0)
	for _, w := range u.or {
		ones += uint64(bits.OnesCount64(w))
	}
	n := u.sum * itemsIn(u.sampled(), ones) / u.sampledItems
	return uint64(math.Round(min(max(n, u.most), u.sum)))
}

// itemsIn estimates the items of a filter. One that is full has at least so many.
func itemsIn(g Geometry, setBits uint64) float64 { return g.EstimateItems(min(setBits, g.Bits-1)) }

// String draws the state for a person, with a line for each pane: the next one
// to be filled, and then the newest first.
func (s WindowStats) String() string {
	var r report
	r.line("window", "finds an item for %s, and forgets it within %s",
		human.Exact(s.Span), human.Exact(s.Span+clockSlack+2*s.PaneSpan))
	forgotten := ""
	if len(s.Panes) == 0 {
		forgotten = ", everything is forgotten"
	}
	r.line("items", "about %s, each counted once", human.Count(s.Items))
	r.line("panes", "%d of %s%s, each %v", len(s.Panes), human.Exact(s.PaneSpan), forgotten, s.Geometry)
	newest := slices.IndexFunc(s.Panes, func(p PaneStats) bool { return p.Newest })
	for i, p := range s.Panes {
		name := "pane"
		switch {
		case p.Newest:
			name = "newest pane"
		case i < newest:
			name = "next pane"
		}
		r.line(name, "%s, about %s", bar(p.Fill), human.Counted(p.Items, "item"))
	}
	r.rates(Stats{Capacity: s.Capacity, FPRate: s.FPRate, LiveFPRate: s.LiveFPRate})
	r.stored(s.Bytes, ", "+expiry(s.TTL))
	return r.String()
}
