// Package billing computes what filters cost in a month.
package billing

// DaysAMonth is the length of a month in this package.
const DaysAMonth = 30

// Prices are in US dollars.
type Prices struct {
	Commands    float64 `json:"commands"`    // for 100,000
	Storage     float64 `json:"storage"`     // for a GB and month
	FreeStorage float64 `json:"freeStorage"` // GB
	Traffic     float64 `json:"traffic"`     // for a GB
	FreeTraffic float64 `json:"freeTraffic"` // GB a month
}

// PayAsYouGo returns the prices of that plan in the service's documents of
// PricesOf.
func PayAsYouGo() Prices {
	return Prices{Commands: 0.20, Storage: 0.25, FreeStorage: 1, Traffic: 0.03, FreeTraffic: 200}
}

// PricesOf is the year of the prices.
const PricesOf = "2026"

// Use says how filters of one size are used.
type Use struct {
	Bytes   uint64 // the size of one filter
	Filters uint64 // 0 counts as 1
	// Adds and Lookups are the commands of a day, in all filters together.
	Adds, Lookups float64
}

// A Month is what some filters use in 30 days. A GB is 10^9 bytes.
type Month struct {
	Filters   uint64
	Commands  float64
	StoredGB  float64
	TrafficGB float64
}

// Money is in US dollars.
type Money struct {
	Commands, Storage, Traffic, Total float64
}

// Month returns what is billed for a month, without the traffic.
func (u Use) Month() Month {
	filters := max(u.Filters, 1)
	return Month{
		Filters: filters, Commands: DaysAMonth * (u.Adds + u.Lookups),
		StoredGB: float64(filters) * float64(u.Bytes) / 1e9,
	}
}

// Money returns the price of the month.
func (m Month) Money(p Prices) Money {
	sum := Money{
		Commands: m.Commands / 100_000 * p.Commands,
		Storage:  max(m.StoredGB-p.FreeStorage, 0) * p.Storage,
		Traffic:  max(m.TrafficGB-p.FreeTraffic, 0) * p.Traffic,
	}
	sum.Total = sum.Commands + sum.Storage + sum.Traffic
	return sum
}
