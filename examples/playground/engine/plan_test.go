package engine

import (
	"fmt"
	"strings"
	"testing"
)

func TestPlan(t *testing.T) {
	prices := DocumentedPrices()
	wish := Wish{
		Items: 1_000_000, OneIn: 100, Adds: 1e6, Lookups: 10e6,
		Commands: prices.Commands, Storage: prices.Storage,
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
	wish.Items, wish.OneIn, wish.Filters, wish.Storage = 1e8, 1e6, 1000, 100
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
