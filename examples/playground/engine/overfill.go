package engine

import (
	"fmt"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
)

// How an Overfill is made and measured.
const (
	overCapacity  = 2_000
	overRate      = 0.01
	overSteps     = 30 // up to three times its capacity
	overStrangers = 50_000
)

// An Overfill fills a blocked and a classic filter beyond their capacity, and
// counts false positives on the way.
type Overfill struct {
	local []*bloom.Local
	step  int
	fill  OverView
}

// An OverView is an Overfill as the page shows it.
type OverView struct {
	Text     string  `json:"text"`
	Done     bool    `json:"done"`
	Most     float64 `json:"most"` // the last x, in capacities
	Capacity string  `json:"capacity"`
	Lines    []Line  `json:"lines"`
}

// A Line is one filter: the formula everywhere, and the measurements so far.
type Line struct {
	Name     string  `json:"name"`
	Formula  []Point `json:"formula"`
	Measured []Point `json:"measured"`
}

// A Point is a rate in percent, at x capacities.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// NewOverfill makes both filters.
func NewOverfill() (*Overfill, error) {
	o := &Overfill{fill: OverView{
		Most: float64(overSteps) / 10, Capacity: human.Count(overCapacity),
		Text: "Both filters are empty. They were made for " + human.Count(overCapacity) +
			" items, and for false positives of 1 in 100.",
	}}
	for _, scheme := range []bloom.Scheme{bloom.SchemeBlocked, bloom.SchemeXXH3} {
		g, err := bloom.Config{Capacity: overCapacity, FPRate: overRate, Scheme: scheme}.Geometry()
		if err != nil {
			return nil, err
		}
		line := Line{Name: "blocked", Measured: []Point{}}
		if scheme != bloom.SchemeBlocked {
			line.Name = "classic"
		}
		for i := range overSteps + 1 {
			line.Formula = append(line.Formula, overPoint(i, g.FalsePositiveRate(itemsAt(i))))
		}
		o.local = append(o.local, bloom.NewLocal(g))
		o.fill.Lines = append(o.fill.Lines, line)
	}
	return o, nil
}

func itemsAt(step int) uint64 { return uint64(step) * overCapacity / 10 }

func overPoint(step int, rate float64) Point {
	return Point{X: float64(step) / 10, Y: 100 * rate}
}

// View shows the filters as they are.
func (o *Overfill) View() OverView { return o.fill }

// Step adds a tenth of the capacity and measures again.
func (o *Overfill) Step() OverView {
	if o.fill.Done {
		return o.fill
	}
	o.step++
	var rates []float64
	for i, l := range o.local {
		for n := itemsAt(o.step - 1); n < itemsAt(o.step); n++ {
			l.Add(fmt.Sprintf("member-%d", n))
		}
		found := 0
		for n := range overStrangers {
			if l.Exists(fmt.Sprintf("stranger-%d", n)) {
				found++
			}
		}
		rate := float64(found) / overStrangers
		rates = append(rates, rate)
		line := &o.fill.Lines[i]
		line.Measured = append(line.Measured, overPoint(o.step, rate))
	}
	o.fill.Done = o.step == overSteps
	o.fill.Text = fmt.Sprintf("%s items, %.1f times the capacity. Of %s strangers, blocked finds %s (formula %s),"+
		" classic %s (formula %s).",
		human.Count(itemsAt(o.step)), float64(o.step)/10, human.Count(overStrangers),
		percent(rates[0]), o.formula(0), percent(rates[1]), o.formula(1))
	return o.fill
}

func (o *Overfill) formula(line int) string {
	return percent(o.fill.Lines[line].Formula[o.step].Y / 100)
}
