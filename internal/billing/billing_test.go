package billing

import (
	"testing"
	"time"
)

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
		{
			// Ten refreshes in a day, each after an Add: 3 commands, and 3 for
			// the one part.
			"a Mirror that every writer refreshes",
			Use{Bytes: 1e6, Adds: 10, Lookups: 10, Changes: 10, MaxStale: time.Minute},
			Month{Filters: 1, Commands: 30 * (10 + 60), StoredGB: 0.001, Refreshes: 300, MirrorGB: 0.3},
			0.0042,
		},
		{
			"a Mirror that is asked all the time, and nobody writes",
			Use{Bytes: 1e6, Lookups: 1e9, MaxStale: time.Hour, Copies: 2},
			Month{Filters: 1, Commands: 30*3*48 + 2*3, StoredGB: 0.001, Refreshes: 30 * 48, MirrorGB: 0.002},
			0.008652,
		},
		{
			"a Mirror that a ticker refreshes, and nobody asks",
			Use{Bytes: 1e6, MaxStale: time.Hour, Ticker: true},
			Month{Filters: 1, Commands: 30*3*48 + 3, StoredGB: 0.001, Refreshes: 30 * 48, MirrorGB: 0.001},
			0.008646,
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
	money := Month{MirrorGB: 300}.Money(PayAsYouGo())
	if money.Traffic != 3 || money.Total != 3 {
		t.Errorf("%+v, want 3 dollars for 100 GB", money)
	}
}
