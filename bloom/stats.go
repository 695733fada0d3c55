package bloom

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/human"
)

// Stats is the state of a filter of any kind. The server reads the whole string
// for it; the nearest region of a global database answers.
//
// Of a type with parts, the numbers are those of all parts. What a type means by a
// field:
//
//   - A [Window] has the Geometry of one pane, and its OverCapacity is that of a
//     pane. An item renewed in two panes counts twice in Items. Its Parts are the
//     panes that count now: the next to be filled, and then the newest first.
//   - A [Scalable] has the Geometry of its first layer, and the Capacity and FPRate
//     of all layers that MaxBytes allows. Its Parts are the layers, the newest last.
//   - A [Sharded] has the Geometry of one shard, KindShard, and no TTL. Its Parts
//     are the shards, by their number.
//   - A [Cuckoo] has the share of slots that hold a copy as its Fill, and the exact
//     number of copies as its Items.
//   - [Inspect] and [Backup.Stats] do not count the parts of a Window and a
//     Scalable: see Counted.
//
// Capacity and FPRate are the Config's, or follow from the string: within 1% for
// [SchemeBlocked] and a Cuckoo, 2.5% for the others, and more in a small filter.
// They are 0 if the string does not say, as for a filter made with Bits and Hashes
// or a rate above 1 in 4. For [SchemeFNV1a] both rates are too low.
//
// [Cuckoo.Stats] and [Backup.Stats] miss up to 20% of single overwritten bytes, and
// Inspect nearly all: then Damaged stays false.
type Stats struct {
	Kind       Kind
	Geometry   Geometry // with the handle's Seed, or 0 without one
	Seeded     bool     // the filter has a seed
	Bytes      uint64   // the length of the Redis string, or of all shards' strings
	SetBits    uint64   // the number of cells that are set
	Fill       float64  // the share of cells that are set, 0 to 1
	Items      uint64   // the estimated number of distinct items; if Saturated, a lower bound
	Capacity   uint64   // the number of items that the filter was made for
	FPRate     float64  // the false positive rate at Capacity
	LiveFPRate float64  // the false positive rate now, if all set cells come from items of this Config
	Saturated  bool     // every cell of the filter, or of one part, is set

	// Damaged is true if anything but a Cuckoo has written to its table: members
	// may be denied. Make the filter again.
	Damaged bool
	// TTL is the time until the filter expires, 0 if it does not.
	TTL time.Duration
	// PaneSpan is how long a pane of a Window lasts, and Span how long an item
	// is found: [WindowConfig.Span], rounded up.
	PaneSpan, Span time.Duration
	// MaxParts is how many Parts there can be.
	MaxParts int
	// Parts is nil for a type without parts, and if they were not counted.
	Parts []Part
}

// A Part is the state of one pane of a [Window], layer of a [Scalable] or shard of
// a [Sharded]. Its fields mean what they do in [Stats], of the part alone.
type Part struct {
	Bits       uint64 // the number of cells
	Bytes      uint64 // what they take, or the length of a shard's string
	SetBits    uint64
	Fill       float64
	Items      uint64
	Capacity   uint64 // of a pane for the whole Span, of a shard for its share and a margin
	LiveFPRate float64
	Saturated  bool
	// Newest is true of the pane that takes the Adds now. If the last turn was
	// two epochs ago or more, none is.
	Newest bool
}

// Counted reports whether Fill, Items and LiveFPRate are known. Of a [Window]
// and a [Scalable], only [Window.Stats] and [Scalable.Stats] know them.
func (s Stats) Counted() bool {
	switch s.Kind {
	case KindFilter, KindShard:
		return s.Geometry.Scheme.oneBit()
	case KindCuckoo:
		return true
	}
	return s.Parts != nil
}

// OverCapacity reports whether Items is above Capacity, of a Window in one of
// its panes: by 3% or, in a smaller filter, by four standard errors. It is
// false if Capacity or Items are not known. A Scalable is also over if its
// newest layer is and LiveFPRate is above FPRate.
func (s Stats) OverCapacity() bool {
	if n := len(s.Parts); s.Kind == KindScalable && n > 0 && s.LiveFPRate > s.FPRate {
		last := s.Parts[n-1]
		if isOver(last.Items, last.Capacity, last.Saturated) {
			return true
		}
	}
	if s.Kind != KindWindow {
		return s.Counted() && isOver(s.Items, s.Capacity, s.Saturated)
	}
	return slices.ContainsFunc(s.Parts, func(p Part) bool { return isOver(p.Items, s.Capacity, p.Saturated) })
}

func isOver(items, capacity uint64, saturated bool) bool {
	c := float64(capacity)
	return capacity != 0 && (saturated || float64(items) > c+max(0.03*c, 4*math.Sqrt(0.1*c)))
}

// partOf works out everything that follows from the number of set bits, of cells
// of one bit each. The capacity is 0 if it is not known.
func partOf(g Geometry, capacity, setBits uint64) Part {
	p := Part{Bits: g.Bits, Bytes: g.Bytes(LayoutBare), SetBits: min(setBits, g.Bits), Capacity: capacity}
	p.Fill, p.LiveFPRate = float64(p.SetBits)/float64(g.Bits), g.LiveFalsePositiveRate(p.SetBits)
	p.Saturated = p.SetBits == g.Bits
	p.Items = uint64(math.Round(g.EstimateItems(min(p.SetBits, g.Bits-1))))
	return p
}

// statsOf is partOf for a plain filter, or one shard.
func statsOf(kind Kind, g Geometry, capacity, setBits uint64) Stats {
	s := Stats{Kind: kind, Geometry: g, Seeded: g.Seed != 0, SetBits: setBits, Capacity: capacity}
	if !g.Scheme.oneBit() { // set bits say nothing of the items
		return s
	}
	p := partOf(g, capacity, setBits)
	s.SetBits, s.Fill, s.Items, s.LiveFPRate, s.Saturated = p.SetBits, p.Fill, p.Items, p.LiveFPRate, p.Saturated
	if capacity != 0 {
		s.FPRate = g.FalsePositiveRate(capacity)
	}
	return s
}

// addUp takes the parts, and sums them up. How they make LiveFPRate is their
// kind's.
func (s *Stats) addUp(parts []Part) {
	s.Parts, s.SetBits = parts, 0
	bits := uint64(0)
	for _, p := range parts {
		s.SetBits += p.SetBits
		s.Items += p.Items
		s.Saturated = s.Saturated || p.Saturated
		bits += p.Bits
	}
	if bits > 0 {
		s.Fill = float64(s.SetBits) / float64(bits)
	}
}

// inAny returns the false positive rate of a filter that finds an item if one
// of its parts does.
func inAny(parts []Part) (rate float64) {
	for _, p := range parts {
		rate = either(rate, p.LiveFPRate)
	}
	return rate
}

// either returns the chance of one or both of two independent events. As 1 -
// (1-a)(1-b) it would be 0 for chances below 1e-16.
func either(a, b float64) float64 { return min(a+b*(1-a), 1) }

// stats returns what is known without a count of each pane or layer.
func (s *state) stats() (out Stats) {
	g, rate := geometryOf(s.Header, 0), format.RateIn(s.Birth)
	switch Kind(s.Header.Kind) {
	case KindWindow:
		if w, err := windowShapeOf(s, 0); err == nil {
			out = w.stats(w.holds(rate))
		}
		out.SetBits = s.SetBits
	case KindScalable:
		w := format.ParseLayers(s.Word)
		l := layersOf(g, w.Capacity, engine.MostPlansRecord)
		out = l.stats(min(w.Layers, len(l.areas)))
		out.SetBits = s.SetBits
	case KindCuckoo:
		out = cuckooStats(g, 0, s.Word)
		out.SetBits = s.SetBits
	default:
		out = statsOf(Kind(s.Header.Kind), g, g.holds(rate, 1), s.SetBits)
	}
	out.Kind, out.Geometry, out.Seeded = Kind(s.Header.Kind), g, s.Header.SeedTag != 0
	out.Bytes, out.TTL = s.Length, s.TTL
	return out
}

// stats returns what is known of a window without a count of its cells.
func (s *windowShape) stats(capacity uint64) Stats {
	out := Stats{
		Kind: KindWindow, Geometry: s.geo, Seeded: s.geo.Seed != 0, Capacity: capacity, MaxParts: len(s.areas),
		PaneSpan: time.Duration(s.seconds) * time.Second,
		Span:     s.lasts(),
	}
	if capacity != 0 {
		out.FPRate = s.rateAt(capacity)
	}
	return out
}

// stats returns what is known of a filter of so many layers without a count of
// its cells.
func (l *layers) stats(newest int) Stats {
	out := Stats{
		Kind: KindScalable, Geometry: l.geo, Seeded: l.geo.Seed != 0, MaxParts: max(newest, l.limit),
	}
	for i := range out.MaxParts {
		out.Capacity += l.capacity(i)
		out.FPRate = either(out.FPRate, l.geometry(i).FalsePositiveRate(l.capacity(i)))
	}
	return out
}

// cuckooStats works out what follows from the kind's word.
func cuckooStats(g Geometry, capacity uint64, word int64) Stats {
	buckets := g.Bits / wordBits
	slots := g.header(KindCuckoo).Slots()
	if capacity == 0 {
		capacity = cells.CuckooCapacity(buckets, g.Hashes)
	}
	items := format.ParseCuckoo(word).Items
	return Stats{
		Kind: KindCuckoo, Geometry: g, Seeded: g.Seed != 0, Items: items, Capacity: capacity,
		Fill:   math.Min(1, float64(items)/float64(slots)),
		FPRate: g.FalsePositiveRate(capacity), LiveFPRate: g.FalsePositiveRate(items), Damaged: items > slots,
	}
}

// countCells takes the number of set bits of a Cuckoo's table. It was read at
// the same moment as the kind's word, which has it too.
func (s *Stats) countCells(word int64, setBits uint64) {
	ones := format.ParseCuckoo(word).Ones
	s.SetBits, s.Damaged = setBits, s.Damaged || setBits%(1<<format.OnesBits) != ones
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
	switch {
	case s.Kind == KindWindow:
		r.window(s)
	case s.Kind == KindScalable:
		r.layers(s)
	case s.Parts != nil:
		r.shards(s)
	default:
		r.line(s.Kind.String(), "%v", s.Geometry)
		r.line("fill", "%s", bar(s.Fill))
	}
	if s.Counted() {
		r.items(s)
		r.rates(s)
	} else {
		r.line("cells set", "%s; the Stats of a handle count those of each part", human.Count(s.SetBits))
	}
	expires := ", " + expiry(s.TTL)
	if s.Kind == KindShard && s.Parts != nil {
		expires = "" // a shard has no TTL
	}
	r.line("stored", "%s bytes%s", human.Count(s.Bytes), expires)
	if s.Damaged {
		r.line("damaged", "something else wrote to the table: members may be denied")
	}
	return strings.Join(r.lines, "\n")
}

// A report draws a state for a person, in lines of a name and a text.
type report struct{ lines []string }

func (r *report) line(name, format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf("%-16s ", name)+fmt.Sprintf(format, args...))
}

// window has a line for each pane: the next one to be filled, and then the
// newest first.
func (r *report) window(s Stats) {
	r.line("window", "finds an item for %s, and forgets it within %s",
		human.Exact(s.Span), human.Exact(s.Span+clockSlack+2*s.PaneSpan))
	if s.Parts == nil {
		r.line("panes", "%d of %s, each %v", s.MaxParts, human.Exact(s.PaneSpan), s.Geometry)
		return
	}
	forgotten := ""
	if len(s.Parts) == 0 {
		forgotten = ", everything is forgotten"
	}
	r.line("panes", "%d of %s%s, each %v", len(s.Parts), human.Exact(s.PaneSpan), forgotten, s.Geometry)
	newest := slices.IndexFunc(s.Parts, func(p Part) bool { return p.Newest })
	for i, p := range s.Parts {
		name := "pane"
		if p.Newest {
			name = "newest pane"
		} else if i < newest {
			name = "next pane"
		}
		r.line(name, "%s, about %s", bar(p.Fill), human.Counted(p.Items, "item"))
	}
}

func (r *report) layers(s Stats) {
	if s.Parts == nil {
		r.line("layers", "up to %d, the first %v", s.MaxParts, s.Geometry)
		return
	}
	r.line("layers", "%d of %d", len(s.Parts), s.MaxParts)
	for _, p := range s.Parts {
		g := s.Geometry
		g.Bits = p.Bits
		r.line("layer", "%s, about %s%s items, %v", bar(p.Fill), human.Count(p.Items), ofCapacity(p.Capacity), g)
	}
}

func (r *report) shards(s Stats) {
	most := 0.0
	for _, p := range s.Parts {
		most = max(most, p.Fill)
	}
	r.line("sharded", "%s of %v", human.Counted(uint64(len(s.Parts)), "shard"), s.Geometry)
	r.line("fill", "%s on average, %.1f%% at most", bar(s.Fill), 100*most)
}

// items says how many items there are, and of how many if the Capacity is known.
func (r *report) items(s Stats) {
	about, more := "about ", ""
	if s.Kind == KindCuckoo {
		about = ""
	} else if s.Saturated {
		about = "saturated: more than "
	}
	if s.Geometry.Scheme == SchemeFNV1a {
		more = " or more"
	}
	if s.Kind == KindWindow { // its Capacity is for a Span, and not for all panes
		r.line("items", "%s%s; one renewed in two panes counts twice", about, human.Count(s.Items))
		return
	}
	r.line("items", "%s%s%s%s", about, human.Count(s.Items), more, ofCapacity(s.Capacity))
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

func ofCapacity(n uint64) string {
	if n == 0 {
		return ""
	}
	return " of " + human.Count(n)
}

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
