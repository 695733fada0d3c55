package bloom

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

// A Window is a filter that forgets: an item is found for at least
// [WindowConfig.Span] after it was last added, and is forgotten some time
// later. Of any number of concurrent Adds of an item exactly one is told "new".
//
// A window has [WindowConfig.Panes] + 2 panes, each of them a filter for the
// whole Capacity. Adds go to the newest pane. When its time, an epoch, is over,
// the next Add clears the oldest. So an item is forgotten within 3 Spans and 15
// s with one pane, within 2 Spans and 10 s with two. Time is the server's: see
// [upstash.Client.ServerTime].
//
// These can make a Window forget too early, or tell two callers "new": a
// restored backup; a jump of the server's clock by more than 2 s; an eviction,
// if an Add that runs several panes late makes the window again; a process frozen between the
// last look at the clock and its return. If the clock is set back, nothing is
// forgotten until it has caught up, but all if that is by a sixteenth of the cycle
// of epochs, which is 145 days at least. If the server runs a request more than a
// Span and 5 s after it was sent, even one that its caller gave up, the item may be
// found again, as if it had been added then.
//
// A Window is safe for concurrent use and must not be copied. Make it with [NewWindow]
// or [OpenWindow].
type Window struct {
	handle
	cfg   WindowConfig
	shape *windowShape
}

// NewWindow makes a handle for the window at key.
func NewWindow(c *upstash.Client, key string, cfg WindowConfig) (*Window, error) {
	geo, err := geometryFor(c, key, cfg)
	if err != nil {
		return nil, err
	}
	w := newWindow(c, key, cfg, geo, &windowShape{
		geo: geo, areas: format.PaneAreas(geo.Bits, cfg.panes()+2), seconds: cfg.paneSeconds(), idle: cfg.ExpireIdle,
	})
	err = w.fitsLimit(func() int { // of a turn that clears all panes
		return w.shape.turnCommand(&w.rec.Record, w.shape.wordAt(0), w.shape.panes()).Size()
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// OpenWindow makes a handle for an existing window.
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
	w.opened(format.RateIn(seen.Birth))
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
	}
}

// Create makes the window with all panes, and reports whether it did.
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
	return w.create(ctx, last.End(), w.shape.wordAt(w.shape.epochAt(now)))
}

// Add puts an item into the window, or renews it, and reports whether it was
// new: true if it was not added in the last Span, false if it was, or if it is
// a false positive. If an [ErrUncertain] wraps another error, the item is in,
// but may be forgotten before a Span is over.
func (w *Window) Add(ctx context.Context, item string) (added bool, err error) {
	return w.rec.Write(w.rec.Label(ctx, "bloom.Window.Add"), item, engine.Options{})
}

// AddAll adds or renews items and reports for each whether it was new,
// thousands in a request. If it takes several, the Span of an item begins with
// the answer of its own.
func (w *Window) AddAll(ctx context.Context, items []string) ([]bool, error) {
	return w.writeAll(w.rec.Label(ctx, "bloom.Window.AddAll"), items, engine.Options{})
}

// Exists reports whether the item was added in the last Span. If it returns
// true, the item may also have been added a little earlier, or be a false
// positive. Two panes or more after the last turn, it also
// clears the old ones, by a script.
//
// The primary of a global database answers: see [Config.ReadsNearest]. With a
// token that may not run TIME, an item stays found until a turn clears its pane.
func (w *Window) Exists(ctx context.Context, item string) (bool, error) {
	return w.exists(w.rec.Label(ctx, "bloom.Window.Exists"), item, engine.Options{})
}

func (w *Window) Format(s fmt.State, _ rune) {
	_, _ = fmt.Fprintf(s, "bloom.Window(%d panes of %s, each %v)", len(w.shape.areas),
		human.Exact(time.Duration(w.shape.seconds)*time.Second), w.rec.geo)
}

// A WindowConfig says how much a [Window] holds, and for how long.
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

	// Panes is how many panes make a Span, 1 to 4; 0 is 1. More panes forget
	// sooner, and cost larger commands and more memory: at 1 in 100, 34 bits an
	// item for one, 50 for two.
	Panes int

	// Seed of the hash: see [Config.Seed].
	Seed uint64 `json:"-"`

	// ExpireIdle makes the whole window expire Panes + 3 panes after it was
	// made or last turned, when all is forgotten. A missing window is then an
	// empty one, and without it [ErrNotFound].
	ExpireIdle bool

	// MustExist is [Config.MustExist] for the window. It cannot be combined
	// with ExpireIdle.
	MustExist bool
}

func (c WindowConfig) panes() int { return cmp.Or(c.Panes, 1) }

// paneSeconds returns how long a pane lasts.
func (c WindowConfig) paneSeconds() uint64 {
	d := time.Second * time.Duration(c.panes())
	return uint64((c.Span + clockSlack + d - 1) / d)
}

// Geometry checks the whole config and returns the geometry of one pane.
func (c WindowConfig) Geometry() (Geometry, error) {
	switch {
	case c.Panes < 0 || c.Panes > maxPanes:
		return Geometry{}, configErrorf("WindowConfig.Panes", "is %d: it must be from 1 to %d, or 0 for 1", c.Panes, maxPanes)
	case c.Span < time.Duration(c.panes())*minPaneSpan:
		return Geometry{}, configErrorf("WindowConfig.Span", "is %v: it must be at least %v, 10s for each pane",
			c.Span, time.Duration(c.panes())*minPaneSpan)
	case c.Span > maxSpan(c.panes()):
		return Geometry{}, configErrorf("WindowConfig.Span", "is %v: it must be at most %v, 97 days for each of 1 to 4 Panes",
			c.Span, maxSpan(c.panes()))
	case c.MustExist && c.ExpireIdle:
		return Geometry{}, configErrorf("WindowConfig.MustExist", "and ExpireIdle are both set: a window that"+
			" expires is created again by an Add")
	case !isRate(c.FPRate):
		return Geometry{}, noRate("WindowConfig", c.FPRate)
	case c.FPRate/float64(c.panes()+1) < cells.MinBlockedRate:
		return Geometry{}, configErrorf("WindowConfig.FPRate", "is %v: with Panes %d it must be at least %v",
			c.FPRate, c.panes(), cells.MinBlockedRate*float64(c.panes()+1))
	}
	pane := c.shared()
	pane.FPRate /= float64(c.panes() + 1)
	g, err := pane.Geometry()
	if c.Capacity != 0 && namesCapacity(err) {
		return Geometry{}, configErrorf("WindowConfig.Capacity", "is %s, and at FPRate %v one pane does not fit into a Redis"+
			" string: lower it, raise FPRate, or spread the items over several windows",
			human.Count(c.Capacity), c.FPRate)
	}
	if err != nil {
		return Geometry{}, ofConfig(err, "WindowConfig")
	}
	if end := format.PaneAreas(g.Bits, c.panes()+2)[c.panes()+1].End(); end > format.MaxStringBits {
		return Geometry{}, configErrorf("WindowConfig.Capacity", "is %s, which takes %s bits in all %d panes at FPRate %v,"+
			" and %s fit into a Redis string: lower it, raise FPRate, or spread the items over several windows",
			human.Count(c.Capacity), human.Count(end), c.panes()+2, c.FPRate, human.Count(format.MaxStringBits))
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
		return c, configErrorf("WindowConfig.MustExist", "is set, and this window expires when it is idle: an Add makes"+
			" it again")
	}
	c.ExpireIdle = shape.idle
	return c, nil
}

func maxSpan(panes int) time.Duration {
	return format.MaxSeconds*time.Second*time.Duration(panes) - clockSlack
}

func (c WindowConfig) Format(s fmt.State, _ rune) { describe(s, c) }

// Stats reads the state of the window and of its panes. If the server's time is
// not known ([upstash.Client.ServerTime]), the Parts are as the last turn left
// them: a pane may be among them that no longer counts.
func (w *Window) Stats(ctx context.Context) (out Stats, err error) {
	defer fault.OnlyReads(&err)
	ctx = w.rec.Label(ctx, "bloom.Window.Stats")
	r, s := &w.rec, w.shape
	reads := []upstash.Command{upstash.Cmd("STRLEN", r.Key)}
	for _, a := range s.areas {
		reads = append(reads, countArea(a, r.Key))
	}
	own, err := r.ReadCounts(ctx, true, reads...)
	if err != nil {
		return Stats{}, err
	}
	capacity := w.cfg.Capacity
	if capacity == 0 {
		capacity = s.holds(format.RateIn(own.Birth))
	}
	out = s.stats(capacity)
	out.Bytes, out.TTL = own.N[0], own.TTL
	t, known := door.KnownServerTime(r.Client)
	c := format.EpochOf(own.Kind)
	e := c
	if known {
		e = s.epochAt(t)
	}
	counts, newest := s.counting(e, c), s.later(e, c)
	parts := []Part{}
	for i := range s.panes() {
		epoch := (c + 1 + s.cycle() - i) % s.cycle()
		pane := s.pane(epoch)
		if counts&(1<<pane) == 0 {
			continue
		}
		p := partOf(r.geo, capacity, own.N[1+pane])
		p.Newest = epoch == newest
		parts = append(parts, p)
	}
	out.addUp(parts)
	out.LiveFPRate = inAny(parts)
	return out, nil
}
