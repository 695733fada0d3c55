package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/internal/human"
)

// month is what the use of some filters costs in 30 days, for programs. GB are
// of 10^9 bytes. Money is missing without --price.
type month struct {
	Filters   uint64  `json:"filters"`
	Commands  float64 `json:"commands"`
	StoredGB  float64 `json:"storedGB"`
	Refreshes float64 `json:"refreshes"` // of Mirrors
	MirrorGB  float64 `json:"mirrorGB"`  // that they download
	Money     *money  `json:"money,omitempty"`
}

// money is in US dollars.
type money struct {
	Commands float64 `json:"commands"`
	Storage  float64 `json:"storage"`
	Traffic  float64 `json:"traffic"`
	Total    float64 `json:"total"`
}

// The prices of the pay-as-you-go plan, in US dollars, as the service's
// documents of 2026 have them.
const (
	priceCommands = 0.20 // for 100,000
	priceStorage  = 0.25 // for a GB and month
	freeStorage   = 1    // GB
	priceTraffic  = 0.03 // for a GB
	freeTraffic   = 200  // GB a month

	daysAMonth = 30
)

// What a refresh of a Mirror costs, in commands: as much if nothing changed,
// and so much more for each part of the string otherwise.
const (
	refreshCommands = 3
	partCommands    = 3
	mirrorPart      = 2 << 20
)

func usageFlags() []cli.Flag {
	return []cli.Flag{
		countFlag("`N` Adds a day, in all filters together", "adds"),
		countFlag("`N` look-ups a day, in all filters together", "lookups"),
		countFlag("`N` such filters; the default is 1", "filters"),
		lifetimeFlag("answer look-ups by a Mirror that is at most `TIME` old (its MaxStale)", "mirror"),
		countFlag("`N` processes with a Mirror of each filter; the default is 1", "processes"),
		&cli.BoolFlag{Name: "price", Usage: "in money, at the pay-as-you-go prices of 2026"},
	}
}

// monthOf works out a month, nil if no flag asks for one.
func monthOf(c *cli.Command, p plan) (*month, error) {
	asked := false
	for _, name := range []string{"adds", "lookups", "filters", "mirror", "price", "processes"} {
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
	filters := max(countOf(c, "filters"), 1)
	adds, lookups := float64(countOf(c, "adds")), float64(countOf(c, "lookups"))
	size := float64(p.Bytes)
	m := &month{
		Filters: filters, Commands: daysAMonth * (adds + lookups), StoredGB: float64(filters) * size / 1e9,
	}
	if stale > 0 {
		copies := float64(max(countOf(c, "processes"), 1))
		// A look-up refreshes a copy that is too old, and an Add makes each
		// process download one filter at most once.
		refreshes := min(lookups, copies*float64(filters)*float64(24*time.Hour)/float64(stale))
		downloads := min(refreshes, copies*adds)
		m.Refreshes = daysAMonth * refreshes
		m.MirrorGB = daysAMonth * downloads * size / 1e9
		m.Commands = daysAMonth * (adds + refreshCommands*refreshes +
			partCommands*downloads*math.Ceil(size/mirrorPart))
	}
	if c.Bool("price") {
		m.Money = &money{
			Commands: m.Commands / 100_000 * priceCommands,
			Storage:  max(m.StoredGB-freeStorage, 0) * priceStorage,
			Traffic:  max(m.MirrorGB-freeTraffic, 0) * priceTraffic,
		}
		m.Money.Total = m.Money.Commands + m.Money.Storage + m.Money.Traffic
	}
	return m, nil
}

func (m *month) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stored           %.3g GB in %s", m.StoredGB, counted(m.Filters, "filter"))
	fmt.Fprintf(&b, "\nin 30 days       %s commands", rounded(m.Commands))
	if m.Refreshes > 0 {
		fmt.Fprintf(&b, ", at most: %s refreshes, %.3g GB downloaded by Mirrors", rounded(m.Refreshes), m.MirrorGB)
	}
	if m.Money != nil {
		fmt.Fprintf(&b, "\nmoney            $%.2f a month: commands $%.2f, storage $%.2f, traffic of Mirrors $%.2f",
			m.Money.Total, m.Money.Commands, m.Money.Storage, m.Money.Traffic)
		fmt.Fprintf(&b, "\n                 pay as you go, as documented in 2026: $0.20 for 100,000 commands,"+
			"\n                 $0.25 a GB stored above 1, $0.03 a GB of traffic above 200; that of single"+
			"\n                 calls is not counted, nor that a global database bills each write once"+
			"\n                 more for each read region")
	}
	return b.String()
}

// rounded writes a number of commands, which may be beyond any integer.
func rounded(f float64) string {
	if f < 1<<53 {
		return human.Count(uint64(math.Round(f)))
	}
	return fmt.Sprintf("%.3g", f)
}
