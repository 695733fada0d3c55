package main

import (
	"fmt"
	"math"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/billing"
	"github.com/upbloom/upbloom/internal/human"
)

// overfill is what becomes of each filter if it is for fewer items than are
// added to it. All of them are taken to be new.
type overfill struct {
	Items uint64  `json:"items"`          // added until it expires, in 30 days, or in a window's span
	Rate  float64 `json:"rate,omitempty"` // then; missing for a cuckoo filter, which refuses them

	in   time.Duration
	each string // of several filters
	size string // that suits them: the flags
}

// overfillOf returns nil if the items of --adds are as many as the filters are
// for.
func overfillOf(c *cli.Command, b *bill) *overfill {
	life, filters := lifetimeOf(c, "ttl"), max(countOf(c, "filters"), 1)
	switch {
	case b.kind == windowKind:
		life = lifetimeOf(c, "window")
	case life == 0:
		life = billing.DaysAMonth * 24 * time.Hour
	}
	perSecond := float64(countOf(c, "adds")) / daysOf(c) / float64(filters) / (24 * time.Hour).Seconds()
	n := uint64(math.Round(min(perSecond*life.Seconds(), 1<<53)))
	o, size := &overfill{Items: n, in: life}, n
	if filters > 1 {
		o.each = " in each"
	}
	most := b.first
	switch b.kind {
	case plainKind:
		o.Rate = b.part.FalsePositiveRate(n)
	case shardedKind:
		o.Rate = rateOfShards(b.part, n, b.shards)
	case windowKind: // at the end of a pane all but the spare one hold their share
		inPane := b.part.FalsePositiveRate(uint64(math.Ceil(perSecond * b.pane.Seconds())))
		o.Rate = 1 - math.Pow(1-inPane, float64(b.areas-1))
	case scalableKind:
		most = b.grown[len(b.grown)-1].Items
		o.Rate = rateOfLayers(b.part, b.first, len(b.grown), max(n, most)-most)
		size = growsTo(n, rateOf(c, "rate"))
	}
	if n <= most || b.kind != cuckooKind && o.Rate <= rateOf(c, "rate") {
		return nil
	}
	o.size = sizeFor(c, b, size)
	return o
}

// sizeFor says what makes a filter of the flags' kind large enough for n items.
func sizeFor(c *cli.Command, b *bill, n uint64) string {
	rate := rateOf(c, "rate")
	sharded := bloom.ShardedConfig{Capacity: n, FPRate: rate, Shards: b.shards}
	var g bloom.Geometry
	var err error
	switch b.kind {
	case plainKind:
		g, err = bloom.Config{Capacity: n, FPRate: rate, Scheme: b.part.Scheme}.Geometry()
	case shardedKind:
		g, err = sharded.Geometry()
	case windowKind:
		g, err = bloom.WindowConfig{
			Capacity: n, FPRate: rate, Span: lifetimeOf(c, "window"), Panes: c.Int("panes"),
		}.Geometry()
	case scalableKind:
		g, err = bloom.ScalableConfig{Capacity: n, FPRate: rate}.Geometry()
	case cuckooKind:
		g, err = bloom.CuckooConfig{Capacity: n, FPRate: rate}.Geometry()
	}
	size := cells(g)
	if b.kind == windowKind {
		size *= b.areas // its panes
	}
	if err == nil && headerBytes+size <= longestRecord {
		return fmt.Sprintf("use --items %d to size it for them", n)
	}
	if b.kind == plainKind || b.kind == shardedKind {
		if shards, err := sharded.MinShards(longestRecord); err == nil {
			return fmt.Sprintf("use --items %d --shards %d to size it for them", n, shards)
		}
	}
	if err == nil {
		return fmt.Sprintf("use --items %d on one of the larger plans, or several filters", n)
	}
	return "they are too many for one such filter, use several"
}

func (o *overfill) text() string {
	what := fmt.Sprintf("%s%s in %s", human.Counted(o.Items, "item"), o.each, human.Exact(o.in))
	text := human.OneIn(o.Rate) + " false positives at " + what + ", if all are new"
	if o.Rate == 0 {
		text = "it may refuse some of " + what + ", unless others are removed"
	}
	return "  over-filled    " + text + ":\n                 " + o.size
}
