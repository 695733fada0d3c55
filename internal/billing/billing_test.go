package billing

import "testing"

func TestMonth(t *testing.T) {
	for _, c := range []struct {
		name  string
		use   Use
		month Month
		total float64
	}{
		{
			"a command for each call",
			Use{Bytes: 1_343_782, Adds: 1e6, Lookups: 10e6},
			Month{Filters: 1, Commands: 330e6, StoredGB: 0.001343782},
			660,
		},
		{
			"the first GB is free",
			Use{Bytes: 100_000_000, Filters: 50},
			Month{Filters: 50, StoredGB: 5},
			1,
		},
	} {
		m := c.use.Month()
		if m != c.month {
			t.Errorf("%s: %+v, want %+v", c.name, m, c.month)
		}
		if got := m.Money(PayAsYouGo()).Total; got < c.total*(1-1e-9) || got > c.total*(1+1e-9) {
			t.Errorf("%s: $%v, want $%v", c.name, got, c.total)
		}
	}
}

func TestTrafficAboveTheFreePart(t *testing.T) {
	money := Month{TrafficGB: 300}.Money(PayAsYouGo())
	if money.Traffic != 3 || money.Total != 3 {
		t.Errorf("%+v, want 3 dollars for 100 GB", money)
	}
}
