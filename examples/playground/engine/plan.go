package engine

import (
	"fmt"
	"math"
	"strconv"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/billing"
	"github.com/upbloom/upbloom/internal/human"
)

// A Wish has the values of the sliders.
type Wish struct {
	Items   uint64  `json:"items"`
	OneIn   float64 `json:"oneIn"`
	Filters uint64  `json:"filters"` // of this size
	Adds    float64 `json:"adds"`    // a day, in all filters together
	Lookups float64 `json:"lookups"` // the same
	// Commands is the price of 100,000 commands and Storage that of a GB and
	// month, in US dollars, as typed. What is no price from 0 to highestPrice
	// counts as 0.
	Commands string `json:"commands"`
	Storage  string `json:"storage"`
}

// highestPrice keeps every sum of a Wish narrower than the page of a phone.
const highestPrice = 10_000

// A Plan is the cost of a Wish.
type Plan struct {
	Rows  []Row  `json:"rows"`
	Bill  []Fact `json:"bill"`
	Total string `json:"total"`
	Text  string `json:"text"` // the same in a sentence, for screen readers

	NotPrices []string `json:"notPrices"` // "commands", "storage", both or neither
	Note      string   `json:"note"`      // says so, or is ""
}

// A Row compares the schemes in one respect.
type Row struct {
	Name    string `json:"name"`
	Blocked string `json:"blocked"`
	Classic string `json:"classic"`
}

// Prices are the documented ones, with which the page begins.
type Prices struct {
	Commands    float64 `json:"commands"`
	Storage     float64 `json:"storage"`
	FreeStorage float64 `json:"freeStorage"`
	Year        string  `json:"year"`
}

// DocumentedPrices returns the prices of the pay-as-you-go plan.
func DocumentedPrices() Prices {
	p := billing.PayAsYouGo()
	return Prices{p.Commands, p.Storage, p.FreeStorage, billing.PricesOf}
}

// Plan computes the cost of a Wish.
func (w Wish) Plan() (Plan, error) {
	var sides [2]bloom.Geometry
	for i, scheme := range []bloom.Scheme{bloom.SchemeBlocked, bloom.SchemeXXH3} {
		g, err := bloom.Config{Capacity: w.Items, FPRate: 1 / w.OneIn, Scheme: scheme}.Geometry()
		if err != nil {
			return Plan{}, err
		}
		sides[i] = g
	}
	blocked, classic := sides[0], sides[1]
	p := Plan{NotPrices: []string{}} // in JSON a list, never null
	row := func(name string, show func(g bloom.Geometry) string) {
		p.Rows = append(p.Rows, Row{name, show(blocked), show(classic)})
	}
	rateAt := func(n uint64) func(bloom.Geometry) string {
		return func(g bloom.Geometry) string { return oneIn(g.FalsePositiveRate(n)) }
	}
	row("memory", func(g bloom.Geometry) string { return human.Bytes(g.Bytes(bloom.LayoutHeaded)) })
	row("bits an item", func(g bloom.Geometry) string {
		return fmt.Sprintf("%.1f", float64(g.Bits)/float64(w.Items))
	})
	row("reads to ask", func(g bloom.Geometry) string {
		reads, _ := operations(g)
		return fmt.Sprint(reads)
	})
	row("writes to add", func(g bloom.Geometry) string {
		_, writes := operations(g)
		return fmt.Sprint(writes)
	})
	row("wrong, half full", rateAt(w.Items/2))
	row("wrong, full", rateAt(w.Items))
	row("wrong, at twice", rateAt(2*w.Items))

	prices := billing.PayAsYouGo()
	prices.Commands = p.price("commands", w.Commands)
	prices.Storage = p.price("storage", w.Storage)
	if len(p.NotPrices) > 0 {
		p.Note = "A price is from 0 to " + human.Count(highestPrice) + ". Anything else counts as 0."
	}
	month := billing.Use{
		Bytes: blocked.Bytes(bloom.LayoutHeaded), Filters: w.Filters, Adds: w.Adds, Lookups: w.Lookups,
	}.Month()
	money := month.Money(prices)
	commands := human.Count(uint64(month.Commands))
	forCommands, forStorage := cents(money.Commands), cents(money.Storage)
	p.Bill = []Fact{
		{"commands", commands},
		{"commands, in money", dollars(forCommands)},
		{"stored", human.Bytes(month.Filters * blocked.Bytes(bloom.LayoutHeaded))},
		{"storage, in money", dollars(forStorage)},
	}
	p.Total = dollars(forCommands + forStorage) // as shown
	p.Text = fmt.Sprintf("%s items, %s: %s, %s commands in 30 days, %s.", human.Count(w.Items),
		human.OneIn(1/w.OneIn), human.Bytes(blocked.Bytes(bloom.LayoutHeaded)), commands, p.Total)
	if p.Note != "" {
		p.Text = p.Note + " " + p.Text
	}
	return p, nil
}

// price returns the price that was typed. If it is none, price returns 0 and
// adds the field's name to NotPrices.
func (p *Plan) price(field, typed string) float64 {
	v, err := strconv.ParseFloat(typed, 64)
	if err == nil && v >= 0 && v <= highestPrice {
		return v
	}
	p.NotPrices = append(p.NotPrices, field)
	return 0
}

// oneIn is human.OneIn, never too wide for its column.
func oneIn(rate float64) string {
	switch {
	case rate <= 0:
		return "none"
	case rate < 1e-9:
		return "under 1 in 10⁹"
	case rate <= 1e-6:
		return fmt.Sprintf("1 in %.3g million", 1e-6/rate)
	}
	return human.OneIn(rate)
}

func cents(v float64) uint64 { return uint64(math.Round(100 * v)) }

func dollars(cents uint64) string {
	return fmt.Sprintf("$%s.%02d", human.Count(cents/100), cents%100)
}
