package bloom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/upstash"
)

// A Window is a filter that forgets: an item is found for at least
// WindowConfig.Span after it was last added, and is forgotten some time later.
// It answers "have I seen this in the last 24 hours?" in one request and one
// billed command. Of any number of concurrent Adds of an item exactly one is
// told "new".
//
// Make a Window with [NewWindow] or [OpenWindow]; the zero value is not usable.
// It is a handle as a [Filter] is: any number of them, in any number of
// processes, can work on the same window. It is safe for concurrent use and must
// not be copied.
//
// The window is one Redis string of [WindowConfig.Panes] + 2 panes, each of them
// a filter for the whole Capacity. Time is cut into epochs, each as long as a
// pane. An Add sets the item's bits in the pane of its epoch and reads the
// others. When an epoch ends, the first Add of the next one clears the oldest
// pane, a script of 5 or 6 billed commands and one more for each further MiB of a
// pane. An item is forgotten at most Panes + 2 panes after its last Add: after 3
// Spans with one pane, after 2 with two.
//
// Epochs count by the server's clock, which a client learns by one TIME before
// its first write (see [upstash.Client.ServerTime]) and every ten minutes. What
// makes a new client for each request pays one more command each time. If the
// database is restored from a backup, or if its clock jumps by seconds, a Window
// may forget too early.
type Window struct {
	handle
	cfg   WindowConfig
	shape *windowShape
}

// A WindowConfig says how much a Window holds, and for how long. All programs
// that share a window must use the same Capacity, FPRate, Span, Panes, Seed and
// ExpireIdle. The zero value is not valid: set Capacity, FPRate and Span. A
// WindowConfig is plain data, to be copied freely. Its String does not show the
// seed.
type WindowConfig struct {
	_ struct{}

	// Capacity is the number of distinct items in any Span, at least 1. A pane
	// lasts as long as Span/Panes and is sized for all of them, because they
	// may come at once.
	Capacity uint64

	// FPRate is the false positive rate at Capacity, of the whole window: above
	// 0 and below 1. FPRate/(Panes+1) must be 1e-9 or more.
	FPRate float64

	// Span is how long an item is found after its last Add, at least 10 s for
	// each of the Panes and at most 97 days for each. Parts of a second are
	// rounded up, and a few seconds are added for the error of clocks.
	Span time.Duration

	// Panes is how many panes make a Span, 1 to 4; the default, for 0, is 1.
	// More panes forget sooner, and cost more memory and a larger command: at 1
	// in 100, 34 bits an item with one pane, 46 with two.
	Panes int

	// Seed of the hash; the default is 0. See [Config.Seed].
	Seed uint64 `json:"-"`

	// ExpireIdle makes the whole window expire once nothing was added for so
	// long that everything in it is forgotten: Panes + 3 panes. A missing window
	// is then an empty one. Without it the window stays, and a missing one is
	// ErrNotFound: it was deleted, or evicted.
	ExpireIdle bool

	// MustExist is [Config.MustExist]. An Add is then three billed commands. It
	// cannot be combined with ExpireIdle.
	MustExist bool

	// BatchBytes and BatchParallel are those of a [Config].
	BatchBytes    int
	BatchParallel int
}

const (
	maxPanes = 4
	// A pane is so much longer than its share of the Span: two clocks may each
	// be wrong by two seconds.
	clockSlack  = 4 * time.Second
	minPaneSpan = 10 * time.Second
	// maxPaneSeconds is what the format has 23 bits for.
	maxPaneSeconds = 1<<23 - 1
)

// panes returns the number of panes that make a Span.
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

// Geometry checks the whole WindowConfig and works out the geometry of one pane.
// The error is a *ConfigError. It sends nothing.
func (c WindowConfig) Geometry() (Geometry, error) {
	switch {
	case c.Panes < 0 || c.Panes > maxPanes:
		return Geometry{}, windowErrorf("Panes", "is %d: it must be from 1 to %d, or 0 for 1", c.Panes, maxPanes)
	case c.Span < time.Duration(c.panes())*minPaneSpan:
		return Geometry{}, windowErrorf("Span", "is %v: it must be at least %v, 10s for each pane",
			c.Span, time.Duration(c.panes())*minPaneSpan)
	case c.Span > maxSpan(c.panes()):
		return Geometry{}, windowErrorf("Span", "is %v: it must be at most %v, 97 days for each pane",
			c.Span, maxSpan(c.panes()))
	case c.MustExist && c.ExpireIdle:
		return Geometry{}, windowErrorf("MustExist", "and ExpireIdle are both set: a window that"+
			" expires is made anew by an Add")
	// Written so that NaN is refused as well.
	case !(c.FPRate > 0 && c.FPRate < 1):
		return Geometry{}, windowErrorf("FPRate", "is %v: it must be above 0 and below 1, e.g. 0.01", c.FPRate)
	case c.FPRate/float64(c.panes()+1) < cells.MinBlockedRate:
		return Geometry{}, windowErrorf("FPRate", "is %v: with %d panes it must be at least %v",
			c.FPRate, c.panes(), cells.MinBlockedRate*float64(c.panes()+1))
	}
	g, err := Config{
		Capacity: c.Capacity, FPRate: c.FPRate / float64(c.panes()+1), Seed: c.Seed,
		BatchBytes: c.BatchBytes, BatchParallel: c.BatchParallel,
	}.Geometry()
	if err != nil {
		return Geometry{}, ofConfig(err, "WindowConfig")
	}
	if end := windowAreas(g, c.panes()+2)[c.panes()+1].end(); end > maxStringBits {
		return Geometry{}, windowErrorf("Capacity", "is %d, which takes %d bits in all %d panes at FPRate %v,"+
			" and %d fit into a Redis string: lower it, raise FPRate, or use fewer panes",
			c.Capacity, end, c.panes()+2, c.FPRate, maxStringBits)
	}
	return g, nil
}

func maxSpan(panes int) time.Duration {
	return maxPaneSeconds*time.Second*time.Duration(panes) - clockSlack
}

func windowErrorf(field, format string, args ...any) error {
	return &ConfigError{Field: field, Reason: fmt.Sprintf(format, args...), of: "WindowConfig"}
}

// ofConfig says of whose Config an error is, if it is a *ConfigError.
func ofConfig(err error, name string) error {
	if e := (*ConfigError)(nil); errors.As(err, &e) {
		return &ConfigError{Field: e.Field, Reason: e.Reason, of: name}
	}
	return err
}

// NewWindow makes a handle for the window at key. It checks the WindowConfig, and
// returns a *ConfigError if that is wrong. It sends nothing: Create or the first
// Add makes the window itself.
func NewWindow(c *upstash.Client, key string, cfg WindowConfig) (*Window, error) {
	geo, err := cfg.Geometry()
	if err != nil {
		return nil, err
	}
	if err := checkTarget(c, key); err != nil {
		return nil, err
	}
	return newWindow(c, key, cfg, geo), nil
}

func newWindow(c *upstash.Client, key string, cfg WindowConfig, geo Geometry) *Window {
	shape := &windowShape{
		areas: windowAreas(geo, cfg.panes()+2), seconds: cfg.paneSeconds(), idle: cfg.ExpireIdle,
	}
	w := &Window{cfg: cfg, shape: shape}
	w.bytes, w.parallel, w.missingIsEmpty = cfg.BatchBytes, cfg.BatchParallel, cfg.ExpireIdle
	r := &w.rec
	r.client, r.key, r.geo, r.layout, r.kind = c, key, geo, LayoutHeaded, KindWindow
	r.header, r.shape, r.must = int64(encodeHeader(KindWindow, geo)), shape, cfg.MustExist
	if cfg.ExpireIdle {
		r.ttl = shape.idleTTL()
	}
	return w
}

// Create makes the window with its whole string, and reports whether it made it:
// false means that it was there. The errors and the cost are those of
// [Filter.Create], and one TIME before.
func (w *Window) Create(ctx context.Context) (created bool, err error) {
	ctx = w.rec.label(ctx, "bloom.Window.Create")
	if w.rec.client.ReadOnly() {
		return false, w.rec.mayWrite()
	}
	epoch, err := w.shape.now(ctx, &w.rec)
	if err != nil {
		return false, err
	}
	last := w.shape.areas[len(w.shape.areas)-1]
	return w.create(ctx, last.end(), w.shape.wordAt(epoch))
}

// Add puts an item into the window, or renews it, and reports whether it was new:
// true if it was not added in the last Span, false if it was, or if it is a
// false positive. Of any number of concurrent Adds exactly one is told "new". Add
// makes the window if there is none, unless WindowConfig.MustExist is set.
//
// It is one request and one billed command (three with MustExist). The first Add
// after an epoch has ended is followed by a turn, one request more; the first
// after a long pause needs two more. If the process was frozen while the command
// was under way, Add is sent again, so that the item lives its Span.
//
// The errors are those of [Filter.Add], and ErrNoClock if the token may not run
// TIME. If [InFilter] is true of an error that is neither ErrUncertain nor
// ErrNoTTL, the answer beside it holds, but the item may be forgotten earlier
// than a Span from now.
func (w *Window) Add(ctx context.Context, item string) (added bool, err error) {
	return w.add(w.rec.label(ctx, "bloom.Window.Add"), item, nil)
}

// AddAll adds items as [Filter.AddAll] does, with the promises of [Window.Add].
func (w *Window) AddAll(ctx context.Context, items []string) ([]bool, error) {
	return w.addAll(w.rec.label(ctx, "bloom.Window.AddAll"), items, nil)
}

// Exists reports whether the item was added in the last Span. True may also mean
// that it was added a little before, or that it is a false positive. It is one
// request and one billed command, and asks for the time if its client does not
// know it and the answer depends on it. A missing window is ErrNotFound, unless
// WindowConfig.ExpireIdle is set.
func (w *Window) Exists(ctx context.Context, item string) (bool, error) {
	return w.exists(w.rec.label(ctx, "bloom.Window.Exists"), item, nil)
}

// ExistsAll reports for each item whether it was added in the last Span, with
// the promises of [Window.Exists] and the requests of [Filter.ExistsAll]. It
// learns the server's time first if its client does not know it.
func (w *Window) ExistsAll(ctx context.Context, items []string) ([]bool, error) {
	ctx = w.rec.label(ctx, "bloom.Window.ExistsAll")
	// Without the time the answers hold too, and count one pane more.
	_, _ = w.rec.client.ServerTime(ctx)
	return w.existsAll(ctx, items, nil)
}

// Rename moves the window to another key: see [Filter.Rename].
func (w *Window) Rename(ctx context.Context, to string) error {
	return w.rename(w.rec.label(ctx, "bloom.Window.Rename"), to)
}

// Delete removes the window and reports whether there was one: see
// [Filter.Delete].
func (w *Window) Delete(ctx context.Context) (bool, error) {
	return w.delete(w.rec.label(ctx, "bloom.Window.Delete"))
}

// Geometry returns that of one pane.
func (w *Window) Geometry() Geometry { return w.rec.geo }

// String describes the handle without its key and seed.
func (w *Window) String() string {
	return fmt.Sprintf("bloom.Window(%d panes of %ds, each %v)", len(w.shape.areas), w.shape.seconds, w.rec.geo)
}

// Format is String for every verb, so that none shows the key or the seed.
func (w *Window) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, w.String()) }
