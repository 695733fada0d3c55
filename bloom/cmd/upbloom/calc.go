package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/billing"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// The memory of Redis for an item, of an e-mail address: a test asks Redis.
const (
	setBytes = 73
	keyBytes = 113
)

// The ways without a filter.
const (
	setWay  = "set"
	keysWay = "keys with EX"
)

// nearestWay is a plain filter whose look-ups the nearest region answers.
const nearestWay = "filter with ReadsNearest"

// These are more than anybody has, or than one call needs.
const (
	mostBatch   = 10_000
	mostRegions = 20
)

func (a *app) calcCommand() *cli.Command {
	return &cli.Command{
		Name: "calc", Usage: "compare what each type of filter, a set and keys cost", ArgsUsage: " ",
		Flags: []cli.Flag{
			countFlag("for `N` items, e.g. 5M; required", "items", "n"),
			rateFlag("at a false positive rate of `P`, e.g. 1% or 1/1000", "rate", 0.01, "p"),
			countFlag("`N` adds of new items a month", "adds"),
			countFlag("`N` look-ups a month", "lookups"),
			countFlag("`N` items in a call, e.g. 1k", "batch"),
			countFlag("`N` read regions beside the primary", "regions"),
			lifetimeFlag("for Mirrors whose MaxStale is `TIME`, e.g. 1m", "stale"),
			countFlag("in `N` processes, with a Mirror each; 1 without it", "processes"),
		},
		Action: a.taking(0, 0, func(ctx context.Context, c *cli.Command, _ []string) error {
			all := costs{
				Items: countOf(c, "items"), Rate: rateOf(c, "rate"),
				Adds: countOf(c, "adds"), Lookups: countOf(c, "lookups"),
				Batch: 1, Regions: countOf(c, "regions"), Stale: lifetimeOf(c, "stale").Seconds(),
			}
			if c.IsSet("batch") {
				all.Batch = countOf(c, "batch")
			}
			if c.IsSet("stale") {
				all.Processes = 1
			}
			if c.IsSet("processes") {
				all.Processes = countOf(c, "processes")
			}
			mostBatch := min(all.Items, mostBatch)
			switch {
			case !c.IsSet("items"):
				return usagef("--items is missing: say for how many items, e.g. upbloom calc --items 1M")
			case all.Items == 0:
				return noCount()
			case all.Batch < 1 || all.Batch > mostBatch:
				return usagef("--batch is %s: it must be from 1 to %s", human.Count(all.Batch), human.Count(mostBatch))
			case c.IsSet("stale") && !(all.Stale >= 1), c.IsSet("processes") && (all.Processes < 1 || !c.IsSet("stale")):
				return usagef("--stale is the MaxStale of Mirrors, 1s or more, and --processes how many have one, 1 or more")
			case all.Regions > mostRegions:
				return usagef("--regions is %s: it must be at most %d", human.Count(all.Regions), mostRegions)
			case all.Rate < leastRate:
				return usagef("--rate is %v: calc compares rates from %v", all.Rate, leastRate)
			}
			small := bloom.Config{Capacity: min(all.Items, countedItems), FPRate: all.Rate}
			if _, err := small.Geometry(); err != nil {
				return flagError(err)
			}
			if err := all.count(ctx); err != nil {
				return err
			}
			return a.print(all, all.text())
		}),
	}
}

// withoutFlags replaces advice that is for create.
var withoutFlags = strings.NewReplacer("with --panes 1 ", "", ", as --shards does", ", as a sharded filter does",
	", or use more --shards", "", ", raise --rate, or use more --shards", ", or raise --rate")

// A way keeps items. open does not make anything yet.
type way struct {
	name, can string
	open      func(n uint64) (keeper, error)
}

// calcSpan is the Span of the window.
const calcSpan = 24 * time.Hour

// leastRate is the lowest of a plain filter of scheme blocked.
const leastRate = 1e-9

// shardsFor returns how many shards so many items take, at least 2. Their records
// are longer than on most plans only if so many shards are not to be had.
func shardsFor(n uint64, rate float64) int {
	c := bloom.ShardedConfig{Capacity: n, FPRate: rate}
	least, err := c.MinShards(longestRecord)
	if err != nil {
		least, err = c.MinShards(math.MaxUint64)
	}
	if err != nil {
		return mostShards
	}
	return max(least, 2)
}

// waysOf returns the types of this rate, a set and keys.
func waysOf(c *upstash.Client, rate float64, regions uint64) []way {
	var ways []way
	for _, t := range []struct{ kind, can string }{
		{plainKind, "Load, Mirror, save"},
		{windowKind, "forgets old items, Mirror"},
		{scalableKind, "grows"},
		{cuckooKind, "removes items"},
		{shardedKind, "spreads over databases"},
	} {
		ways = append(ways, way{t.kind, t.can, func(n uint64) (keeper, error) {
			return newHandle(c, t.kind, t.kind, spec{
				Config: bloom.Config{Capacity: n, FPRate: rate}, span: calcSpan, shards: shardsFor(n, rate),
			})
		}})
	}
	if regions > 0 {
		nearest := way{nearestWay, "look-ups that may lag", func(n uint64) (keeper, error) {
			return bloom.New(c, "nearest", bloom.Config{Capacity: n, FPRate: rate, ReadsNearest: true})
		}}
		ways = slices.Insert(ways, 1, nearest)
	}
	return append(
		ways,
		way{setWay, "exact, removes items", func(uint64) (keeper, error) {
			return plainRedis{c, func(items []string) []upstash.Command {
				return []upstash.Command{upstash.Cmd("SADD", slices.Insert(items, 0, "set")...)}
			}, "SMISMEMBER", "set"}, nil
		}},
		way{keysWay, "exact, each item expires", func(uint64) (keeper, error) {
			return plainRedis{c, func(items []string) (cmds []upstash.Command) {
				for _, item := range items {
					cmds = append(cmds, upstash.Cmd("SET", item, "1", "NX", "EX", "86400"))
				}
				return cmds
			}, "MGET", ""}, nil
		}},
	)
}

// length returns how many bytes n items take at a rate.
func (w way) length(n uint64, rate float64) (uint64, error) {
	k, err := w.open(n)
	if err != nil {
		return 0, err
	}
	h, ok := k.(handle)
	switch {
	case w.name == setWay:
		return n * setBytes, nil
	case !ok:
		return n * keyBytes, nil
	case w.name == shardedKind:
		return uint64(shardsFor(n, rate)) * h.Geometry().Bytes(bloom.LayoutHeaded), nil
	case w.name == windowKind: // of three panes
		return format.HeaderBytes + 3*(h.Geometry().Bytes(bloom.LayoutHeaded)-format.HeaderBytes), nil
	}
	return h.Geometry().Bytes(bloom.LayoutHeaded), nil
}

// plainRedis keeps items without a filter. Its answers mean nothing.
type plainRedis struct {
	*upstash.Client
	add      func(items []string) []upstash.Command
	ask, set string // the command of a look-up, and its first argument if there is one
}

func (p plainRedis) AddAll(ctx context.Context, items []string) ([]bool, error) {
	_, err := p.Pipeline(ctx, p.add(slices.Clone(items))...)
	return nil, err
}

func (p plainRedis) ExistsAll(ctx context.Context, items []string) ([]bool, error) {
	if p.set != "" {
		items = slices.Insert(slices.Clone(items), 0, p.set)
	}
	_, err := p.Do(ctx, upstash.Cmd(p.ask, items...))
	return nil, err
}

// count makes one of each type, and counts what its calls take.
func (all *costs) count(ctx context.Context) error {
	regions := make([]upstashtest.Region, all.Regions)
	for i := range regions {
		regions[i].Name = strconv.Itoa(i)
	}
	s, err := upstashtest.Start(upstashtest.WithRegions(regions...))
	if err != nil {
		return err
	}
	defer s.Close()
	client := s.Client(upstash.WithTimeout(0))
	defer client.Close()
	for _, w := range waysOf(client, all.Rate, all.Regions) {
		one := cost{Way: w.name, can: w.can}
		if one.Bytes, err = w.length(all.Items, all.Rate); err != nil {
			one.Bytes, one.Impossible = 0, withoutFlags.Replace(flagError(err).Error())
			all.Ways = append(all.Ways, one)
			continue
		}
		if err := all.calls(ctx, s, w, &one); err != nil {
			return err
		}
		all.priced(&one)
		all.Ways = append(all.Ways, one)
	}
	for way, of := range map[string]string{mirrorWay: plainKind, mirrorWindowWay: windowKind} {
		if all.Stale == 0 {
			break
		}
		if of == windowKind && all.Stale >= calcSpan.Seconds() {
			continue // NewMirror refuses it, and the notes say so
		}
		i := slices.IndexFunc(all.Ways, func(one cost) bool { return one.Way == of })
		mirror, err := all.mirror(ctx, client, s, way, all.Ways[i])
		if err != nil {
			return err
		}
		all.Ways = slices.Insert(all.Ways, i+1, mirror)
	}
	for _, one := range all.Ways {
		if one.Impossible == "" && one.least() == all.cheapest() {
			all.Cheapest = append(all.Cheapest, one.Way)
		}
	}
	return nil
}

// calls counts the commands and the bytes of a call that adds new items, of one
// that adds them again, and of one that looks them up.
func (all *costs) calls(ctx context.Context, s *upstashtest.Server, w way, one *cost) error {
	h, err := w.open(max(min(all.Items, countedItems), 4*all.Batch))
	if err != nil {
		return flagError(err)
	}
	if f, ok := h.(handle); ok {
		if _, err := f.Create(ctx); err != nil {
			return err
		}
	}
	items, warm := make([]string, all.Batch), make([]string, all.Batch)
	for i := range items {
		items[i] = fmt.Sprintf("user-%07d@example.com", i)
		warm[i] = "first-" + items[i]
	}
	var taken [4]upstashtest.Stats
	for i, call := range []func() ([]bool, error){
		func() ([]bool, error) { return h.AddAll(ctx, warm) }, // which also learns the time, or sends a script
		func() ([]bool, error) { return h.AddAll(ctx, items) },
		func() ([]bool, error) { return h.AddAll(ctx, items) },
		func() ([]bool, error) { return h.ExistsAll(ctx, items) },
	} {
		s.ResetStats()
		if _, err := call(); err != nil {
			return err
		}
		taken[i] = s.Stats()
	}
	one.AddCommands, one.AgainCommands, one.LookupCommands = taken[1].Billed, taken[2].Billed, taken[3].Billed
	adds, looks := float64(all.Adds)/float64(all.Batch), float64(all.Lookups)/float64(all.Batch)
	one.Commands = math.Ceil(adds*float64(one.AddCommands) + looks*float64(one.LookupCommands))
	bytes := func(s upstashtest.Stats) float64 { return float64(s.BytesIn + s.BytesOut + headers*s.Requests) }
	one.addBytes = bytes(taken[1])
	one.TrafficGB = (adds*one.addBytes + looks*bytes(taken[3])) / 1e9
	return nil
}

func (all *costs) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s at %s; %s of new items and %s a month", human.Counted(all.Items, "item"),
		human.OneIn(all.Rate), human.Counted(all.Adds, "add"), human.Counted(all.Lookups, "look-up"))
	call := ""
	if all.Batch > 1 {
		call = " " + human.Count(all.Batch)
		b.WriteString("," + call + " in a call")
	}
	if all.Regions > 0 {
		b.WriteString(", " + human.Counted(all.Regions, "read region"))
	}
	b.WriteString("\n\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "TYPE\tMEMORY\tADD%s\tLOOK UP%[1]s\tCOMMANDS\tTRAFFIC\tPAY AS YOU GO\tFIXED PLAN\tGOOD FOR\n", call)
	var notes, long []string
	for _, one := range all.Ways {
		if one.Impossible != "" {
			fmt.Fprintf(w, "%s\tnone\t-\t-\t-\t-\t-\t-\t%s\n", one.Way, one.can)
			if one.mirrorOf != "" {
				continue
			}
			notes = append(notes, "There is no such "+kindNoun(one.Way)+": "+one.Impossible+".")
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.1f GB\t$%s\t%s\t%s\n", one.Way, human.Bytes(one.Bytes),
			human.Count(uint64(one.AddCommands)), human.Count(uint64(one.LookupCommands)),
			human.Count(uint64(min(one.Commands, 1<<53))), one.TrafficGB, dollars(one.Money), one.fixed(), one.can)
		if one.mirrorOf != "" { // whose row says the rest
			continue
		}
		if one.AgainCommands != one.AddCommands {
			notes = append(notes, fmt.Sprintf("To add to a %s filter what is in: %s.", one.Way,
				human.Counted(uint64(one.AgainCommands), "command")))
		}
		record := one.Bytes
		if one.Way == shardedKind {
			record /= uint64(shardsFor(all.Items, all.Rate))
		}
		if record > longestRecord && one.Way != keysWay {
			long = append(long, one.Way)
		}
	}
	_ = w.Flush()
	if len(long) > 0 {
		notes = append(notes, "A record above 100 MB needs one of the larger plans: "+strings.Join(long, ", ")+".")
	}
	if slices.Contains(long, scalableKind) {
		notes = append(notes, "A scalable filter stops growing at 100 MB, the default of MaxBytes. If the plan takes a\n"+
			"larger one, a program can raise MaxBytes in its ScalableConfig.")
	}
	if all.Batch == 1 {
		notes = append(notes, "A call with 1,000 items is 1 command of a filter, a window or a set too: --batch 1k.")
	}
	if all.Regions > 0 {
		notes = append(notes, "With ReadsNearest a look-up of a filter or a shard is 1 command of the nearest region, and may lag.")
	}
	nearlyFull := "takes 1 or 2 commands more."
	if all.Batch > 1 {
		nearlyFull = "takes up to 5 commands more for each 500 items."
	}
	notes = append(notes, "An add to a cuckoo filter that is nearly full "+nearlyFull,
		"The memory of a scalable filter is that of one made for so many items. One that grew to them\n"+
			"from a smaller one takes as much if its layers are exactly full, and else more.")
	notes = append(notes, all.plansNotes()...)
	return b.String() + "\n" + all.verdict() + "\n\n" + strings.Join(notes, "\n")
}

// verdict names the cheapest ways.
func (all *costs) verdict() string {
	if all.Adds+all.Lookups == 0 {
		return "What a month costs depends on --adds and --lookups."
	}
	exact, by := "", ", pay as you go"
	for _, one := range all.Ways {
		cheapest := slices.Contains(all.Cheapest, one.Way)
		switch {
		case !cheapest:
		case one.Way == keysWay && exact != "":
			exact = "a set and keys are"
		case one.Way == keysWay:
			exact = "keys are"
		case one.Way == setWay:
			exact = "a set is"
		}
		if cheapest && one.least() < one.Money {
			by = " by the fixed plan of " + one.FixedPlan
		}
	}
	text := fmt.Sprintf("Cheapest in this table, at the prices of %s: %s, $%s%s.", billing.FixedOf,
		strings.Join(all.Cheapest, ", "), dollars(all.cheapest()), by)
	if exact != "" {
		text += " Of these " + exact + " never wrong."
	}
	if all.Stale == 0 && all.Lookups > 0 {
		text += " A Mirror, which may cost less, is not in it: --stale 1m --processes N has a row for it."
	}
	return text
}

// cheapest is what the cheapest ways cost.
func (all *costs) cheapest() float64 {
	least := math.Inf(1)
	for _, one := range all.Ways {
		if one.Impossible == "" {
			least = min(least, one.least())
		}
	}
	return least
}
