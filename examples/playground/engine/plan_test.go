package engine

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestPlan(t *testing.T) {
	prices := DocumentedPrices()
	wish := Wish{
		Items: 1_000_000, OneIn: 100, Adds: 1e6, Lookups: 10e6,
		Commands: fmt.Sprint(prices.Commands), Storage: fmt.Sprint(prices.Storage),
	}
	p, err := wish.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if p.Total != "$660.00" || p.Bill[0].Value != "330,000,000" {
		t.Errorf("the bill: %s for %s commands, want $660.00 for 330,000,000", p.Total, p.Bill[0].Value)
	}
	for _, row := range []Row{
		{"memory", "1.3 MiB", "1.1 MiB"},
		{"reads to ask", "2", "7"},
		{"wrong, full", "1 in 100", "1 in 100"},
	} {
		if !strings.Contains(fmt.Sprint(p.Rows), fmt.Sprint(row)) {
			t.Errorf("the rows %v, want %v among them", p.Rows, row)
		}
	}
	wantText(t, p.Text, "1,000,000 items", "$660.00")
	wish.Items, wish.OneIn, wish.Filters, wish.Storage = 1e8, 1e6, 1000, "100"
	if p, err = wish.Plan(); err != nil {
		t.Fatal(err)
	}
	wantText(t, fmt.Sprint(p), "under 1 in 10⁹", "1 in 2,127", "375.3 GiB", "$40,200.65", "$40,860.65")
	if s := oneIn(1.0 / 123_456_789); s != "1 in 123 million" {
		t.Errorf("oneIn(1/123456789) = %q, want 1 in 123 million", s)
	}
	wish.OneIn = 0.5
	if _, err := wish.Plan(); err == nil {
		t.Error("Plan of a rate above 1: no error, want one")
	}
}

// What is no price counts as 0, and the plan says so. The total is the sum of
// the parts as they are shown.
func TestPrices(t *testing.T) {
	for _, tt := range []struct {
		commands, storage string
		total             string
		not               []string
	}{
		{"0.2", "0.25", "$101.16", nil},
		{"0", "0.25", "$100.50", nil},
		{"-1", "0.25", "$100.50", []string{"commands"}},
		{"", "0.25", "$100.50", []string{"commands"}},
		{"NaN", "0.25", "$100.50", []string{"commands"}},
		{"Inf", "0.25", "$100.50", []string{"commands"}},
		{"10000.01", "0.25", "$100.50", []string{"commands"}},
		{"0.2", "-0.25", "$0.66", []string{"storage"}},
		{"cheap", "1e999", "$0.00", []string{"commands", "storage"}},
		{"10000", "10000", "$4,053,064.99", nil},
	} {
		p, err := Wish{
			Items: 1e8, OneIn: 1e6, Filters: 1000, Adds: 1e3, Lookups: 1e4,
			Commands: tt.commands, Storage: tt.storage,
		}.Plan()
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("%q and %q", tt.commands, tt.storage)
		if p.Total != tt.total || !slices.Equal(p.NotPrices, tt.not) {
			t.Errorf("%s: %s, and no prices are %q, want %s, %q", name, p.Total, p.NotPrices, tt.total, tt.not)
		}
		if sum := centsOf(t, p.Bill[1].Value) + centsOf(t, p.Bill[3].Value); sum != centsOf(t, p.Total) {
			t.Errorf("%s: the parts of %s are %v", name, p.Total, p.Bill)
		}
		if said := strings.HasPrefix(p.Text, "A price is from 0 to 10,000."); said != (len(tt.not) > 0) {
			t.Errorf("%s: %s", name, p.Text)
		}
	}
}

func centsOf(t *testing.T, dollars string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.NewReplacer("$", "", ",", "", ".", "").Replace(dollars))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Measured rates follow the formula, within four standard deviations of the
// sample and 5% for the filter itself.
func TestOverfill(t *testing.T) {
	o, err := NewOverfill()
	if err != nil {
		t.Fatal(err)
	}
	var v OverView
	for range overSteps {
		v = o.Step()
	}
	if !v.Done || len(v.Lines[0].Measured) != overSteps {
		t.Fatalf("done %v after %d points, want true after %d", v.Done, len(v.Lines[0].Measured), overSteps)
	}
	for _, line := range v.Lines {
		for i, m := range line.Measured {
			want := line.Formula[i+1].Y
			spread := 100 * 4 * math.Sqrt(want/100/overStrangers)
			if math.Abs(m.Y-want) > spread+0.05*want {
				t.Errorf("%s at %v: %v%%, formula %v%%", line.Name, m.X, m.Y, want)
			}
		}
	}
	wantText(t, v.Text, "6,000 items, 3.0 times", "Of 50,000 strangers")
	if again := o.Step(); len(again.Lines[0].Measured) != overSteps {
		t.Errorf("Step after the end: %d points, want %d", len(again.Lines[0].Measured), overSteps)
	}
}
