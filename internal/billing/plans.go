package billing

import "math"

// A Plan has a fixed price a month, in US dollars, and limits.
type Plan struct {
	Name      string
	StoredGB  float64
	TrafficGB float64
	Money     float64
	Region    float64 // more, for each read region
}

// FixedOf is the day of the fixed plans' prices. Somebody else transcribed them
// from the service's page: it could not be read where this was written.
const FixedOf = "2026-09-20"

// Fixed returns the fixed plans, the smallest first.
func Fixed() []Plan {
	return []Plan{
		{"250 MB", 0.25, 50, 10, 5},
		{"1 GB", 1, 100, 20, 10},
		{"5 GB", 5, 500, 100, 50},
		{"10 GB", 10, 1000, 200, 100},
		{"50 GB", 50, 5000, 400, 200},
		{"100 GB", 100, 10_000, 800, 400},
		{"500 GB", 500, 20_000, 1500, 750},
	}
}

const (
	// MostRate is how many commands a second a database takes, by FixedOf.
	MostRate = 10_000
	// Peak is how many times the average rate the highest is taken to be.
	Peak = 5
)

// PeakRate is the highest number of commands in a second.
func (m Month) PeakRate() float64 { return Peak * m.Commands / (DaysAMonth * 24 * 3600) }

// FixedPlan returns the cheapest fixed plan that the month fits into, and its price
// with so many read regions. If there is none, the plan has no name.
func (m Month) FixedPlan(regions uint64) (Plan, float64) {
	if m.PeakRate() > MostRate {
		return Plan{}, 0
	}
	for _, p := range Fixed() {
		if m.StoredGB <= p.StoredGB && m.TrafficGB <= p.TrafficGB {
			return p, p.Money + float64(regions)*p.Region
		}
	}
	return Plan{}, 0
}

// Refreshes is what a Mirror's refreshes are in a month.
type Refreshes struct {
	All       float64
	Downloads float64 // those that take the whole string
}

// MirrorRefreshes returns the refreshes of so many processes together. Each of them
// makes so many of the look-ups as any other, and refreshes before one of them if
// its copy is older than stale seconds. A refresh downloads if somebody added since
// the one before, or none has for an hour.
func MirrorRefreshes(lookups, adds, stale float64, processes uint64) Refreshes {
	const month = DaysAMonth * 24 * 3600
	n := float64(max(processes, 1))
	one := min(lookups/n, month/stale)
	if one <= 0 {
		return Refreshes{}
	}
	changed := 1 - math.Exp(-adds/one)
	hourly := min(one, DaysAMonth*24)
	return Refreshes{n * one, n * (one*changed + hourly*(1-changed))}
}
