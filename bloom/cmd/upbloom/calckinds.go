package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
)

// kindPlan is what calc prints of another kind of filter with --json.
type kindPlan struct {
	Kind       string  `json:"kind"`
	Items      uint64  `json:"items"`
	Rate       float64 `json:"rate"`
	Parts      int     `json:"parts"` // panes or shards, otherwise 1
	Bytes      uint64  `json:"bytes"` // of all strings together
	BitsAnItem float64 `json:"bitsAnItem"`
	// AddCommands is how many commands an Add is billed as while the filter has
	// room, ExistsCommands the same for a look-up.
	AddCommands    int     `json:"addCommands"`
	ExistsCommands int     `json:"existsCommands"`
	Layers         []grown `json:"layers,omitempty"` // of a scalable filter, as it grows
	Month          *month  `json:"month,omitempty"`

	part bloom.Geometry
	span time.Duration // of a window
}

// grown is the state of a scalable filter after some of its layers were added.
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

// commands returns "1 command", "2 commands" and so on.
func commands(n int) string { return counted(uint64(n), "command") }

// kindPlanOf works out the plan for a kind that a flag chooses.
func kindPlanOf(c *cli.Command, kind string) (kindPlan, error) {
	cfg, err := sizeConfig(c)
	if err != nil {
		return kindPlan{}, err
	}
	p := kindPlan{
		Kind: kind, Items: cfg.Capacity, Rate: cfg.FPRate, Parts: 1, AddCommands: 1, ExistsCommands: 1,
	}
	switch kind {
	case "window":
		w := bloom.WindowConfig{
			Capacity: cfg.Capacity, FPRate: cfg.FPRate, Span: lifetimeOf(c, "window"), Panes: c.Int("panes"),
		}
		p.part, err = w.Geometry()
		p.Parts, p.span = max(w.Panes, 1)+2, w.Span
	case "scalable":
		p.part, err = bloom.ScalableConfig{Capacity: cfg.Capacity, FPRate: cfg.FPRate}.Geometry()
	case "cuckoo":
		p.part, err = bloom.CuckooConfig{Capacity: cfg.Capacity, FPRate: cfg.FPRate}.Geometry()
		p.AddCommands = 3
	case "shards":
		s := bloom.ShardedConfig{Capacity: cfg.Capacity, FPRate: cfg.FPRate, Shards: c.Int("shards")}
		p.Kind, p.Parts, p.AddCommands = shardedKind, s.Shards, 3
		p.part, err = s.Geometry()
	}
	if err != nil {
		return p, flagError(err)
	}
	p.Bytes = headerBytes + uint64(p.Parts)*cells(p.part)
	if p.Kind == shardedKind {
		p.Bytes = uint64(p.Parts) * p.part.Bytes(bloom.LayoutHeaded)
	}
	if kind == "scalable" {
		p.Layers = grow(max(cfg.Capacity, 1000), p.part)
	}
	p.AddCommands = addCommands(c, p.AddCommands)
	p.BitsAnItem = 8 * float64(p.Bytes) / float64(p.Items)
	p.Month, err = monthOf(c, p.Bytes, p.AddCommands)
	if c.IsSet("mirror") {
		err = usagef("--mirror is for a plain filter: it has no effect on a %s", kindNoun(p.Kind))
	}
	return p, err
}

// grow returns the states of a scalable filter with one layer, with two, and so
// on. Each layer is four times as long as the one before.
func grow(items uint64, first bloom.Geometry) (list []grown) {
	layer := first
	at := grown{Bytes: headerBytes}
	for range 5 {
		at.Items, at.Bytes = at.Items+items, at.Bytes+cells(layer)
		if len(list) > 0 && at.Bytes > longestRecord {
			break
		}
		list = append(list, at)
		items, layer.Bits = 4*items, 4*layer.Bits
	}
	return list
}

func (p kindPlan) text() string {
	var b strings.Builder
	what := map[string]string{
		windowKind: fmt.Sprintf("%d panes, each ", p.Parts), shardedKind: fmt.Sprintf("%d shards, each ", p.Parts),
		scalableKind: "first layer ",
	}[p.Kind]
	fmt.Fprintf(&b, "%-15s  %s%v\n", p.Kind, what, p.part)
	if p.Kind == windowKind {
		longest := p.span / time.Duration(p.Parts-2) * time.Duration(p.Parts)
		fmt.Fprintf(&b, "keeps            an item for %s after its last Add, and for %s at most\n",
			human.Span(p.span), human.Span(longest))
	}
	fmt.Fprintf(&b, "memory           %s bytes, %.1f bits an item\n", human.Count(p.Bytes), p.BitsAnItem)
	for i, g := range p.Layers {
		fmt.Fprintf(&b, "  %-13s  %s bytes, for %s items\n", counted(uint64(i+1), "layer"), human.Count(g.Bytes),
			human.Count(g.Items))
	}
	if most := len(p.Layers); most > 0 {
		p.Items = p.Layers[most-1].Items
	}
	fmt.Fprintf(&b, "false positives  %s at %s items\n", human.OneIn(p.Rate), human.Count(p.Items))
	switch p.Kind {
	case windowKind:
		fmt.Fprintf(&b, "Exists           1 command\nAdd              %s; a few more for each pane's turn",
			commands(p.AddCommands))
	case cuckooKind:
		b.WriteString("Exists           1 command\n" +
			"Add, Remove      3 commands each, one item or 500; more when it is nearly full")
	case shardedKind:
		b.WriteString("Exists           1 command, a batch one for each shard that has an item of it\n" +
			"Add              3 commands, a batch 3 for each shard")
	default:
		fmt.Fprintf(&b, "Exists           1 command\nAdd              %s; now and then it looks whether it must"+
			" grow", commands(p.AddCommands))
	}
	if p.Kind != shardedKind && p.Bytes > longestRecord {
		b.WriteString("\nplan             a record above 100 MB needs one of the larger plans")
	}
	if p.Month != nil {
		b.WriteString("\n" + p.Month.text())
	}
	return b.String()
}
