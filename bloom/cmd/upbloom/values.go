package main

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"
)

// These are the values of flags, as people write them.

// count is a number of items: 5000000, 5,000,000, 5M, 2.5k or 5e6.
type count uint64

func (n *count) String() string { return strconv.FormatUint(uint64(*n), 10) }
func (n *count) Get() any       { return n }

var errCount = errors.New("write a whole number such as 5000000, 5M or 5e6")

func (n *count) Set(text string) error {
	digits := strings.NewReplacer(",", "", "_", "").Replace(text)
	if whole, err := strconv.ParseUint(digits, 10, 64); err == nil {
		*n = count(whole)
		return nil
	}
	unit := 1.0
	for _, u := range []struct {
		letters string
		times   float64
	}{{"kK", 1e3}, {"mM", 1e6}, {"gGbB", 1e9}} {
		if short := strings.TrimRight(digits, u.letters); len(short) == len(digits)-1 {
			digits, unit = short, u.times
			break
		}
	}
	f, err := strconv.ParseFloat(digits, 64)
	f *= unit
	if err != nil || strings.ContainsAny(digits, "xXpP") || !(f >= 0 && f < 1<<63) || f != math.Trunc(f) {
		return errCount
	}
	*n = count(f)
	return nil
}

// rate is a false positive rate: 0.01, 1e-3, 1% or 1/1000.
type rate float64

func (p *rate) String() string { return strconv.FormatFloat(float64(*p), 'g', -1, 64) }
func (p *rate) Get() any       { return p }

var errRate = errors.New("write a rate such as 0.01, 1% or 1/1000")

func (p *rate) Set(text string) error {
	f, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if strings.HasSuffix(text, "%") {
		f /= 100
	}
	if one, n, ok := strings.Cut(text, "/"); ok {
		var above, below float64
		above, err = strconv.ParseFloat(one, 64)
		if err == nil {
			below, err = strconv.ParseFloat(n, 64)
		}
		f = above / below
	}
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return errRate
	}
	*p = rate(f)
	return nil
}

// lifetime is a time to live: 90m, 24h, 1d, 2w or 1d12h.
type lifetime time.Duration

func (d *lifetime) String() string { return time.Duration(*d).String() }
func (d *lifetime) Get() any       { return d }

var errLifetime = errors.New("write a time such as 90m, 24h, 7d or 2w")

func (d *lifetime) Set(text string) error {
	rest, sum := text, 0.0
	for _, u := range []struct {
		letter string
		length time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		number, after, ok := strings.Cut(rest, u.letter)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || !(n >= 0) { // also refuses NaN
			return errLifetime
		}
		rest, sum = after, sum+n*float64(u.length)
	}
	short := time.Duration(0)
	if rest != "" {
		var err error
		if short, err = time.ParseDuration(rest); err != nil {
			return errLifetime
		}
	}
	// A float64 beyond an int64 would convert to an arbitrary time.
	if sum += float64(short); text == "" || sum >= math.MaxInt64 {
		return errLifetime
	}
	*d = lifetime(sum)
	return nil
}

// countOf returns the value of a countFlag, or 0 if it is not set.
func countOf(c *cli.Command, name string) uint64 {
	if n, ok := c.Generic(name).(*count); ok {
		return uint64(*n)
	}
	return 0
}

func rateOf(c *cli.Command, name string) float64 {
	if p, ok := c.Generic(name).(*rate); ok {
		return float64(*p)
	}
	return 0
}

func lifetimeOf(c *cli.Command, name string) time.Duration {
	if d, ok := c.Generic(name).(*lifetime); ok {
		return time.Duration(*d)
	}
	return 0
}

func countFlag(usage, name string, aliases ...string) cli.Flag {
	return &cli.GenericFlag{
		Name: name, Aliases: aliases, Usage: usage, Value: new(count), HideDefault: true,
	}
}

func rateFlag(usage, name string, value rate, aliases ...string) cli.Flag {
	return &cli.GenericFlag{
		Name: name, Aliases: aliases, Usage: usage, Value: &value, HideDefault: value == 0,
	}
}

func lifetimeFlag(usage, name string) cli.Flag {
	return &cli.GenericFlag{Name: name, Usage: usage, Value: new(lifetime), HideDefault: true}
}
