package bloom

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/internal/human"
)

// A WindowConfig says how much a [Window] holds, and for how long. All programs
// that share a window must use the same Capacity, FPRate, Span, Panes, Seed and
// ExpireIdle. There is no Reads: see [Window]. The zero value is not valid: set
// Capacity, FPRate and Span. A WindowConfig is plain data, to be copied freely.
// Its String does not show the seed.
type WindowConfig struct {
	_ struct{}

	// Capacity is the number of distinct items in any Span, at least 1. A pane
	// lasts as long as Span/Panes and is sized for all of them, because they
	// may come at once. If more items come, the window takes them, and Add
	// answers "seen" for more and more of the new ones: of a window for 1 in
	// 1,000, for up to 4% with twice the Capacity, for up to 72% with five times.
	// Nothing but WarnFill and [WindowStats.OverCapacity] says so.
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
	// in 100, 34 bits an item with one pane, 50 with two.
	Panes int

	// Seed of the hash; the default is 0. See [Config.Seed].
	Seed uint64 `json:"-"`

	// ExpireIdle makes the whole window expire Panes + 3 panes after it was made
	// or last turned: everything in it is forgotten by then. The first Add of an
	// epoch turns the window. So does a look-up by a client that knows the
	// server's time, if the last turn is two epochs or more ago: see
	// [Window.Exists]. A missing window is an empty one. Without ExpireIdle the
	// window stays, and a missing one is [ErrNotFound]: it was deleted, or
	// evicted.
	ExpireIdle bool

	// MustExist is [Config.MustExist]. An Add is then three billed commands. It
	// cannot be combined with ExpireIdle.
	MustExist bool

	// BatchBytes and BatchParallel are those of a [Config]. But an item takes
	// about 40 to 85 bytes a hash in an Add, and 29 to 72 in a look-up, by the
	// number of panes and their length.
	BatchBytes    int
	BatchParallel int

	// WarnFill, if not nil, is called with the window's Stats when an Add or
	// AddAll finds its own pane over Capacity. It comes as early as
	// [Config.WarnFill] and looks as often: a look is one command. If it finds
	// the pane too full, the Stats cost as many commands more as
	// [Window.Stats], and the handle does not look during its next 8,192
	// writes, if it lives so long. A look that fails is no error. The write
	// calls WarnFill on its caller's goroutine, before it returns, and a handle
	// makes one call at a time.
	WarnFill func(WindowStats) `json:"-"`
}

const (
	maxPanes = 4
	// All panes of a Span together are so much longer: two clocks may each be
	// wrong by two seconds, and an answer may come a second late (answerGrace).
	clockSlack  = 5 * time.Second
	minPaneSpan = 10 * time.Second
	// maxPaneSeconds is the most the format's 23 bits hold.
	maxPaneSeconds = 1<<23 - 1
)

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

// Geometry checks the whole [WindowConfig] and works out the geometry of one
// pane. The error is a [*ConfigError]. It sends nothing.
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
	g, err := Config{
		Capacity: c.Capacity, FPRate: c.FPRate / float64(c.panes()+1), Seed: c.Seed,
		BatchBytes: c.BatchBytes, BatchParallel: c.BatchParallel,
	}.Geometry()
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

// namesCapacity reports whether a ConfigError is about the Capacity.
func namesCapacity(err error) bool {
	e, ok := fault.As[*ConfigError](err)
	return ok && e.Field == "Capacity"
}

// ofConfig says of whose Config an error is, if it is a *ConfigError.
func ofConfig(err error, name string) error {
	if e := (*ConfigError)(nil); errors.As(err, &e) {
		return &ConfigError{Field: e.Field, Reason: e.Reason, of: name}
	}
	return err
}

// String shows the fields that are set. Of the seed and of WarnFill it shows only
// that they are set.
func (c WindowConfig) String() string { return describe(c) }

// Format is String for every verb: none shows the seed.
func (c WindowConfig) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, c.String()) }
