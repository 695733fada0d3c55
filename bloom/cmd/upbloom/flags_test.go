package main

import (
	"math"
	"testing"
	"time"
)

func TestCounts(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "5": 5, "5M": 5e6, "5m": 5e6, "2.5k": 2500, "5e6": 5e6, "1G": 1e9, "2B": 2e9, "1_000": 1000,
		"5,000,000": 5e6, "18446744073709551615": math.MaxUint64,
	} {
		if n, err := parseCount(text); err != nil || n != want {
			t.Errorf("%q is %d, %v, want %d", text, n, err, want)
		}
	}
	for _, text := range []string{
		"", "M", "5MM", "-1", "1.5", "0.0001k", "1e30", "1e999", "nan", "inf", "0x10", "0x1p3", "many",
	} {
		if n, err := parseCount(text); err == nil {
			t.Errorf("%q is taken as %d", text, n)
		} else if large := text == "1e30" || text == "1e999"; large != (err.Error() == "it is too large") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRates(t *testing.T) {
	for text, want := range map[string]float64{
		"0.01": 0.01, "1e-3": 1e-3, "1%": 0.01, "0.5%": 0.005, "1/1000": 0.001, "2": 2,
	} {
		if p, err := parseRate(text); err != nil || p != want {
			t.Errorf("%q is %v, %v, want %v", text, p, err, want)
		}
	}
	for _, text := range []string{"", "%", "1/0", "0/0", "1/", "/2", "nan", "inf", "1in100", "1/2/3"} {
		if p, err := parseRate(text); err == nil {
			t.Errorf("%q is taken as %v", text, p)
		}
	}
}

func TestLifetimes(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "1d": day, "1.5d": 36 * time.Hour, "2w": 14 * day, "1w2d3h": 9*day + 3*time.Hour,
		"5ms": 5 * time.Millisecond, "0s": 0,
	} {
		if d, err := parseLifetime(text); err != nil || d != want {
			t.Errorf("%q is %v, %v, want %v", text, d, err, want)
		}
	}
	for want, texts := range map[error][]string{
		errLifetime: {"", "d", "1d2w", "-1d", "5", "1y", "1dd", "nand", "infw", "1h2"},
		errTooLong:  {"99999999d", "300000d", "106751d24h", "1e999d", "99999999h", "1d99999999999h5m", "9e300w"},
	} {
		for _, text := range texts {
			if d, err := parseLifetime(text); err != want {
				t.Errorf("%q is taken as %v, %v, want %v", text, d, err, want)
			}
		}
	}
}
