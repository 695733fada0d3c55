package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
)

// plan is the JSON of calc for a plain filter. Month is missing if no flag says
// how the filter is used.
type plan struct {
	Items          uint64  `json:"items"`
	Rate           float64 `json:"rate"`
	Scheme         string  `json:"scheme"`
	Bits           uint64  `json:"bits"`
	Hashes         int     `json:"hashes"`
	Bytes          uint64  `json:"bytes"`
	RedisBytes     uint64  `json:"redisBytes"` // as redisBytes says
	BitsAnItem     float64 `json:"bitsAnItem"`
	AddCommands    float64 `json:"addCommands"`
	ExistsCommands float64 `json:"existsCommands"`
	RateHalf       float64 `json:"rateAtHalf"`
	RateFull       float64 `json:"rateAtCapacity"`
	RateTwice      float64 `json:"rateAtTwice"`
	RateFive       float64 `json:"rateAtFiveTimes"`
	RequestsToLoad int     `json:"requestsToLoad"`
	CommandsToLoad int     `json:"commandsToLoad"` // by a Load that makes the filter
	Month          *month  `json:"month,omitempty"`
}

func (a *app) calcCommand() *cli.Command {
	return &cli.Command{
		Name: "calc", Usage: "work out what a filter costs", ArgsUsage: " ",
		Description: "Prints the length of the filter's string, its false positives, and the commands of a\n" +
			"call. With --adds or --lookups it adds the bill of a month of 30 days, with --price in money.\n" +
			"Without --batch it counts each item as a call of its own: an Add or an Exists.\n" +
			"If --adds is more than the filter is for, and its false positives are then above\n" +
			"--rate, a line says so.\n" +
			"The filter is a plain one without --window, --scalable, --cuckoo or --shards.",
		Flags: slices.Concat([]cli.Flag{
			countFlag("for `N` items, e.g. 5M; required", "items", "n"),
			rateFlag("at a false positive rate of `P`, e.g. 1% or 1/1000", "rate", 0.01, "p"),
			lifetimeFlag("with a TTL of `TIME`, e.g. 7d: the filter is made again after that", "ttl"),
			schemeFlag(),
		}, kindFlags(), usageFlags()),
		Action: func(_ context.Context, c *cli.Command) error {
			if _, err := a.arguments(c, 0, 0); err != nil {
				return err
			}
			if !c.IsSet("items") {
				return usagef("--items is missing: say for how many items, e.g. upbloom calc --items 1M")
			}
			switch kind, err := chosenKind(c); {
			case err != nil:
				return err
			case kind != "":
				p, err := kindPlanOf(c, kind)
				if err != nil {
					return err
				}
				return a.print(p, p.text())
			}
			cfg, err := configOf(c)
			if err != nil {
				return err
			}
			g, err := cfg.Geometry()
			if err != nil {
				return err
			}
			p := planOf(cfg, g)
			b := billOf(c, plainKind, g)
			p.AddCommands, p.ExistsCommands = b.add(1), b.look(1)
			if p.Month, err = monthOf(c, p.Bytes, b); err != nil {
				return err
			}
			if p.Month != nil {
				p.Month.LeftOut.Load = p.CommandsToLoad
			}
			return a.print(p, p.text(g))
		},
	}
}

func planOf(cfg bloom.Config, g bloom.Geometry) plan {
	n, size := cfg.Capacity, g.Bytes(bloom.LayoutHeaded)
	// One for each part of 1 MiB, and the script, which calls two commands for
	// each part and seven more. Of a longer record Load first asks whether the
	// database takes it.
	parts := int((size + 1<<20 - 1) >> 20)
	requests, billed := parts+1, 3*parts+8
	if size > longestRecord {
		requests, billed = requests+1, billed+2
	}
	return plan{
		Items: n, Rate: cfg.FPRate, Scheme: g.Scheme.String(), Bits: g.Bits, Hashes: g.Hashes, Bytes: size,
		RedisBytes: redisBytes(size), BitsAnItem: 8 * float64(size) / float64(n), RateHalf: g.FalsePositiveRate(n / 2),
		RateFull: g.FalsePositiveRate(n), RateTwice: g.FalsePositiveRate(2 * n),
		RateFive: g.FalsePositiveRate(5 * n), RequestsToLoad: requests, CommandsToLoad: billed,
	}
}

func (p plan) text(g bloom.Geometry) string {
	reads, writes := g.Hashes, g.Hashes
	if g.Scheme == bloom.SchemeBlocked {
		reads = g.Hashes / 2
	}
	var b strings.Builder
	fmt.Fprintf(&b, "filter           %v\n", g)
	b.WriteString(lengths(p.Bytes, p.RedisBytes, p.BitsAnItem))
	fmt.Fprintf(&b, "false positives  %s at %s\n", human.OneIn(p.RateFull), human.Counted(p.Items, "item"))
	fmt.Fprintf(&b, "  half full      %s at %s\n", human.OneIn(p.RateHalf), human.Count(p.Items/2))
	fmt.Fprintf(&b, "  over-filled    %s at %s, %s at %s\n", human.OneIn(p.RateTwice), human.Count(2*p.Items),
		human.OneIn(p.RateFive), human.Count(5*p.Items))
	fmt.Fprintf(&b, "Exists           1 command, %s in it\n", human.Counted(uint64(reads), "read"))
	fmt.Fprintf(&b, "Add              %s, %d writes in it\n", commands(p.AddCommands), writes)
	fmt.Fprintf(&b, "Load of all      %s requests, %s commands\n"+
		"                 the database needs room for four times the string meanwhile",
		human.Count(uint64(p.RequestsToLoad)), human.Count(uint64(p.CommandsToLoad)))
	if p.Bytes > longestRecord {
		b.WriteString(spread(p.Items, p.Rate))
	}
	if p.Month != nil {
		b.WriteString("\n" + p.Month.text())
		if p.Month.Asking != nil && p.Bytes > mirrorBytes {
			fmt.Fprintf(&b, "\nMirror           needs a MirrorConfig with MaxBytes %s or more: the default is %s",
				human.Count(p.Bytes), human.Bytes(mirrorBytes))
		}
	}
	return b.String()
}

// redisBytes returns how much memory Redis takes at most for a string of size
// bytes. A string that has grown keeps as much room again, up to 1 MiB, and the
// allocator rounds up by a quarter at most.
func redisBytes(size uint64) uint64 { return (size + min(size, 1<<20)) * 5 / 4 }

// lengths returns the lines about a string of size bytes.
func lengths(size, inRedis uint64, perItem float64) string {
	return fmt.Sprintf("string           %s bytes, %.1f bits an item\n"+
		"  in Redis       up to %s bytes, with the room that it keeps\n", human.Count(size), perItem, human.Count(inRedis))
}

// mirrorBytes is the longest string that a Mirror copies, unless its program
// sets another limit.
const mirrorBytes = 64 << 20
