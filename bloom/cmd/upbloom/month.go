package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/internal/billing"
	"github.com/upbloom/upbloom/internal/human"
)

// month is what some filters cost in a month. Money is missing without --price,
// and Asking, the month without Mirrors, without --mirror.
type month struct {
	billing.Month
	Adds    *called   `json:"adds,omitempty"`
	Lookups *called   `json:"lookups,omitempty"`
	Turns   float64   `json:"turns,omitempty"`  // commands with which windows clear old panes
	Times   float64   `json:"times,omitempty"`  // and ask for the time
	Made    float64   `json:"made,omitempty"`   // and with which filters are made each time they have expired
	Layers  int       `json:"layers,omitempty"` // of a scalable filter, at the end of the month or its life
	Over    *overfill `json:"overfilled,omitempty"`
	// LayersAtMost and StoredAtMost are set if these may be more.
	LayersAtMost int            `json:"layersAtMost,omitempty"`
	StoredAtMost float64        `json:"storedGBAtMost,omitempty"`
	LeftOut      uncounted      `json:"notCounted"`
	Money        *billing.Money `json:"money,omitempty"`
	Asking       *month         `json:"withoutMirrors,omitempty"`
}

// called is how often a call is made in a month, and what each is billed.
type called struct {
	Calls    float64 `json:"calls"`
	Items    uint64  `json:"items"` // in each
	Commands float64 `json:"commands"`
}

// text names the call, of one item or of many.
func (u called) text(one, many string) string {
	if u.Items == 1 {
		return fmt.Sprintf("%s %s, %s each", rounded(u.Calls), one, commands(u.Commands))
	}
	return fmt.Sprintf("%s %s of %s, %s each", rounded(u.Calls), many, human.Counted(u.Items, "item"),
		commands(u.Commands))
}

func usageFlags() []cli.Flag {
	return []cli.Flag{
		countFlag("`N` items added a day, in all filters together", "adds"),
		countFlag("`N` items looked up a day, in all filters together", "lookups"),
		countFlag("`N` items in each AddAll and ExistsAll; without it each item is a call", "batch"),
		countFlag("`N` items in each ExistsAll, if it is not that of --batch", "lookup-batch"),
		&cli.BoolFlag{
			Name: "new-client", Usage: "each call makes a new client and a new handle, as in a Worker",
		},
		&cli.BoolFlag{Name: "monthly", Usage: "--adds and --lookups are those of 30 days"},
		&cli.BoolFlag{Name: "must-exist", Usage: "with MustExist, an Add is three commands, and a large AddAll more"},
		countFlag("`N` such filters; the default is 1", "filters"),
		lifetimeFlag("answer look-ups by a Mirror whose \"no\" is at most `TIME` old (its MaxStale)", "mirror"),
		&cli.BoolFlag{Name: "ticker", Usage: "a ticker refreshes each Mirror twice in the TIME of --mirror, ahead of the calls, asked or not"},
		countFlag("`N` processes with a Mirror of each filter, each started once, or with a window;"+
			" the default is 1", "processes"),
		&cli.BoolFlag{Name: "price", Usage: "in money, at the pay-as-you-go prices of " + billing.PricesOf},
	}
}

// asksForMonth reports whether a flag asks for the cost of a month. It refuses
// flags without effect.
func asksForMonth(c *cli.Command, b *bill) (asked bool, _ error) {
	for _, name := range []string{
		"adds", "lookups", "monthly", "filters", "mirror", "ticker", "price", "processes", "batch", "lookup-batch",
	} {
		asked = asked || c.IsSet(name)
	}
	stale := lifetimeOf(c, "mirror")
	switch {
	case c.IsSet("ttl") && !c.IsSet("adds"):
		return false, usagef("--ttl is for the sum of a month: it has no effect without --adds")
	case !asked:
		return false, nil
	case c.IsSet("mirror") && stale <= 0:
		return false, usagef("--mirror is %v: use the MaxStale of the Mirror, above 0", stale)
	case stale > 0 && !c.IsSet("lookups") && !c.Bool("ticker"):
		return false, usagef("--mirror without --lookups costs nothing: say how many look-ups there are, or set" +
			" --ticker")
	case stale == 0 && c.Bool("ticker"):
		return false, usagef("--ticker refreshes Mirrors: it has no effect without --mirror")
	case c.IsSet("processes") && stale == 0 && (b.kind != windowKind || b.anew):
		return false, usagef("--processes is for Mirrors and windows: it has no effect without --mirror or --window," +
			" or with --new-client")
	}
	for _, name := range []string{"filters", "processes", "batch", "lookup-batch"} {
		if c.IsSet(name) && countOf(c, name) == 0 {
			return false, usagef("--%s is 0: use at least 1", name)
		}
	}
	return true, nil
}

// monthOf returns the cost of a month for filters of this length, or nil if no
// flag asks for it.
func monthOf(c *cli.Command, bytes uint64, b *bill) (*month, error) {
	if asked, err := asksForMonth(c, b); !asked || err != nil {
		return nil, err
	}
	filters, ttl := max(countOf(c, "filters"), 1), lifetimeOf(c, "ttl")
	life := billing.DaysAMonth * 24 * time.Hour
	if ttl > 0 {
		life = min(life, ttl)
	}
	days := daysOf(c)
	b.items = float64(countOf(c, "adds")) / days * life.Hours() / 24 / float64(filters)
	layers := b.layers()
	if layers > 0 {
		bytes = b.grown[layers-1].Bytes
	}
	adds, lookups := flaggedCalls(c, b)
	turns, asks := b.turns(filters, adds.Calls/days), adds.Calls/days
	if lookups.Items > 1 {
		asks += lookups.Calls / days
	}
	made, left := b.making(filters, ttl, adds.Calls/days)
	times := b.times(countOf(c, "processes"), asks)
	use := billing.Use{
		Bytes: bytes, Filters: filters,
		Adds:    adds.Calls*adds.Commands/days + turns + times + made,
		Lookups: lookups.Calls * lookups.Commands / days, Changes: adds.Calls / days,
	}
	priced := func() *month {
		m := &month{
			Month: use.Month(), Turns: billing.DaysAMonth * turns, Times: billing.DaysAMonth * times,
			Made: billing.DaysAMonth * made, LeftOut: left, Layers: layers, Over: overfillOf(c, b),
		}
		if most := b.layersAtMost(max(countOf(c, "batch"), 1)); most > layers {
			m.LayersAtMost, m.StoredAtMost = most, float64(filters*b.grown[most-1].Bytes)/1e9
		}
		if c.Bool("price") {
			money := m.Month.Money(billing.PayAsYouGo())
			m.Money = &money
		}
		return m
	}
	asking := priced()
	use.MaxStale, use.Copies, use.Ticker = lifetimeOf(c, "mirror"), countOf(c, "processes"), c.Bool("ticker")
	m := priced()
	if use.MaxStale > 0 {
		m.Asking = asking
	}
	return m, m.setCalls(c, adds, lookups)
}

// daysOf returns in how many days the items of --adds and --lookups come, and
// the calls of flaggedCalls.
func daysOf(c *cli.Command) float64 {
	if c.Bool("monthly") {
		return billing.DaysAMonth
	}
	return 1
}

// flaggedCalls returns the calls that the flags ask for.
func flaggedCalls(c *cli.Command, b *bill) (adds, lookups called) {
	batch := max(countOf(c, "batch"), 1)
	adds = callsOf(countOf(c, "adds"), batch, b.add)
	if n := countOf(c, "lookup-batch"); n > 0 {
		batch = n
	}
	return adds, callsOf(countOf(c, "lookups"), batch, b.look)
}

// setCalls makes the calls of flaggedCalls those of the month.
func (m *month) setCalls(c *cli.Command, adds, lookups called) error {
	for _, u := range []*called{&adds, &lookups} {
		if u.Calls *= billing.DaysAMonth / daysOf(c); u.Calls > 0 && u.Calls < 1 {
			return usagef("a batch of %s is more than all items of 30 days", human.Counted(u.Items, "item"))
		}
	}
	if c.IsSet("adds") {
		m.Adds = &adds
	}
	if c.IsSet("lookups") {
		m.Lookups = &lookups
	}
	return nil
}

// callsOf returns the calls for so many items.
func callsOf(items, batch uint64, cost func(n uint64) float64) called {
	return called{float64(items) / float64(batch), batch, cost(batch)}
}

func (m *month) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stored           %s GB of strings in %s", threeDigits(m.StoredGB), human.Counted(m.Filters, "filter"))
	fmt.Fprintf(&b, "\nin 30 days       %s commands", rounded(m.Commands))
	if m.Commands == 0 { // the $0.00 below is no filter's price
		b.WriteString(": --adds and --lookups say how many")
	}
	if m.Refreshes > 0 {
		fmt.Fprintf(&b, ", at most: %s refreshes, %s GB downloaded by Mirrors", rounded(m.Refreshes),
			threeDigits(m.MirrorGB))
	}
	if m.Adds != nil {
		b.WriteString("\n  adding         " + m.Adds.text("single Adds", "AddAlls"))
	}
	if m.Lookups != nil {
		b.WriteString("\n  looking up     " + m.Lookups.text("single look-ups", "ExistsAlls"))
		if m.Asking != nil {
			b.WriteString(" without Mirrors")
		}
	}
	if m.Layers > 0 && m.Adds != nil {
		fmt.Fprintf(&b, "\n  growth         of an empty filter, by items that are all new, to %s; it is stored so",
			human.Counted(uint64(m.Layers), "layer"))
	}
	if m.LayersAtMost > 0 && m.Adds != nil {
		early := "upbloom add and programs with OpenScalable"
		if m.Adds.Items > 1 {
			early = "large AddAlls, " + early
		}
		fmt.Fprintf(&b, "\n                 or to %s and %s GB: %s\n                 may leave a layer early",
			human.Counted(uint64(m.LayersAtMost), "layer"), threeDigits(m.StoredAtMost), early)
	}
	if m.Over != nil {
		b.WriteString("\n" + m.Over.text())
	}
	if m.Turns+m.Times > 0 {
		fmt.Fprintf(&b, "\n  its panes      %s commands to clear old ones, %s to ask for the time", rounded(m.Turns),
			rounded(m.Times))
	}
	if m.Made > 0 {
		fmt.Fprintf(&b, "\n  making         %s commands, each time a filter has expired", rounded(m.Made))
	}
	if text := m.LeftOut.text(); m.Commands > 0 && text != "" {
		b.WriteString("\n  not in it      " + text)
	}
	if m.Asking != nil && m.Asking.Commands > 0 {
		fmt.Fprintf(&b, "\nwithout Mirrors  %s commands", rounded(m.Asking.Commands))
		if m.Money != nil {
			fmt.Fprintf(&b, ", %s a month", dollars(m.Asking.Money.Total))
		}
		if m.Asking.Commands < m.Commands {
			b.WriteString(": the Mirrors cost more than they save. A refresh is 3\n" +
				"                 commands, and after an Add at least 6")
		}
	}
	if m.Money != nil && m.Commands == 0 {
		fmt.Fprintf(&b, "\nmoney            %s a month for storage alone", dollars(m.Money.Storage))
	} else if m.Money != nil {
		fmt.Fprintf(&b, "\nmoney            %s a month: commands %s, storage %s, traffic of Mirrors %s",
			dollars(m.Money.Total), dollars(m.Money.Commands), dollars(m.Money.Storage), dollars(m.Money.Traffic))
		p := billing.PayAsYouGo()
		fmt.Fprintf(&b, "\n                 pay as you go, as documented in %s: $%.2f for 100,000 commands,"+
			"\n                 $%.2f a GB stored above %v, $%.2f a GB of traffic above %v; that of adding"+
			"\n                 and looking up is not counted, nor that a global database bills each write,"+
			"\n                 and each look-up with ReadsPrimary, once more for each read region",
			billing.PricesOf, p.Commands, p.Storage, p.FreeStorage, p.Traffic, p.FreeTraffic)
	}
	return b.String()
}

// dollars formats a sum, which may exceed any integer type: $1,234.50.
func dollars(f float64) string {
	cents := fmt.Sprintf("%.2f", f)
	if f >= 1<<53 {
		return "$" + cents
	}
	whole, _ := strconv.ParseUint(cents[:len(cents)-3], 10, 64)
	return "$" + human.Count(whole) + cents[len(cents)-3:]
}

// threeDigits formats a number that is rounded to three digits: 16,100 or 0.00134.
func threeDigits(f float64) string {
	f, _ = strconv.ParseFloat(fmt.Sprintf("%.3g", f), 64)
	if f >= 1000 && f < 1<<53 {
		return human.Count(uint64(f))
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// rounded formats a number of commands, which may exceed any integer type.
func rounded(f float64) string {
	if f < 1<<53 {
		return human.Count(uint64(math.Round(f)))
	}
	return fmt.Sprintf("%.3g", f)
}
