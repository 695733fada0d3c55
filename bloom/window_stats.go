package bloom

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

// WindowStats is the state of a window at one moment. It is plain data.
type WindowStats struct {
	// Geometry is that of one pane. Seeded is true if the window has a seed.
	Geometry Geometry
	Seeded   bool
	// PaneSpan is how long a pane lasts. Span is how long an item is found after
	// its last Add: [WindowConfig.Span], rounded up to what the panes cover. It
	// is forgotten within Span, two panes and 5 s.
	PaneSpan, Span time.Duration
	// Bytes is the length of the Redis string now.
	Bytes uint64
	// Panes are those that count for a look-up now, the newest first. The first
	// is the next to be filled: it is empty, and the Adds of the present epoch
	// are in the second, unless an epoch has ended since the last Add. If the
	// client does not know the server's time, they are those that counted at the
	// last turn; ask [upstash.Client.ServerTime] before.
	Panes []PaneStats
	// Capacity is [WindowConfig.Capacity], or what the string says, as in
	// [Stats]. FPRate is the false positive rate of the whole window at
	// Capacity. Both are 0 if they are not known.
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
	// Items is the estimated number of distinct items. If an item was added
	// again in a later epoch, it is in both panes.
	Items uint64
	// LiveFPRate is the false positive rate of the pane now. Saturated is true
	// if every cell is set.
	LiveFPRate float64
	Saturated  bool
}

// OverCapacity reports whether a pane holds more items than the window was sized
// for, as [Stats.OverCapacity] does. It is false if Capacity is not known.
func (s WindowStats) OverCapacity() bool {
	for _, p := range s.Panes {
		if (Stats{Capacity: s.Capacity, Items: p.Items, Saturated: p.Saturated}).OverCapacity() {
			return true
		}
	}
	return false
}

// Stats reads the state of the window: one request, a transaction of three
// commands and one for each of its panes. The server reads the whole string,
// about 1 ms a megabyte. In a global database the nearest region answers. A
// missing window is [ErrNotFound], whatever ExpireIdle says.
func (w *Window) Stats(ctx context.Context) (out WindowStats, err error) {
	defer fault.OnlyReads(&err)
	ctx = w.rec.Label(ctx, "bloom.Window.Stats")
	r, s := &w.rec, w.shape
	reads := []upstash.Command{upstash.Cmd("STRLEN", r.Key), upstash.Cmd("PTTL", r.Key)}
	for _, a := range s.areas {
		reads = append(reads, a.count(r.Key))
	}
	own, n, err := r.ReadNumbers(ctx, reads...)
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
	t, known := r.Client.KnownServerTime()
	c := epochOf(own.Kind)
	e := c
	if known {
		e = s.epochAt(t)
	}
	counts := s.counting(e, c)
	for i := range s.panes() {
		pane := (c + 1 + s.cycle() - i) % s.panes()
		if counts&(1<<pane) == 0 {
			continue
		}
		if n[2+pane] < 0 {
			return WindowStats{}, engine.ErrNegative
		}
		p := statsOf(r.geo, LayoutHeaded, 0, uint64(n[2+pane]))
		out.Panes = append(out.Panes, PaneStats{p.SetBits, p.Fill, p.Items, p.LiveFPRate, p.Saturated})
		out.LiveFPRate = either(out.LiveFPRate, p.LiveFPRate)
	}
	return out, nil
}

// count counts the set cells of an area.
func (a area) count(key string) upstash.Command {
	return upstash.Cmd("BITCOUNT", key, strconv.FormatUint(a.offset, 10),
		strconv.FormatUint(a.offset+a.words*wordBits-1, 10), "BIT")
}

// String draws the state for a person, in a few lines without the key:
//
//	window           finds an item for 24h, and forgets it within 3d15s
//	panes            3 of 24h5s, the next to be filled first, each 11,448 bits (1.4 KiB), k=6, blocked
//	pane             [....................] 0.0%, about 0 items
//	pane             [#...................] 0.1%, about 2 items
//	pane             [########............] 40.8%, about 1,000 items
//	false positives  1 in 204 now, 1 in 102 at capacity
//	stored           4,317 bytes, no expiry
//
// A window without an Add for so long that it finds nothing has no panes.
func (s WindowStats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "window           finds an item for %s, and forgets it within %s\n",
		human.Exact(s.Span), human.Exact(s.Span+clockSlack+2*s.PaneSpan))
	order := "the next to be filled first"
	if len(s.Panes) == 0 {
		order = "everything is forgotten"
	}
	fmt.Fprintf(&b, "panes            %d of %s, %s, each %v\n",
		len(s.Panes), human.Exact(s.PaneSpan), order, s.Geometry)
	for _, p := range s.Panes {
		fmt.Fprintf(&b, "pane             %s %.1f%%, about %s\n",
			bar(p.Fill), 100*p.Fill, human.Counted(p.Items, "item"))
	}
	at := ""
	if s.Capacity != 0 {
		at = ", " + human.OneIn(s.FPRate) + " at capacity"
	}
	fmt.Fprintf(&b, "false positives  %s now%s\n", human.OneIn(s.LiveFPRate), at)
	fmt.Fprintf(&b, "stored           %s bytes, %s", human.Count(s.Bytes), expiry(s.TTL))
	return b.String()
}
