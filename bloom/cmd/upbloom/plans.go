package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/billing"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// costs is the JSON of calc.
type costs struct {
	Items   uint64  `json:"items"`
	Rate    float64 `json:"rate"`
	Adds    uint64  `json:"adds"` // of new items, in a month
	Lookups uint64  `json:"lookups"`
	Batch   uint64  `json:"batch"`   // items in a call
	Regions uint64  `json:"regions"` // beside the primary

	Stale     float64 `json:"stale,omitempty"`     // MaxStale of the Mirrors, in seconds
	Processes uint64  `json:"processes,omitempty"` // with one each

	Ways     []cost   `json:"ways"`
	Cheapest []string `json:"cheapest"`
}

// cost is what one way to keep the items costs in a month.
type cost struct {
	Way            string  `json:"way"`
	Bytes          uint64  `json:"bytes"`          // memory
	AddCommands    int64   `json:"addCommands"`    // billed for a call with new items
	AgainCommands  int64   `json:"againCommands"`  // with items that are in
	LookupCommands int64   `json:"lookupCommands"` // with look-ups
	Commands       float64 `json:"commands"`
	Refreshes      float64 `json:"refreshes,omitempty"`  // of Mirrors
	TrafficGB      float64 `json:"trafficGB"`            // of requests and answers, with their headers
	PeakRate       float64 `json:"peakRate"`             // commands a second
	Money          float64 `json:"money"`                // US dollars, pay as you go
	FixedPlan      string  `json:"fixedPlan,omitempty"`  // the cheapest that takes all this
	FixedMoney     float64 `json:"fixedMoney,omitempty"` // its price
	Impossible     string  `json:"impossible,omitempty"` // why there is none of this size and rate

	mirrorOf string  // the way of which this is a Mirror, or ""
	can      string  // what it can that others cannot
	addBytes float64 // of a call that adds, with headers
}

// countedItems is the size of the filters whose calls are counted: those of
// larger ones are billed the same.
const countedItems = 100_000

// headers is how many bytes those of a request and its answer have together.
const headers = 500

// A Mirror of a plain filter, or of a window, in each process.
const (
	mirrorWay       = "Mirror"
	mirrorWindowWay = "Mirror of a window"
)

// refreshPart is how many bytes of a string one request of a refresh reads.
const refreshPart = 2 << 20

// priced adds to a way what a month of it costs, by the command and by the plan.
func (all *costs) priced(one *cost) {
	month := billing.Month{Commands: one.Commands, StoredGB: float64(one.Bytes) / 1e9, TrafficGB: one.TrafficGB}
	one.Money = math.Round(100*month.Money(billing.PayAsYouGo()).Total) / 100
	p, money := month.FixedPlan(all.Regions)
	one.FixedPlan, one.FixedMoney = p.Name, money
	one.PeakRate = math.Round(month.PeakRate())
}

// least is what a way costs at least.
func (one *cost) least() float64 {
	if one.FixedPlan != "" {
		return min(one.Money, one.FixedMoney)
	}
	return one.Money
}

// mirror counts what the refreshes of a Mirror take, and returns its month. A call is
// one look-up, as of ExistsAll. An add costs what one to the filter costs.
func (all *costs) mirror(ctx context.Context, c *upstash.Client, s *upstashtest.Server, name string, of cost) (cost, error) {
	one := of
	one.Way, one.can, one.LookupCommands, one.mirrorOf = name, "no request for most look-ups", 0, of.Way
	if of.Impossible != "" {
		return one, nil
	}
	h, err := newHandle(c, of.Way, name, spec{
		Config: bloom.Config{Capacity: min(all.Items, countedItems), FPRate: all.Rate}, span: calcSpan,
	})
	if err != nil {
		return one, err
	}
	m, err := bloom.NewMirror(h.(bloom.Mirrorable), bloom.MirrorConfig{MaxStale: time.Hour})
	if err != nil {
		return one, err
	}
	if _, err := h.Create(ctx); err != nil {
		return one, err
	}
	state, err := h.Stats(ctx)
	if err != nil {
		return one, err
	}
	var taken [3]upstashtest.Stats // of a download, of a refresh without, and of one after an Add
	for i := range taken {
		if i == 2 {
			if _, err := h.AddAll(ctx, []string{"another"}); err != nil {
				return one, err
			}
		}
		s.ResetStats()
		if err := m.Refresh(ctx); err != nil {
			return one, err
		}
		taken[i] = s.Stats()
	}
	quiet, changed := taken[1], taken[2]
	area := float64(of.Bytes-format.HeaderBytes) / float64(max(state.MaxParts, 1)) // all cells, or a pane's
	parts := math.Ceil(area / refreshPart)
	read := float64(changed.Billed - quiet.Billed) // of an area that changed, and to find out which
	if parts > 1 {
		read += (parts - 1) * 3
	}
	adds, calls := float64(all.Adds)/float64(all.Batch), float64(all.Lookups)/float64(all.Batch)
	r := billing.MirrorRefreshes(calls, adds, all.Stale, all.Processes)
	// The panes in which nobody adds are read once an hour, and the time is asked for.
	others := float64(max(state.MaxParts, 1)-1) * billing.MirrorRefreshes(calls, 0, all.Stale, all.Processes).Downloads
	times := 0.0
	if of.Way == windowKind {
		times = billing.MirrorRefreshes(calls, 0, max(all.Stale, 600), all.Processes).All
	}
	one.Commands = math.Ceil(adds*float64(one.AddCommands) + r.All*float64(quiet.Billed) + r.Downloads*read +
		others*parts*3 + times)
	one.TrafficGB = (adds*of.addBytes + r.All*float64(quiet.BytesIn+quiet.BytesOut+headers*quiet.Requests) +
		(r.Downloads+others)*(area+parts*headers) + times*headers) / 1e9
	one.Refreshes = math.Round(r.All)
	all.priced(&one)
	return one, nil
}

// fixed says the fixed plan of a way.
func (one *cost) fixed() string {
	if one.FixedPlan == "" {
		return "none"
	}
	return fmt.Sprintf("$%s (%s)", dollars(one.FixedMoney), one.FixedPlan)
}

// plansNotes explains the column of the plans, and what the peak is.
func (all *costs) plansNotes() []string {
	var fast []string
	refreshes := 0.0
	for _, one := range all.Ways {
		refreshes = max(refreshes, one.Refreshes)
		if one.Impossible == "" && one.PeakRate > billing.MostRate {
			fast = append(fast, fmt.Sprintf("%s (%s)", one.Way, human.Count(uint64(min(one.PeakRate, 1<<53)))))
		}
	}
	p := billing.PayAsYouGo()
	notes := []string{
		fmt.Sprintf("PAY AS YOU GO, prices of %s: $%.2f for 100,000 commands, $%.2f a GB stored above %v GB, $%.2f a GB of\n"+
			"traffic above %v GB, with %d bytes of headers a request. --regions N counts the read regions of a global\n"+
			"database.", billing.PricesOf, p.Commands, p.Storage, p.FreeStorage, p.Traffic, p.FreeTraffic, headers),
		fmt.Sprintf("FIXED PLAN: the cheapest that takes the memory, the traffic and %s commands a second at the peak, which is\n"+
			"taken as %d times the average. Its prices are those of %s, as somebody else transcribed them from the\n"+
			"service's page: look there before you choose.", human.Count(billing.MostRate), billing.Peak, billing.FixedOf),
	}
	if len(fast) > 0 {
		notes = append(notes, fmt.Sprintf("More than the %s commands a second that a database takes, at the peak: %s.",
			human.Count(billing.MostRate), strings.Join(fast, ", ")))
	}
	if all.Stale == 0 {
		return notes
	}
	if all.Stale >= calcSpan.Seconds() {
		notes = append(notes, "No Mirror of a window has a MaxStale as long as its Span, which is "+human.Exact(calcSpan)+" here.")
	}
	return append(notes, fmt.Sprintf("The Mirrors of %s, with a MaxStale of %s, refresh %s times a month. After an add a refresh downloads\n"+
		"the whole filter, or a pane of a window, and each is downloaded once an hour: ten times the MaxStale is a tenth of\n"+
		"the traffic.",
		human.Counted(all.Processes, "process"), human.Exact(time.Duration(all.Stale*float64(time.Second))),
		human.Count(uint64(refreshes))))
}

// dollars formats a sum, which may exceed any integer type: 1,234.50.
func dollars(f float64) string {
	cents := fmt.Sprintf("%.2f", f)
	if f >= 1<<53 {
		return cents
	}
	return human.Count(uint64(f)) + cents[len(cents)-3:]
}
