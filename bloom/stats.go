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
	// Geometry, Layout and Kind are the handle's, or what [Inspect] read. Of a
	// window or of layers, Geometry is that of one pane or of the first layer,
	// and Parts is how many panes or layers there are; it is 1 for every other
	// kind. Seeded is true if the filter has a seed.
	Geometry Geometry
	Layout   Layout
	Kind     Kind
	Seeded   bool
	Parts    int
	// Bytes is the length of the Redis string now. Unless Create made the
	// filter, it grows to its full length as items are added.
	Bytes uint64
	// SetBits is how many cells are set, Fill their share, 0 to 1. Of a window
	// or of layers Fill, Items and LiveFPRate are 0, because the count of all
	// cells does not tell them: see [Window.Stats] and [Scalable.Stats].
	SetBits uint64
	Fill    float64
	// Items is the estimated number of distinct items; if Saturated, a lower
	// bound. Of [SchemeFNV1a] it is up to 40% low.
	Items uint64
	// Capacity is [Config.Capacity]. If a Config does not say it, it is how many
	// items the geometry holds at the rate for which the string says it was
	// made: within 1%, and more in a small filter, because that has a least
	// size. FPRate is the false positive rate at Capacity. Both are 0 if the
	// string does not say it either: for a filter made with Bits and Hashes,
	// for a rate above 1 in 4 or below 2^-31, of other programs, and for a
	// [Local]. Of a shard, Capacity has the margin that the shard was given.
	Capacity uint64
	FPRate   float64
	// LiveFPRate is the false positive rate now. For [SchemeFNV1a] it and FPRate
	// are what the formulas say, and too low if the number of bits is even.
	LiveFPRate float64
	// Saturated is true if every cell is set: every item is found.
	Saturated bool
	// TTL is the time until the filter expires, at most 292 years. It is 0 if
	// the filter does not expire.
	TTL time.Duration
}

// OverCapacity reports whether the filter holds more items than it was sized
// for. Its false positive rate is then above the one asked for. It is false if
// Capacity is not known: look at LiveFPRate and Saturated then.
//
// The estimate of Items is off by about 1% in a filter for 1,000 and less in
// larger ones. So it takes 3% more than Capacity, or four standard errors in a
// smaller filter, to be true.
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

// String draws the state for a person, in a few lines without the key:
//
//	filter           53,742 bits (6.6 KiB), k=4, blocked
//	fill             [#####...............] 25.7%
//	items            about 3,994 of 5,000
//	false positives  1 in 208 now, 1 in 100 at capacity
//	stored           6,742 bytes, no expiry
//
// Without a Capacity it says "about 3,994" and "1 in 208 now". For a window or
// layers it says what [Inspect] knows of them:
//
//	window           3 panes, each 11,448 bits (1.4 KiB), k=6, blocked
//	cells set        4,682; Window.Stats counts those of each pane
//	stored           4,317 bytes, no expiry
func (s Stats) String() string {
	var b strings.Builder
	switch s.Kind {
	case KindWindow:
		fmt.Fprintf(&b, "window           %d panes, each %v\n", s.Parts, s.Geometry)
		fmt.Fprintf(&b, "cells set        %s; Window.Stats counts those of each pane\n", human.Count(s.SetBits))
	case KindLayers:
		fmt.Fprintf(&b, "layers           %d, the first %v\n", s.Parts, s.Geometry)
		fmt.Fprintf(&b, "cells set        %s; Scalable.Stats counts those of each layer\n", human.Count(s.SetBits))
	default:
		s.write(&b)
	}
	fmt.Fprintf(&b, "stored           %s bytes, %s", human.Count(s.Bytes), expiry(s.TTL))
	return b.String()
}

// write writes the lines of a filter that is one part.
func (s Stats) write(b *strings.Builder) {
	name := s.Kind.String() // filter or shard
	if s.Geometry.Scheme == SchemeCuckoo {
		name = "cuckoo"
	}
	fmt.Fprintf(b, "%-16s %v\n", name, s.Geometry)
	fmt.Fprintf(b, "fill             %s %.1f%%\n", bar(s.Fill), 100*s.Fill)
	about := "about"
	if s.Saturated {
		about = "saturated: more than"
	}
	of, at := "", ""
	if s.Capacity != 0 {
		of = " of " + human.Count(s.Capacity)
		at = ", " + human.OneIn(s.FPRate) + " at capacity"
	}
	rate := human.OneIn(s.LiveFPRate)
	if s.Geometry.Scheme == SchemeFNV1a {
		rate = human.AtLeast(s.LiveFPRate)
		of = " or more" + of
	}
	fmt.Fprintf(b, "items            %s %s%s\n", about, human.Count(s.Items), of)
	fmt.Fprintf(b, "false positives  %s now%s\n", rate, at)
}

// either returns the chance of one or both of two independent events. As 1 -
// (1-a)(1-b) it would be 0 for chances below 1e-16.
func either(a, b float64) float64 { return min(a+b*(1-a), 1) }

// bar draws a share from 0 to 1. Only a full filter has a full bar, and only
// an empty one an empty bar.
func bar(share float64) string {
	const width = 20
	n := int(math.Round(share * width))
	if share > 0 {
		n = max(n, 1)
	}
	if share < 1 {
		n = min(n, width-1)
	}
	return "[" + strings.Repeat("#", n) + strings.Repeat(".", width-n) + "]"
}

func expiry(ttl time.Duration) string {
	if ttl <= 0 {
		return "no expiry"
	}
	return "expires in " + human.Span(ttl)
}
