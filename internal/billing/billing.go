// Package billing computes what filters cost in a month.
package billing

import (
	"math"
	"time"
)

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
	// Adds and Lookups are the commands of a day, in all filters together. Changes
	// is how many calls add: after each, a Mirror downloads its filter.
	Adds, Lookups, Changes float64
	// MaxStale is that of the Mirrors in front of the filters, or 0 without
	// Mirrors. Each filter has Copies of them, one in each process; 0 counts as
	// 1.
	MaxStale time.Duration
	Copies   uint64
	// Ticker is true if each Mirror is refreshed at half of MaxStale, ahead of
	// the calls, whether anybody asks or not.
	Ticker bool
}

// A Month is what some filters use in 30 days. A GB is 10^9 bytes.
type Month struct {
	Filters   uint64  `json:"filters"`
	Commands  float64 `json:"commands"`
	StoredGB  float64 `json:"storedGB"`
	Refreshes float64 `json:"refreshes"` // of Mirrors
	MirrorGB  float64 `json:"mirrorGB"`  // downloaded by Mirrors
}

// Money is in US dollars.
type Money struct {
	Commands float64 `json:"commands"`
	Storage  float64 `json:"storage"`
	Traffic  float64 `json:"traffic"`
	Total    float64 `json:"total"`
}

// A refresh of a Mirror costs refreshCommands. If the filter has changed, each
// part of the string costs partCommands more.
const (
	refreshCommands = 3
	partCommands    = 3
	mirrorPart      = 2 << 20
)

// Month returns what is billed for a month.
func (u Use) Month() Month {
	filters, size := max(u.Filters, 1), float64(u.Bytes)
	m := Month{
		Filters: filters, Commands: DaysAMonth * (u.Adds + u.Lookups),
		StoredGB: float64(filters) * size / 1e9,
	}
	if u.MaxStale <= 0 {
		return m
	}
	copies := float64(max(u.Copies, 1))
	// A look-up refreshes a copy that is too old. Each process downloads each
	// filter once at first, and after an Add one filter once at most.
	refreshes := copies * float64(filters) * float64(24*time.Hour) / float64(u.MaxStale)
	if u.Ticker {
		refreshes *= 2
	} else {
		refreshes = min(refreshes, u.Lookups)
	}
	m.Refreshes = DaysAMonth * refreshes
	downloads := min(m.Refreshes, copies*(float64(filters)+DaysAMonth*u.Changes))
	m.MirrorGB = downloads * size / 1e9
	m.Commands = DaysAMonth*u.Adds + refreshCommands*m.Refreshes + partCommands*downloads*math.Ceil(size/mirrorPart)
	return m
}

// Money returns the price of the month. Traffic is only that of Mirrors.
func (m Month) Money(p Prices) Money {
	sum := Money{
		Commands: m.Commands / 100_000 * p.Commands,
		Storage:  max(m.StoredGB-p.FreeStorage, 0) * p.Storage,
		Traffic:  max(m.MirrorGB-p.FreeTraffic, 0) * p.Traffic,
	}
	sum.Total = sum.Commands + sum.Storage + sum.Traffic
	return sum
}
