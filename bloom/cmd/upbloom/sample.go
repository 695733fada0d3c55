package main

import (
	"context"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/upbloom/upbloom/internal/human"
)

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
func (a *app) mayTake(ctx context.Context, o opened, p place, most limit, distinct uint64, some []string) error {
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
		printable(a.key), kindNoun(o.kind), human.Counted(more, "item"), human.OneIn(rate), p.where,
		most.text())
}
