package bloom

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/internal/pttl"
	"github.com/upbloom/upbloom/upstash"
)

// Stats is the state of a filter at one moment. It is plain data.
type Stats struct {
	// Geometry, Layout and Kind are the handle's, or what [Inspect] read, with
	// Seed 0. Seeded is true if the filter has a seed. Of a window or of
	// layers, Geometry is that of one pane or of the first layer, and Parts
	// their number; else it is 1.
	Geometry Geometry
	Layout   Layout
	Kind     Kind
	Seeded   bool
	Parts    int
	// Bytes is the length of the Redis string now.
	Bytes uint64
	// SetBits is how many cells are set, Fill their share, 0 to 1. Of a window
	// or of layers Fill, Items and LiveFPRate are 0: see [Window.Stats] and
	// [Scalable.Stats].
	SetBits uint64
	Fill    float64
	// Items is the estimated number of distinct items; if Saturated, a lower
	// bound.
	Items uint64
	// Capacity is [Config.Capacity], or follows from the geometry and the rate
	// that the string says: within 1% for [SchemeBlocked], 2.5% for the others,
	// and more in a small filter. FPRate is the false positive rate at Capacity.
	// Both are 0 if the string says none: for a filter made with Bits and Hashes
	// or by another program, for a rate above 1 in 4 or below 2^-31, and for a
	// Local of [NewLocal].
	Capacity uint64
	FPRate   float64
	// LiveFPRate is the false positive rate now. For [SchemeFNV1a] it and
	// FPRate are what the formulas say, and too low.
	LiveFPRate float64
	// Saturated is true if every cell is set: every item is found.
	Saturated bool
	// TTL is the time until the filter expires, at most 292 years; 0 if it does
	// not.
	TTL time.Duration
}

// OverCapacity reports whether Items is above Capacity: by 3% or, in a smaller
// filter, by four standard errors. It is false if Capacity is not known.
func (s Stats) OverCapacity() bool {
	return s.Capacity != 0 && (s.Saturated || float64(s.Items) > overCapacity(s.Capacity))
}

// overCapacity returns the estimate above which a filter is over its capacity.
func overCapacity(capacity uint64) float64 {
	c := float64(capacity)
	return c + max(0.03*c, 4*math.Sqrt(0.1*c))
}

// storedAs judges the answers to STRLEN and PTTL.
func storedAs(length, left int64) (bytes uint64, ttl time.Duration, err error) {
	switch {
	case length < 0:
		return 0, 0, engine.ErrNegative
	case left == int64(upstash.NoKey):
		return 0, 0, ErrNotFound
	}
	return uint64(length), pttl.Duration(left), nil
}

// statsOf works out everything that follows from the number of set bits. The
// capacity is 0 if it is not known.
func statsOf(g Geometry, layout Layout, capacity, setBits uint64) Stats {
	s := Stats{Geometry: g, Layout: layout, Parts: 1, SetBits: setBits, Capacity: capacity}
	if !g.Scheme.oneBit() { // set bits say nothing of the items
		return s
	}
	setBits = min(setBits, g.Bits)
	s.SetBits, s.Saturated = setBits, setBits == g.Bits
	s.Fill, s.LiveFPRate = float64(setBits)/float64(g.Bits), g.LiveFalsePositiveRate(setBits)
	if s.Capacity != 0 {
		s.FPRate = g.FalsePositiveRate(s.Capacity)
	}
	if s.Saturated {
		setBits = g.Bits - 1
	}
	s.Items = uint64(math.Round(g.EstimateItems(setBits)))
	return s
}

// String draws the state for a person, in a few lines:
//
//	filter           53,742 bits (6.6 KiB), k=4, blocked
//	fill             [#####...............] 25.7%
//	items            about 3,994 of 5,000
//	false positives  1 in 208 now, 1 in 100 at capacity
//	stored           6,742 bytes, no expiry
func (s Stats) String() string {
	var r report
	switch s.Kind {
	case KindWindow:
		r.line("window", "%d panes, each %v", s.Parts, s.Geometry)
		r.line("cells set", "%s; Window.Stats counts those of each pane", human.Count(s.SetBits))
	case KindScalable:
		r.line("layers", "%d, the first %v", s.Parts, s.Geometry)
		r.line("cells set", "%s; Scalable.Stats counts those of each layer", human.Count(s.SetBits))
	default:
		r.line(s.Kind.String(), "%v", s.Geometry)
		r.line("fill", "%s", bar(s.Fill))
		r.items(s)
		r.rates(s)
	}
	r.stored(s.Bytes, ", "+expiry(s.TTL))
	return r.String()
}

// A report draws a state for a person, in lines of a name and a text.
type report struct{ lines []string }

func (r *report) line(name, format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf("%-16s ", name)+fmt.Sprintf(format, args...))
}

// items says how many items there are, and of how many if the Capacity is known.
func (r *report) items(s Stats) {
	about, more := "about", ""
	if s.Saturated {
		about = "saturated: more than"
	}
	if s.Geometry.Scheme == SchemeFNV1a {
		more = " or more"
	}
	r.line("items", "%s %s%s%s", about, human.Count(s.Items), more, ofCapacity(s.Capacity))
}

// rates says how often the filter is wrong now, and at its Capacity.
func (r *report) rates(s Stats) {
	now, at := human.OneIn(s.LiveFPRate), ""
	if s.Geometry.Scheme == SchemeFNV1a {
		now = human.AtLeast(s.LiveFPRate)
	}
	if s.Capacity != 0 {
		at = ", " + human.OneIn(s.FPRate) + " at capacity"
	}
	r.line("false positives", "%s now%s", now, at)
}

func (r *report) stored(bytes uint64, more string) {
	r.line("stored", "%s bytes%s", human.Count(bytes), more)
}

func (r *report) String() string { return strings.Join(r.lines, "\n") }

func ofCapacity(n uint64) string {
	if n == 0 {
		return ""
	}
	return " of " + human.Count(n)
}

// either returns the chance of one or both of two independent events. As 1 -
// (1-a)(1-b) it would be 0 for chances below 1e-16.
func either(a, b float64) float64 { return min(a+b*(1-a), 1) }

// bar draws a share from 0 to 1, and says it in percent. Only a full filter has a
// full bar, and only an empty one an empty bar.
func bar(share float64) string {
	const width = 20
	n := int(math.Round(share * width))
	if share > 0 {
		n = max(n, 1)
	}
	if share < 1 {
		n = min(n, width-1)
	}
	return fmt.Sprintf("[%s%s] %.1f%%", strings.Repeat("#", n), strings.Repeat(".", width-n), 100*share)
}

func expiry(ttl time.Duration) string {
	if ttl <= 0 {
		return "no expiry"
	}
	return "expires in " + human.Span(ttl)
}
