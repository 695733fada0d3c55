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

// A plan counts only if memory, traffic and rate fit.
func TestFixedPlan(t *testing.T) {
	for name, c := range map[string]struct {
		month   Month
		regions uint64
		money   float64
	}{
		"250 MB": {Month{StoredGB: 0.25, TrafficGB: 50, Commands: 5184e6}, 0, 10},
		"1 GB":   {Month{StoredGB: 0.26, TrafficGB: 50}, 1, 30},
		"5 GB":   {Month{StoredGB: 0.001, TrafficGB: 290}, 2, 200},
		"10 GB":  {Month{StoredGB: 6, TrafficGB: 1}, 0, 200},
		"50 GB":  {Month{TrafficGB: 1001}, 0, 400},
		"100 GB": {Month{StoredGB: 51}, 0, 800},
		"500 GB": {Month{StoredGB: 500, TrafficGB: 20_000}, 3, 3750},
		"":       {Month{StoredGB: 501}, 0, 0},
	} {
		if p, money := c.month.FixedPlan(c.regions); p.Name != name || money != c.money {
			t.Errorf("%+v: %q for $%v, want %q for $%v", c.month, p.Name, money, name, c.money)
		}
	}
	if p, _ := (Month{Commands: 5185e6}).FixedPlan(0); p.Name != "" {
		t.Errorf("%s takes more than 10,000 commands a second", p.Name)
	}
	least := Plan{}
	for _, p := range Fixed() {
		if p.StoredGB <= least.StoredGB || p.TrafficGB <= least.TrafficGB || p.Money <= least.Money {
			t.Errorf("%+v is not larger than %+v", p, least)
		}
		least = p
	}
}

// A Mirror refreshes as often as its copy is too old when it is asked.
func TestMirrorRefreshes(t *testing.T) {
	for _, c := range []struct {
		lookups, adds, stale float64
		processes            uint64
		all, downloads       float64
	}{
		{1e9, 1e9, 60, 1, 43_200, 43_200},   // somebody adds in each minute
		{1e9, 1e9, 600, 1, 4_320, 4_320},    // a tenth
		{1e9, 0, 60, 1, 43_200, 720},        // once an hour
		{1e9, 1e9, 60, 3, 129_600, 129_600}, // each process its own
		{100, 0, 60, 1, 100, 100},           // before a look-up alone
		{0, 1e9, 60, 1, 0, 0},
		{1e9, 43_200, 60, 1, 43_200, 43_200*(1-1/2.718281828) + 720/2.718281828},
	} {
		got := MirrorRefreshes(c.lookups, c.adds, c.stale, c.processes)
		if got.All != c.all || got.Downloads < 0.999*c.downloads || got.Downloads > 1.001*c.downloads {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}
