package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
)

// kindPlan is the JSON of calc for another kind of filter.
type kindPlan struct {
	Kind       string  `json:"kind"`
	Items      uint64  `json:"items"`
	Rate       float64 `json:"rate"`
	Parts      int     `json:"parts"`      // panes or shards, otherwise 1
	Bytes      uint64  `json:"bytes"`      // of all strings together
	RedisBytes uint64  `json:"redisBytes"` // as in plan
	BitsAnItem float64 `json:"bitsAnItem"`
	// AddCommands is how many commands an Add is billed as while the filter has
	// room, on average, and ExistsCommands the same for a look-up.
	AddCommands    float64 `json:"addCommands"`
	ExistsCommands float64 `json:"existsCommands"`
	RateTwice      float64 `json:"rateAtTwice,omitempty"` // missing for a cuckoo filter
	RateFive       float64 `json:"rateAtFiveTimes,omitempty"`
	Layers         []grown `json:"layers,omitempty"` // of a scalable filter, as it grows
	Month          *month  `json:"month,omitempty"`

	part   bloom.Geometry
	wanted float64       // the rate in the flags
	span   time.Duration // of a window
	anew   bool          // each call has a client of its own
}

// grown is the state of a scalable filter with some of its layers.
type grown struct {
	Items uint64 `json:"items"` // at the false positive rate
	Bytes uint64 `json:"bytes"`
}

// cells returns the length in bytes of a string of this geometry, without its
// header.
func cells(g bloom.Geometry) uint64 { return g.Bytes(bloom.LayoutHeaded) - headerBytes }

// headerBytes is the length of a header.
const headerBytes = 24

// longestRecord is the record limit of most plans, in bytes. A scalable filter
// stops growing there, unless its program sets another limit.
const longestRecord = 100_000_000

// commands returns "1 command", "2 commands", "5.8 commands" and so on.
func commands(n float64) string {
	if whole := math.Round(n); math.Abs(n-whole) < 0.05 {
		return human.Counted(uint64(whole), "command")
	}
	return fmt.Sprintf("%.1f commands", n)
}

// kindPlanOf works out the plan for the kind that a flag chooses.
func kindPlanOf(c *cli.Command, kind string) (kindPlan, error) {
	cfg, err := sizeConfig(c)
	if err != nil {
		return kindPlan{}, err
	}
	must := c.Bool("must-exist")
	p := kindPlan{Kind: kind, Items: cfg.Capacity, wanted: cfg.FPRate, Parts: 1}
	switch kind {
	case "window":
		w := bloom.WindowConfig{
			Capacity: cfg.Capacity, FPRate: cfg.FPRate, Span: lifetimeOf(c, "window"), Panes: c.Int("panes"),
			ExpireIdle: c.Bool("expire-idle"), MustExist: must,
		}
		p.part, err = w.Geometry()
		p.Parts, p.span = max(w.Panes, 1)+2, w.Span
	case "scalable":
		p.part, err = bloom.ScalableConfig{Capacity: cfg.Capacity, FPRate: cfg.FPRate}.Geometry()
	case "cuckoo":
		p.part, err = bloom.CuckooConfig{Capacity: cfg.Capacity, FPRate: cfg.FPRate}.Geometry()
	case "shards":
		s := bloom.ShardedConfig{Capacity: cfg.Capacity, FPRate: cfg.FPRate, Shards: c.Int("shards")}
		p.Kind, p.Parts = shardedKind, s.Shards
		p.part, err = s.Geometry()
		if must && err == nil {
			err = usagef("--must-exist has no effect with --shards, whose writes create nothing: leave it out")
		}
	}
	if err != nil {
		return p, flagError(err)
	}
	p.Bytes = headerBytes + uint64(p.Parts)*cells(p.part)
	p.RedisBytes = redisBytes(p.Bytes)
	if p.Kind == shardedKind {
		shard, n := p.part.Bytes(bloom.LayoutHeaded), uint64(p.Parts)
		p.Bytes, p.RedisBytes = n*shard, n*redisBytes(shard)
	}
	if kind == "scalable" {
		p.Layers = grow(cfg.Capacity, p.part)
	}
	p.BitsAnItem = 8 * float64(p.Bytes) / float64(p.Items)
	if c.IsSet("mirror") {
		return p, usagef("--mirror is for a plain filter: it has no effect on a %s", kindNoun(p.Kind))
	}
	b := billOf(c, p.Kind, p.part)
	switch p.Kind {
	case windowKind:
		b.areas, b.idle = uint64(p.Parts), c.Bool("expire-idle")
		b.pane = paneSpan(p.span, p.Parts-2)
	case scalableKind:
		b.first, b.grown, b.areas = max(cfg.Capacity, leastLayer), p.Layers, layersIn(p.part)
	case shardedKind:
		b.shards, b.must = p.Parts, true
	}
	p.AddCommands, p.ExistsCommands, p.anew = b.add(1), b.look(1), b.anew
	p.Rate, p.RateTwice, p.RateFive = p.rateAt(1), p.rateAt(2), p.rateAt(5)
	if p.Kind == cuckooKind {
		p.Rate = p.part.FalsePositiveRate(p.Items)
	}
	p.Month, err = monthOf(c, p.Bytes, b)
	return p, err
}

// paneSpan is how long each of the panes is the newest one: whole seconds, of
// the span and 4 s for the error of clocks.
func paneSpan(span time.Duration, panes int) time.Duration {
	share := (span + 4*time.Second) / time.Duration(panes)
	return (share + time.Second - 1).Truncate(time.Second)
}

// most is the number of items the filter is for, of a scalable one all layers.
func (p *kindPlan) most() uint64 {
	if n := len(p.Layers); n > 0 {
		return p.Layers[n-1].Items
	}
	return p.Items
}

// rateAt returns the false positive rate at so many times the items the filter
// is for, or 0 for a cuckoo filter, which refuses them.
func (p *kindPlan) rateAt(times uint64) float64 {
	n := p.most()
	switch p.Kind {
	case windowKind: // they come in one go, and two such panes count
		passes := 1 - p.part.FalsePositiveRate(times*n)
		return 1 - passes*passes
	case scalableKind:
		return rateOfLayers(p.part, max(p.Items, leastLayer), len(p.Layers), (times-1)*n)
	case shardedKind:
		return rateOfShards(p.part, times*n, p.Parts)
	}
	return 0
}

// rateOfShards returns the false positive rate of items that chance spreads over
// shards. If these are small, the fuller ones have most of the false positives.
func rateOfShards(part bloom.Geometry, items uint64, shards int) float64 {
	n := uint64(shards)
	if items/n > 1000 {
		return part.FalsePositiveRate(items / n)
	}
	return (&bill{shards: shards}).inShards(items, part.FalsePositiveRate) / float64(shards)
}

// A scalable filter has mostLayers at most, and the first of them is for
// leastLayer items at least.
const (
	mostLayers = 5
	leastLayer = 1000
)

// layersIn returns how many layers a Redis string has room for.
func layersIn(first bloom.Geometry) (n uint64) {
	bits := uint64(8 * headerBytes)
	for layer := first; n < mostLayers && bits+8*cells(layer) <= 1<<32; layer.Bits *= 4 {
		n, bits = n+1, bits+8*cells(layer)
	}
	return n
}

// largerPlan is what calc says of a record that most plans do not allow.
const largerPlan = "\nplan             a record above 100 MB needs one of the larger plans"

// spread is largerPlan for items that shards can take, and their least number.
func spread(items uint64, rate float64) string {
	n, err := bloom.ShardedConfig{Capacity: items, FPRate: rate}.MinShards(longestRecord)
	if err != nil {
		return largerPlan
	}
	return fmt.Sprintf("%s, or --shards %d", largerPlan, n)
}

func (p kindPlan) text() string {
	var b strings.Builder
	what := map[string]string{
		windowKind:   human.Counted(uint64(p.Parts), "pane") + ", each ",
		shardedKind:  human.Counted(uint64(p.Parts), "shard") + " of ",
		scalableKind: "first layer ",
	}[p.Kind]
	fmt.Fprintf(&b, "%-15s  %s%v\n", p.Kind, what, p.part)
	if p.Kind == windowKind {
		longest := paneSpan(p.span, p.Parts-2) * time.Duration(p.Parts)
		fmt.Fprintf(&b, "keeps            an item for %s after its last Add, and for %s at most\n",
			human.Exact(p.span), human.Exact(longest))
	}
	b.WriteString(lengths(p.Bytes, p.RedisBytes, p.BitsAnItem))
	for i, g := range p.Layers {
		fmt.Fprintf(&b, "  %-13s  %s bytes, for %s items\n", human.Counted(uint64(i+1), "layer"), human.Count(g.Bytes),
			human.Count(g.Items))
	}
	if p.Kind == scalableKind && p.Items < leastLayer {
		fmt.Fprintf(&b, "  --items below %s count as %[1]s\n", human.Count(leastLayer))
	}
	if note := endOfGrowth(p.Layers); note != "" {
		b.WriteString("  " + note + "\n")
	}
	n, span := p.most(), ""
	if p.Kind == windowKind {
		span = " in " + human.Exact(p.span)
	}
	fmt.Fprintf(&b, "false positives  %s at %s%s\n", human.OneIn(p.Rate), human.Counted(n, "item"), span)
	if p.Kind == cuckooKind {
		b.WriteString("  over-filled    never: an Add to a full filter is an error\n")
	} else {
		fmt.Fprintf(&b, "  over-filled    %s at %s, %s at %s\n", human.OneIn(p.RateTwice), human.Count(2*n),
			human.OneIn(p.RateFive), human.Count(5*n))
	}
	switch p.Kind {
	case windowKind:
		how := "%s; a few more for each pane's turn, and each client" +
			"\n                 asks for the time, 1 command in ten minutes"
		if p.anew {
			how = "%s, one for the time; a few more for each pane's turn"
		}
		fmt.Fprintf(&b, "Exists           1 command\nAdd              "+how, commands(p.AddCommands))
	case cuckooKind:
		fmt.Fprintf(&b, "Exists           1 command\nAdd, Remove      3 commands each, one item or up to 500, until it"+
			" is 40%% full;\n                 then more, and more for many items: %s on average"+
			"\n                 for single items while it fills up", commands(p.AddCommands))
	case shardedKind:
		b.WriteString("Exists           1 command, a batch one for each shard that has an item of it\n" +
			"Add              3 commands, a batch 3 for each shard and one more for each further 1,000 bits")
	default:
		fmt.Fprintf(&b, "Exists           1 command\nAdd              %s", commands(p.AddCommands))
		if len(p.Layers) > 1 { // else no Add looks
			b.WriteString(" on average in the first layer, with its looks\n" +
				"                 whether it must grow; later layers look less often")
		}
	}
	switch {
	case p.Kind == shardedKind && p.part.Bytes(bloom.LayoutHeaded) > longestRecord:
		b.WriteString(spread(p.Items, p.wanted))
	case p.Kind != shardedKind && p.Bytes > longestRecord:
		b.WriteString(largerPlan)
	}
	if p.Month != nil {
		b.WriteString("\n" + p.Month.text())
	}
	return b.String()
}
