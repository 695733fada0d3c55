package bloom

import (
	"context"
	"fmt"
	"io"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// A Window is a filter that forgets: an item is found for at least
// [WindowConfig.Span] after it was last added, and is forgotten some time
// later. It answers "have I seen this in the last 24 hours?" in one request and
// one billed command. Of any number of concurrent Adds of an item exactly one
// is told "new".
//
// Make a Window with [NewWindow] or [OpenWindow]; the zero value is not usable.
// It is a handle as a [Filter] is: any number of them, in any number of
// processes, can work on the same window. It is safe for concurrent use and must
// not be copied.
//
// The window is one Redis string of [WindowConfig.Panes] + 2 panes, each of them
// a filter for the whole Capacity. Time is cut into epochs, each as long as a
// pane. An Add sets the item's bits in the pane of its epoch and reads the
// others. When an epoch ends, the first Add of the next one turns the window: it
// clears the oldest pane, by a script of 4 billed commands (5 with
// [WindowConfig.ExpireIdle]), and one for each MiB of the pane, a begun one too.
// After a pause it clears several panes, and the Add itself is sent twice. An
// item is forgotten at most Panes + 2 panes after its last Add: after 3 Spans and
// 15 s with one pane, after 2 Spans and 10 s with two.
//
// Only an answer in time decides whether an item is new. If it comes more than a
// second after its command's epoch has ended, the Add is sent again, and if the
// item is then found, the error is [ErrUncertain]: that may be its own.
//
// A Window does not grow. If more items come in a Span than its Capacity, Add
// soon answers "seen" for most new items, without an error. Set
// [WindowConfig.WarnFill] to be told in time.
//
// Look-ups go to the primary of a global database: a Window has no [Reads].
// Those of a client with [upstash.WithReadOnly] go to the nearest region.
//
// Epochs count by the server's clock, which a client learns by one TIME before
// its first write (see [upstash.Client.ServerTime]) and every ten minutes. If
// you make a new client for each request, each pays one command more. If the
// clock is set back, the Window forgets nothing until it has caught up. Epochs
// are counted in a circle, of 6 years with the shortest panes. If nobody adds to
// a window for 15/16 of that or longer, it does not forget for a while: set
// ExpireIdle.
//
// These can make a Window forget too early, or tell two callers "new": a
// database restored from a backup; a server, or one that takes its place, whose
// clock jumps by more than 2 s; a window evicted and made again by a writer that
// was panes late; a process frozen between the last look at the clock and its
// return. An attempt that runs after its call has ended renews the item.
type Window struct {
	handle
	cfg   WindowConfig
	shape *windowShape
	watch fillWatch
}

// opened makes the handle one of a window whose string has this rate, as far as
// its config does not say it.
func (w *Window) opened(rate uint64) {
	if w.rec.Rate == 0 {
		w.rec.Rate = rate
	}
	if w.watch.capacity == 0 {
		w.watch.capacity = w.shape.holds(rate)
	}
}

// NewWindow makes a handle for the window at key. It checks the [WindowConfig],
// and returns a [*ConfigError] if it is wrong. It sends nothing: Create or the
// first Add makes the window itself.
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

// OpenWindow makes a handle for an existing window and reads its geometry, Span
// and panes from its header. At most one [WindowConfig] says the rest: what it
// sets of Capacity and FPRate, Span, Panes and ExpireIdle must be as the window
// has it, or the error is a [*MismatchError]; Seed must be its seed; the other
// fields hold as they do for NewWindow. The cost and the errors are those of
// [Open]. As there, the handle knows the Capacity from the string if the config
// does not say it.
func OpenWindow(ctx context.Context, c *upstash.Client, key string, cfg ...WindowConfig) (_ *Window, err error) {
	defer fault.OnlyReads(&err)
	want, err := atMostOne(cfg)
	if err != nil {
		return nil, err
	}
	if err := want.checkOpen(); err != nil {
		return nil, err
	}
	seen, err := openState(ctx, c, key)
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
	if want.WarnFill != nil && w.watch.capacity == 0 {
		return nil, windowErrorf("WarnFill", noFillThere)
	}
	return w, nil
}

func newWindow(c *upstash.Client, key string, cfg WindowConfig, geo Geometry, shape *windowShape) *Window {
	w := &Window{cfg: cfg, shape: shape}
	w.bytes, w.parallel, w.missingIsEmpty = cfg.BatchBytes, cfg.BatchParallel, cfg.ExpireIdle
	w.watch.geo, w.watch.capacity = geo, cfg.Capacity
	if cfg.WarnFill != nil {
		w.onWrite = w.watchFill
	}
	r := &w.rec
	r.Client, r.Key, r.geo, r.layout, r.kind = c, key, geo, LayoutHeaded, KindWindow
	r.MustExist, r.Rate = cfg.MustExist, cells.RateCode(cfg.FPRate)
	r.storedBy(shape, shape)
	if cfg.ExpireIdle {
		r.TTL = shape.idleTTL()
	}
	return w
}

// Create makes the window with its whole string, and reports whether it made it:
// false means that it was there. The errors and the cost are those of
// [Filter.Create], and one TIME before if the client does not know the time.
func (w *Window) Create(ctx context.Context) (created bool, err error) {
	ctx = w.rec.Label(ctx, "bloom.Window.Create")
	if w.rec.Client.ReadOnly() {
		return false, w.rec.MayWrite()
	}
	now, err := w.shape.serverTime(ctx, &w.rec.Record)
	if err != nil {
		return false, err
	}
	last := w.shape.areas[len(w.shape.areas)-1]
	return w.create(ctx, last.end(), w.shape.wordAt(w.shape.epochAt(now)))
}

// Add puts an item into the window, or renews it, and reports whether it was
// new: true if it was not added in the last Span, false if it was, or if it is
// a false positive. Of any number of concurrent Adds exactly one is told "new".
// Add makes the window if there is none, unless [WindowConfig.MustExist] is
// set.
//
// It is one request and one billed command (three with MustExist). If
// [WindowConfig.ExpireIdle] is set and the Add makes the window, one more
// request of four billed commands sets the TTL. The first Add after an epoch
// has ended is followed by a turn, one request more; the first after a long
// pause needs two more. An Add whose answer comes after the end of its epoch is
// sent again, at most eight times.
//
// The errors are those of [Filter.Add], and [ErrNoClock] if the token may not
// run TIME. An Add that was sent again and then failed may be [ErrUncertain] with
// a further reason: the item is in, but may be forgotten before a Span is over.
func (w *Window) Add(ctx context.Context, item string) (added bool, err error) {
	return w.add(w.rec.Label(ctx, "bloom.Window.Add"), item, nil)
}

// AddAll adds items as [Filter.AddAll] does, with the promises of [Window.Add].
func (w *Window) AddAll(ctx context.Context, items []string) ([]bool, error) {
	return w.addAll(w.rec.Label(ctx, "bloom.Window.AddAll"), items, nil)
}

// Exists reports whether the item was added in the last Span. If it returns
// true, the item may also have been added a little earlier, or be a false
// positive. It is one request and one billed command. If it finds the item and
// the client does not know the time, it asks for it, one request more. If the
// last turn is two epochs or more ago, it turns the window as Add does, one
// request more. With [WindowConfig.ExpireIdle] this also prolongs the life of the
// window; a client with [upstash.WithReadOnly] turns nothing. To a token that may
// not run TIME it answers as of the last turn, and may find older items. A
// missing window is [ErrNotFound], unless ExpireIdle is set. A full database
// refuses it ([upstash.ErrOutOfMemory]), but not if its client has WithReadOnly.
func (w *Window) Exists(ctx context.Context, item string) (bool, error) {
	return w.exists(w.rec.Label(ctx, "bloom.Window.Exists"), item, nil)
}

// ExistsAll reports for each item whether it was added in the last Span, with
// the promises of [Window.Exists] and the requests of [Filter.ExistsAll].
func (w *Window) ExistsAll(ctx context.Context, items []string) ([]bool, error) {
	return w.existsAll(w.rec.Label(ctx, "bloom.Window.ExistsAll"), items, nil)
}

// Rename moves the window to another key: see [Filter.Rename].
func (w *Window) Rename(ctx context.Context, to string) error {
	return w.rename(w.rec.Label(ctx, "bloom.Window.Rename"), to)
}

// Delete removes the window and reports whether there was one: see
// [Filter.Delete].
func (w *Window) Delete(ctx context.Context) (bool, error) {
	return w.delete(w.rec.Label(ctx, "bloom.Window.Delete"))
}

// Geometry returns that of one pane.
func (w *Window) Geometry() Geometry { return w.rec.geo }

// String describes the handle without its key and seed.
func (w *Window) String() string {
	return fmt.Sprintf("bloom.Window(%d panes of %ds, each %v)", len(w.shape.areas), w.shape.seconds, w.rec.geo)
}

// Format is String for every verb: none shows the key or the seed.
func (w *Window) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, w.String()) }
