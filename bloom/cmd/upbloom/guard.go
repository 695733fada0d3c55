package main

import (
	"cmp"
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
// false positive rate if that is not 0. Without either only a saturated one is
// too full.
type limit struct {
	items  uint64
	rate   float64
	hashes int // of which the rate is ten times the lowest, or 0
}

// text says how high the rate may be.
func (l limit) text() string {
	if l.hashes == 0 {
		return "the limit is " + human.OneIn(l.rate)
	}
	return fmt.Sprintf("it does not say what it was made for: without --max-rate the limit for k=%d is %s", l.hashes,
		human.OneIn(l.rate))
}

// limitOf returns the limit in the flags: --max-rate, or else the number of
// --items. Without both it is the capacity that the filter's string says. If that
// is 0, it goes by the number of hashes: ten times the lowest rate that plain
// filters with so many are made for. That of a blocked one is a power of ten.
func limitOf(c *cli.Command, g bloom.Geometry, capacity uint64) (limit, error) {
	if c.IsSet("max-rate") {
		p := rateOf(c, "max-rate")
		if !(p > 0 && p <= 1) {
			return limit{}, usagef("--max-rate is %v: it must be above 0, and at most 1", p)
		}
		return limit{rate: p}, nil
	}
	if n := cmp.Or(countOf(c, "items"), capacity); n != 0 {
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
	s, err := o.stats(ctx)
	if err != nil {
		return err
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(items)))
	var some []string
	for i := 0; i < len(distinct); i += max(len(distinct)/unasked, 1) {
		some = append(some, distinct[i])
	}
	return a.mayTake(ctx, c, o, s, uint64(len(distinct)), some)
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

// A room is what takes the new items of a window, a scalable or a sharded filter:
// of a window its newest pane.
type room struct {
	name  string
	items uint64                    // in it
	rate  func(more uint64) float64 // of the whole filter, after more new items
}

// roomIn returns the room of a filter.
func roomIn(s bloom.Stats) room {
	g := s.Geometry
	switch s.Kind {
	case bloom.KindWindow:
		// If none of the panes is the newest, the next Add clears one.
		r, others := room{name: "the newest pane of the window"}, 1.0
		for _, pane := range s.Parts {
			if pane.Newest {
				r.items = pane.Items
			} else {
				others *= 1 - pane.LiveFPRate
			}
		}
		r.rate = func(more uint64) float64 { return 1 - (1-g.FalsePositiveRate(r.items+more))*others }
		return r
	case bloom.KindScalable:
		return room{"the scalable filter", s.Items, func(more uint64) float64 { return rateOfLayers(s, more) }}
	}
	n := uint64(len(s.Parts))
	rate := func(more uint64) float64 { return g.FalsePositiveRate((s.Items + more) / n) }
	return room{"the sharded filter", s.Items, rate}
}

// rateOfLayers returns the false positive rate of a scalable filter after more
// new items, which fill its newest layer and then those that it can still have.
// Layer i is for 4^i times as many items as the first.
func rateOfLayers(s bloom.Stats, more uint64) float64 {
	g, full, passes := s.Geometry, s.Parts[0].Capacity, 1.0
	for i := range s.MaxParts {
		items := uint64(0)
		if i < len(s.Parts) {
			items = s.Parts[i].Items
		}
		if added := more; i >= len(s.Parts)-1 {
			if i < s.MaxParts-1 {
				added = min(added, max(full, items)-items)
			}
			items, more = items+added, more-added
		}
		passes *= 1 - g.FalsePositiveRate(items)
		g.Bits, full = 4*g.Bits, 4*full
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
// limit. before is the filter's state, or nil if it is missing. If the overlap of
// l and the filter matters, mayFill downloads the filter and counts. If the filter
// will be replaced, what it holds does not count.
func (a *app) mayFill(ctx context.Context, c *cli.Command, f *bloom.Filter, l *bloom.Local,
	before *bloom.Stats,
) error {
	if c.Bool("force") {
		return nil
	}
	g := f.Geometry()
	there, capacity := uint64(0), uint64(0)
	if before != nil && before.Geometry.Bits == g.Bits {
		capacity = before.Capacity
	}
	if before != nil && a.command != "replace" {
		there = before.SetBits
	}
	most, err := limitOf(c, g, capacity)
	if err != nil {
		return err
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
	return a.tooFull(why)
}

// tooFull is the error of a filter that would be too full for that reason, or nil
// if there is none.
func (a *app) tooFull(why string) error {
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
	most, err := limitOf(c, g, 0)
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

// mayTake refuses so many distinct items that would bring a filter over the
// limit. It asks for some of them how many are already in.
func (a *app) mayTake(
	ctx context.Context, c *cli.Command, o opened, s bloom.Stats, distinct uint64, some []string,
) error {
	most, err := limitOf(c, o.Geometry(), s.Capacity)
	if err != nil || most.hashes != 0 { // it does not say what it is for
		return err
	}
	r := roomIn(s)
	over := func(more uint64) string {
		rate := r.rate(more)
		switch {
		case most.rate != 0 && rate > most.rate:
			return fmt.Sprintf("the %s would take about %s more, and have %s false positives: %s", kindNoun(kindOf(s)),
				human.Counted(more, "item"), human.OneIn(rate), most.text())
		case most.rate == 0 && (bloom.Stats{Items: r.items + more, Capacity: most.items}).OverCapacity():
			return fmt.Sprintf("%s would hold about %s, with %s false positives in all, and it is for %s", r.name,
				human.Counted(r.items+more, "item"), human.OneIn(rate), human.Count(most.items))
		}
		return ""
	}
	if over(distinct) == "" {
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
	why := over(distinct * uint64(missing) / uint64(len(some)))
	if why == "" {
		return nil
	}
	return usagef("%s: %s\nNothing was changed. Make a larger one (upbloom create), or set --max-rate or --force.",
		printable(a.key), why)
}
