package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
)

// An overfilled filter cannot be emptied again, and an emptied one answers "no"
// to items it had. The checks below run before anything is sent.

// fillFlags are the flags of commands that may fill a filter too far.
func fillFlags() []cli.Flag {
	return []cli.Flag{
		rateFlag("refuse what would bring the false positive rate above `P`, e.g. 5%; that of a filter of scheme fnv1a"+
			" is higher than computed", "max-rate", 0),
		&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "fill the filter however far"},
	}
}

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
	if o.place == nil {
		return a.mayAddToCuckoo(ctx, c, o.handle.(*bloom.Cuckoo), len(items))
	}
	if few, err := isFew(c, o.Geometry(), len(items)); few || err != nil || c.Bool("force") {
		return err
	}
	p, err := o.place(ctx)
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

	others float64       // the false positive rate of a window's other panes
	layers []bloom.Stats // of a scalable filter
	most   int           // how many layers that can have
	all    string        // the parts of the whole filter
}

// rateWith returns the false positive rate of the place after more new items,
// and if whole is true, that of the filter.
func (p place) rateWith(more uint64, whole bool) float64 {
	if whole && p.layers != nil {
		return rateOfGrown(p.layers, p.most, more)
	}
	rate := p.geometry.FalsePositiveRate(p.items + more/p.share)
	if whole {
		rate = 1 - (1-rate)*(1-p.others)
	}
	return rate
}

// rateOfGrown returns the false positive rate of a scalable filter after more new
// items, which fill its newest layer and then those that it can still have.
func rateOfGrown(layers []bloom.Stats, most int, more uint64) float64 {
	// A handle without a Config takes a layer to be full at the lowest rate for
	// its hashes.
	g, passes, room := layers[0].Geometry, 1.0, uint64(0)
	const sample = 1_000_000
	full, err := bloom.Config{Capacity: sample, FPRate: math.Pow(10, -float64(g.Hashes)/2)}.Geometry()
	if err == nil {
		room = uint64(float64(g.Bits) / float64(full.Bits) * sample)
	}
	for i := range max(most, len(layers)) {
		items, last := uint64(0), i >= max(most, len(layers))-1
		if i < len(layers) {
			items = layers[i].Items
		}
		if added := more; i >= len(layers)-1 {
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

// inspect returns the state of the plain filter at the command's key, or nil if
// there is none. Another kind of filter is an error.
func (a *app) inspect(ctx context.Context) (*bloom.Stats, error) {
	client, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	s, err := bloom.Inspect(ctx, client, a.key)
	if err != nil {
		if err = a.plainOnly(ctx, err); errors.Is(err, bloom.ErrNotFound) && !isHeadless(err) {
			err = nil
		}
		return nil, err
	}
	if kind := kindOf(s.Kind, s.Geometry); kind != plainKind {
		return nil, a.refuse(kind)
	}
	return &s, nil
}

// sameSize returns an error if the filter at the key has another geometry than
// g.
func sameSize(before *bloom.Stats, g bloom.Geometry) error {
	if before == nil {
		return nil
	}
	g.Seed = 0
	if before.Geometry == g {
		return nil
	}
	return otherFilter(before.Geometry, g)
}

// otherFilter is the error of a command that found a filter of another size
// before it changed anything.
func otherFilter(got, want bloom.Geometry) error {
	return advised{
		&bloom.MismatchError{Want: want, Got: got, WantKind: bloom.KindFilter, GotKind: bloom.KindFilter},
		fmt.Sprintf("another filter is at this key, %v, and not %v, and nothing was changed: use another key,"+
			" or leave --items out to use the filter as it is", got, want),
	}
}
