package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/internal/billing"
	"github.com/upbloom/upbloom/internal/human"
)

// month is what some filters cost in a month. Money is missing without --price.
type month struct {
	billing.Month
	Money *billing.Money `json:"money,omitempty"`
}

func usageFlags() []cli.Flag {
	return []cli.Flag{
		countFlag("`N` Adds a day, in all filters together; a request of AddAll is one", "adds"),
		countFlag("`N` look-ups a day, in all filters together; a request of ExistsAll is one", "lookups"),
		&cli.BoolFlag{Name: "monthly", Usage: "--adds and --lookups are those of 30 days"},
		&cli.BoolFlag{Name: "must-exist", Usage: "with MustExist, an Add is billed as three commands"},
		countFlag("`N` such filters; the default is 1", "filters"),
		lifetimeFlag("answer look-ups by a Mirror that is at most `TIME` old (its MaxStale)", "mirror"),
		countFlag("`N` processes with a Mirror of each filter; the default is 1", "processes"),
		&cli.BoolFlag{Name: "price", Usage: "in money, at the pay-as-you-go prices of " + billing.PricesOf},
	}
}

// addCommands returns how many commands an Add is billed as: n, or three with
// --must-exist.
func addCommands(c *cli.Command, n int) int {
	if c.Bool("must-exist") {
		return 3
	}
	return n
}

// monthOf returns the cost of a month for filters of this length, or nil if no
// flag asks for it. An Add is billed as adds commands.
func monthOf(c *cli.Command, bytes uint64, adds int) (*month, error) {
	asked := false
	for _, name := range []string{
		"adds", "lookups", "monthly", "filters", "mirror", "price", "processes",
	} {
		asked = asked || c.IsSet(name)
	}
	stale := lifetimeOf(c, "mirror")
	switch {
	case !asked:
		return nil, nil
	case c.IsSet("mirror") && stale <= 0:
		return nil, usagef("--mirror is %v: use the MaxStale of the Mirror, above 0", stale)
	case c.IsSet("processes") && stale == 0:
		return nil, usagef("--processes is for Mirrors: it has no effect without --mirror")
	}
	for _, name := range []string{"filters", "processes"} {
		if c.IsSet(name) && countOf(c, name) == 0 {
			return nil, usagef("--%s is 0: use at least 1", name)
		}
	}
	days := 1.0
	if c.Bool("monthly") {
		days = billing.DaysAMonth
	}
	m := &month{Month: billing.Use{
		Bytes: bytes, Filters: countOf(c, "filters"),
		Adds:     float64(adds) * float64(countOf(c, "adds")) / days,
		Lookups:  float64(countOf(c, "lookups")) / days,
		MaxStale: stale, Copies: countOf(c, "processes"),
	}.Month()}
	if c.Bool("price") {
		money := m.Month.Money(billing.PayAsYouGo())
		m.Money = &money
	}
	return m, nil
}

func (m *month) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stored           %.3g GB in %s", m.StoredGB, counted(m.Filters, "filter"))
	fmt.Fprintf(&b, "\nin 30 days       %s commands", rounded(m.Commands))
	if m.Commands == 0 { // the $0.00 below is no filter's price
		b.WriteString(": --adds and --lookups say how many")
	}
	if m.Refreshes > 0 {
		fmt.Fprintf(&b, ", at most: %s refreshes, %.3g GB downloaded by Mirrors", rounded(m.Refreshes), m.MirrorGB)
	}
	if m.Money != nil {
		fmt.Fprintf(&b, "\nmoney            %s a month: commands %s, storage %s, traffic of Mirrors %s",
			dollars(m.Money.Total), dollars(m.Money.Commands), dollars(m.Money.Storage), dollars(m.Money.Traffic))
		p := billing.PayAsYouGo()
		fmt.Fprintf(&b, "\n                 pay as you go, as documented in %s: $%.2f for 100,000 commands,"+
			"\n                 $%.2f a GB stored above %v, $%.2f a GB of traffic above %v; that of single"+
			"\n                 calls is not counted, nor that a global database bills each write, and each"+
			"\n                 look-up with ReadsPrimary, once more for each read region",
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

// rounded formats a number of commands, which may exceed any integer type.
func rounded(f float64) string {
	if f < 1<<53 {
		return human.Count(uint64(math.Round(f)))
	}
	return fmt.Sprintf("%.3g", f)
}
