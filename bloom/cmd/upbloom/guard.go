package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/urfave/cli/v3"
	"github.com/zeebo/xxh3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
)

// An overfilled filter cannot be emptied again, and an emptied one answers "no"
// to items it had. The checks below run before anything is sent.

// worstRate is the highest limit of limitOf.
const worstRate = 0.9

// A limit is how far a filter may be filled: to a number of items, or to a
// false positive rate if that is not 0.
type limit struct {
	items  uint64
	rate   float64
	hashes int // of which the rate is ten times the lowest, or 0
}

// asked reports whether the limit is that of --max-rate, and so one of the whole
// filter.
func (l limit) asked() bool { return l.rate != 0 && l.hashes == 0 }

// text says how high the rate may be.
func (l limit) text() string {
	if l.hashes == 0 {
		return "the limit is " + human.OneIn(l.rate)
	}
	return fmt.Sprintf("without --max-rate the limit for k=%d is %s", l.hashes, human.OneIn(l.rate))
}

// limitOf returns the limit in the flags. Without --max-rate it is the number
// of --items. Without both it goes by the number of hashes, because the header
// has neither Capacity nor FPRate: it is ten times the lowest rate that filters
// with so many are made for. That of a blocked one is a power of ten.
func limitOf(c *cli.Command, g bloom.Geometry) (limit, error) {
	if c.IsSet("max-rate") {
		p := rateOf(c, "max-rate")
		if !(p > 0 && p <= 1) {
			return limit{}, usagef("--max-rate is %v: it must be above 0, and at most 1", p)
		}
		return limit{rate: p}, nil
	}
	if n := countOf(c, "items"); n != 0 {
		return limit{items: n}, nil
	}
	atCapacity := math.Pow(2, -float64(g.Hashes))
	if g.Scheme == bloom.SchemeBlocked {
		atCapacity = math.Pow(10, -float64(g.Hashes)/2)
	}
	return limit{rate: min(10*atCapacity, worstRate), hashes: g.Hashes}, nil
}

// mayAddTo is mayAdd for the other kinds of filters. It counts items instead of
// bits, and estimates from a sample how many of the items are already in.
func (a *app) mayAddTo(ctx context.Context, c *cli.Command, o opened, items []string) error {
	if f, ok := o.handle.(*bloom.Cuckoo); ok {
		return a.mayAddToCuckoo(ctx, c, f, len(items))
	}
	if few, err := isFew(c, o.Geometry(), len(items)); few || err != nil || c.Bool("force") {
		return err
	}
	p, err := placeIn(ctx, o)
	if err != nil {
		return err
	}
	most, err := limitOf(c, p.geometry)
	if err != nil {
		return err
	}
	if p.parts > 1 && !most.asked() {
		// Each part was sized for its share of the rate, which is likely a
		// power of ten, with the words per item of the next lower power.
		most.rate = min(most.rate*10/float64(p.parts), worstRate)
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(items)))
	var some []string
	for i := 0; i < len(distinct); i += max(len(distinct)/unasked, 1) {
		some = append(some, distinct[i])
	}
	return a.mayTake(ctx, o, p, most, uint64(len(distinct)), some)
}

// allOrNothing is how many items a request to a cuckoo filter takes: it adds all
// of them or none.
const allOrNothing = 500

// mayAddToCuckoo is mayAdd for a cuckoo filter: half of a file in it could not
// be taken out again if some of the items were in before.
func (a *app) mayAddToCuckoo(ctx context.Context, c *cli.Command, f *bloom.Cuckoo, items int) error {
	if c.IsSet("max-rate") {
		return usagef("--max-rate has no effect on a cuckoo filter, which refuses by itself when it is full")
	}
	if items <= allOrNothing || c.Bool("force") {
		return nil
	}
	s, err := f.Stats(ctx)
	if err != nil || s.Items+uint64(items) <= s.Capacity {
		return err
	}
	return usagef("%s: the cuckoo filter is for %s and holds %s: there is no room for %s more, each of"+
		" which takes a place even if it is in\nNothing was changed. Remove items, make a larger one"+
		" (upbloom create --cuckoo), or set --force to add 500 at a time as long as they fit.", printable(a.key),
		human.Counted(s.Capacity, "item"), human.Count(s.Items), human.Count(uint64(items)))
}

// A place is the part of a filter that gets new items, such as a window's
// newest pane.
type place struct {
	geometry bloom.Geometry
	items    uint64 // in the place
	setBits  uint64 // of shards, in all of them
	share    uint64 // the place gets one new item in share
	parts    int    // the filter's false positive rate is that of parts places
	where    string

	others float64 // the false positive rate of a window's other panes
	layers []part  // of a scalable filter
	most   int     // how many layers that can have
	all    string  // the parts of the whole filter
}

// placeIn returns the place for new items in a window, a scalable or a sharded
// filter.
func placeIn(ctx context.Context, o opened) (place, error) {
	s, _, err := o.stats(ctx)
	if err != nil {
		return place{}, err
	}
	p := place{geometry: o.Geometry(), share: 1, parts: 1, setBits: s.SetBits}
	switch s.Kind {
	case windowKind:
		// Stats leaves out the panes whose time is over. The number of the
		// others tells which pane takes the items: of all panes the second,
		// because the first is a spare, and the first once a pane is over. If
		// two are, the next Add clears one.
		p.parts, p.where, p.all = int(math.Ceil(s.Span/s.PaneSpan))+2, "in its newest pane", "in all its panes"
		newest, passes := 1-(p.parts-len(s.Parts)), 1.0
		for i, pane := range s.Parts {
			if i == newest {
				p.items = pane.Items
			} else {
				passes *= 1 - pane.Rate
			}
		}
		p.others = 1 - passes
	case scalableKind: // as if all layers were one filter
		p.parts, p.all = mostLayers, "in all its layers"
		p.where = "if all the layers that it can have were one filter"
		p.items, p.layers, p.most = *s.Items, s.Parts, s.MaxLayers
		for i, layer := 1, p.geometry.Bits; i < s.MaxLayers; i++ {
			layer *= 4
			p.geometry.Bits += layer
		}
	default:
		p.share, p.where, p.all = uint64(len(s.Parts)), "in each shard", "in each shard"
		p.items = *s.Items / p.share
	}
	return p, nil
}

// rateWith returns the false positive rate of the place after more new items,
// and if whole is true, that of the filter.
func (p place) rateWith(more uint64, whole bool) float64 {
	if whole && p.layers != nil {
		return p.rateOfLayers(more)
	}
	rate := p.geometry.FalsePositiveRate(p.items + more/p.share)
	if whole {
		rate = 1 - (1-rate)*(1-p.others)
	}
	return rate
}

// rateOfLayers returns the false positive rate of a scalable filter after more
// new items, which fill its newest layer and then those that it can still have.
func (p place) rateOfLayers(more uint64) float64 {
	// A handle without a Config takes a layer to be full at the lowest rate for
	// its hashes.
	g, passes, room := p.geometry, 1.0, uint64(0)
	g.Bits = p.layers[0].Bits
	const sample = 1_000_000
	full, err := bloom.Config{Capacity: sample, FPRate: math.Pow(10, -float64(g.Hashes)/2)}.Geometry()
	if err == nil {
		room = uint64(float64(g.Bits) / float64(full.Bits) * sample)
	}
	for i := range max(p.most, len(p.layers)) {
		items, last := uint64(0), i >= max(p.most, len(p.layers))-1
		if i < len(p.layers) {
			items = p.layers[i].Items
		}
		if added := more; i >= len(p.layers)-1 {
			if !last {
				added = min(added, max(room, items)-items)
			}
			items, more = items+added, more-added
		}
		passes *= 1 - g.FalsePositiveRate(items)
		g.Bits, room = 4*g.Bits, 4*room
	}
	return 1 - passes
}

// saturated is what over says of a filter that no --max-rate allows.
const saturated = "the filter would be saturated: it would find every item"

// over says how a filter with so many set bits is over the limit, or returns
// "".
func (l limit) over(g bloom.Geometry, setBits uint64) string {
	if setBits >= g.Bits {
		return saturated
	}
	items, p := uint64(g.EstimateItems(setBits)), g.LiveFalsePositiveRate(setBits)
	holds := fmt.Sprintf("the filter would hold about %s, with %s false positives",
		human.Counted(items, "item"), human.OneIn(p))
	switch {
	case l.rate != 0 && p > l.rate:
		return holds + ", and " + l.text()
	case l.rate == 0 && (bloom.Stats{Geometry: g, Items: items, Capacity: l.items}).OverCapacity():
		return holds + ", and it is for " + human.Count(l.items)
	}
	return ""
}

// mayFill refuses to add the items of l if the filter would then be over the
// limit. before is the filter's state, or nil if it is missing or will be
// replaced. If the overlap of l and the filter matters, mayFill downloads the
// filter and counts.
func (a *app) mayFill(ctx context.Context, c *cli.Command, f *bloom.Filter, l *bloom.Local,
	before *bloom.Stats,
) error {
	if c.Bool("force") {
		return nil
	}
	g := f.Geometry()
	most, err := limitOf(c, g)
	if err != nil {
		return err
	}
	var there uint64
	if before != nil {
		there = before.SetBits
	}
	added := l.Stats().SetBits
	why := most.over(g, max(there, added))
	if why == "" && there != 0 && most.over(g, min(there+added, g.Bits)) != "" {
		both, err := f.Snapshot(ctx, a.progress("compare"))
		if err == nil {
			err = both.Merge(l)
		}
		switch {
		case errors.Is(err, bloom.ErrNotFound): // it has gone
		case err != nil:
			return err
		default:
			why = most.over(g, both.Stats().SetBits)
		}
	}
	if why == "" {
		return nil
	}
	flags := "--max-rate or --force"
	if why == saturated {
		flags = "--force"
	}
	return usagef("%s: %s\nNothing was changed. Make a larger one (upbloom calc --items N shows sizes),"+
		" or set %s.", printable(a.key), why, flags)
}

// unasked is the most items add sends without reading the filter's state first.
const unasked = 1000

// isFew reports whether add may send n items without reading the filter's state
// first: they are no more than unasked, would not fill an empty one too far, and
// there is no --max-rate.
func isFew(c *cli.Command, g bloom.Geometry, n int) (bool, error) {
	most, err := limitOf(c, g)
	switch {
	case c.IsSet("max-rate"):
		return false, err
	case most.rate == 0:
		return n <= unasked && uint64(n) <= most.items, err
	}
	return n <= unasked && g.FalsePositiveRate(uint64(n)) <= most.rate, err
}

// mayAdd is mayFill for items.
func (a *app) mayAdd(ctx context.Context, c *cli.Command, f *bloom.Filter, items []string) error {
	few, err := isFew(c, f.Geometry(), len(items))
	if few || err != nil {
		return err
	}
	before, err := a.inspect(ctx)
	if err == nil {
		err = sameSize(before, f.Geometry())
	}
	if err != nil {
		return err
	}
	l := bloom.NewLocal(f.Geometry())
	l.AddAll(items)
	return a.mayFill(ctx, c, f, l, before)
}

// A sample keeps those of the distinct items that have the smallest hashes, at
// most unasked of them. From the largest of these hashes it tells about how many
// distinct items there were.
type sample struct {
	hashes []uint64 // ascending
	items  []string // with these hashes
}

func (s *sample) add(item string) {
	hash := xxh3.HashString(item)
	n := len(s.hashes)
	if n == unasked && hash > s.hashes[n-1] {
		return
	}
	i, in := slices.BinarySearch(s.hashes, hash)
	if in {
		return
	}
	if n == unasked {
		s.hashes, s.items = s.hashes[:n-1], s.items[:n-1]
	}
	s.hashes, s.items = slices.Insert(s.hashes, i, hash), slices.Insert(s.items, i, item)
}

// distinct returns about how many distinct items were added. Below unasked it is
// exact, above that the standard error is 3%.
func (s *sample) distinct() uint64 {
	n := len(s.hashes)
	if n < unasked {
		return uint64(n)
	}
	return uint64(float64(n-1) / float64(s.hashes[n-1]) * (1 << 64))
}

// mayTake refuses so many distinct items that would bring the place of a filter
// over the limit. It asks for some of them how many are already in.
func (a *app) mayTake(
	ctx context.Context, o opened, p place, most limit, distinct uint64, some []string,
) error {
	whole := most.asked()
	if p.rateWith(distinct, whole) <= most.rate {
		return nil
	}
	areIn, err := o.ExistsAll(ctx, some)
	if err != nil {
		return err
	}
	missing := 0
	for _, in := range areIn {
		if !in {
			missing++
		}
	}
	more := distinct * uint64(missing) / uint64(len(some))
	rate := p.rateWith(more, whole)
	if rate <= most.rate {
		return nil
	}
	if whole {
		p.where = p.all
	}
	return usagef("%s: the %s would take about %s more, with %s false positives %s, and %s\n"+
		"Nothing was changed. Make a larger one (upbloom create), or set --max-rate or --force.",
		printable(a.key), kindNoun(o.kind()), human.Counted(more, "item"), human.OneIn(rate), p.where,
		most.text())
}
