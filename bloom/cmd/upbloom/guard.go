package main

import (
	"cmp"
	"context"
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

// over says how a filter with more new items is over the limit, or returns "".
func (l limit) over(r room, more uint64) string {
	rate := human.OneIn(r.rate(more))
	switch {
	case l.hashes != 0 && r.rate(more) > l.rate:
		return fmt.Sprintf("the %s would take about %s more, and have %s false positives, and it does not say"+
			" what it was made for: without --max-rate the limit for k=%d is %s", r.noun,
			human.Counted(more, "item"), rate, l.hashes, human.OneIn(l.rate))
	case l.rate != 0 && r.rate(more) > l.rate:
		return fmt.Sprintf("the %s would take about %s more, and have %s false positives, and the limit is %s",
			r.noun, human.Counted(more, "item"), rate, human.OneIn(l.rate))
	case l.rate == 0 && (bloom.Stats{Items: r.items + more, Capacity: l.items}).OverCapacity():
		return fmt.Sprintf("%s would hold about %s, with %s false positives, and it is for %s", r.name,
			human.Counted(r.items+more, "item"), rate, human.Count(l.items))
	}
	return ""
}

// limitOf returns the limit in the flags: --max-rate, or else the number of
// --items. Without both it is the capacity that the filter's string says. If that
// is 0, it goes by the number of hashes: ten times the lowest rate that plain
// filters with so many are made for. That of a blocked one is a power of ten.
func limitOf(c *cli.Command, g bloom.Geometry, capacity uint64) (limit, error) {
	if c.IsSet("max-rate") {
		p := rateOf(c, "max-rate")
		if !(p > 0 && p < 1) {
			return limit{}, usagef("--max-rate is %v: it must be above 0 and below 1", p)
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

// A room is what takes the new items of a filter: of a window its newest pane.
type room struct {
	noun, name string                    // of the filter, and of what takes the items
	items      uint64                    // in it
	rate       func(more uint64) float64 // of the whole filter, after more new items
}

// roomIn returns the room of a filter that is no cuckoo filter.
func roomIn(s bloom.Stats) room {
	g := s.Geometry
	r := room{noun: kindNoun(kindOf(s)), items: s.Items}
	r.name = "the " + r.noun
	switch s.Kind {
	case bloom.KindWindow:
		// If none of the panes is the newest, the next Add clears one.
		r.name, r.items = "the newest pane of the window", 0
		others := 1.0
		for _, pane := range s.Parts {
			if pane.Newest {
				r.items = pane.Items
			} else {
				others *= 1 - pane.LiveFPRate
			}
		}
		r.rate = func(more uint64) float64 { return 1 - (1-g.FalsePositiveRate(r.items+more))*others }
	case bloom.KindScalable:
		r.rate = func(more uint64) float64 { return rateOfLayers(s, more) }
	default: // all shards, or the filter itself
		n := uint64(max(len(s.Parts), 1))
		r.rate = func(more uint64) float64 { return g.FalsePositiveRate((s.Items + more) / n) }
	}
	return r
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
		added := more
		if i >= len(s.Parts)-1 {
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

// unasked is the most items add sends without reading the filter's state first.
const unasked = 1000

// isFew reports whether add may send n items without reading the filter's state
// first: they are no more than unasked, would not fill an empty one too far, and
// there is no --max-rate.
func isFew(c *cli.Command, g bloom.Geometry, n int) (bool, error) {
	most, err := limitOf(c, g, 0)
	empty := roomIn(bloom.Stats{Geometry: g})
	return n <= unasked && !c.IsSet("max-rate") && most.over(empty, uint64(n)) == "", err
}

// mayAdd refuses items that an add would bring a filter over its limit with. If
// there is false, the filter is missing.
func (a *app) mayAdd(ctx context.Context, c *cli.Command, o opened, there bool, items []string) error {
	if f, ok := o.handle.(*bloom.Cuckoo); ok {
		return a.mayAddToCuckoo(ctx, c, f, len(items))
	}
	if few, err := isFew(c, o.Geometry(), len(items)); few || err != nil || c.Bool("force") {
		return err
	}
	s := bloom.Stats{Geometry: o.Geometry()}
	if there {
		var err error
		if s, err = o.stats(ctx); err != nil {
			return err
		}
	}
	var some sample
	for _, item := range items {
		some.add(item)
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(items)))
	return a.mayTake(ctx, c, o, s, uint64(len(distinct)), some.items)
}

// A sample keeps those of the distinct items of an input that have the smallest
// hashes, at most unasked of them. From the largest of these hashes it tells
// about how many distinct items there were.
type sample struct {
	of          string // the input's name
	lines       uint64 // items added
	first, last string
	hashes      []uint64 // ascending
	items       []string // with these hashes
}

func (s *sample) add(item string) {
	if s.lines == 0 {
		s.first = item
	}
	s.lines, s.last = s.lines+1, item
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

// distinct returns about how many distinct items were added, never more than
// lines. Below unasked it is exact, above that the standard error is 3%.
func (s *sample) distinct() uint64 {
	n := len(s.hashes)
	if n < unasked {
		return uint64(n)
	}
	return min(uint64(float64(n-1)/float64(s.hashes[n-1])*(1<<64)), s.lines)
}

// distinctIn is distinct of items that are also in a Local, whose estimate is
// better as long as it is not saturated.
func (s *sample) distinctIn(l *bloom.Local) uint64 {
	if in := l.Stats(); !in.Saturated {
		return in.Items
	}
	return s.distinct()
}

// mayTake refuses so many distinct items that would bring a filter over the
// limit. It asks for some of them how many are already in. Without some, it
// supposes that none is.
func (a *app) mayTake(
	ctx context.Context, c *cli.Command, o opened, s bloom.Stats, distinct uint64, some []string,
) error {
	if c.Bool("force") {
		return nil
	}
	most, err := limitOf(c, s.Geometry, s.Capacity)
	if err != nil {
		return err
	}
	r := roomIn(s)
	why := most.over(r, distinct)
	if why != "" && s.SetBits != 0 && len(some) > 0 {
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
		// Of the items that are not in, LiveFPRate are found all the same.
		share := float64(missing) / float64(len(some)) / max(1-s.LiveFPRate, 1e-9)
		why = most.over(r, uint64(math.Ceil(min(share, 1)*float64(distinct))))
	}
	if why == "" {
		return nil
	}
	advice := "Make a larger one (upbloom calc --items N shows sizes), or set --max-rate or --force."
	switch a.command {
	case "replace":
		advice = "--items N with --yes takes a larger one, and programs that use the old size get errors then;" +
			" --max-rate or --force fills this one."
	case "restore":
		advice = "That is if no item is in both: --force merges all the same, and --replace puts back what was saved."
	}
	return usagef("%s: %s\nNothing was changed. %s", printable(a.key), why, advice)
}
