package main

import (
	"errors"
	"regexp"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
)

// makeIfMissing is what --items does for a command that needs a filter.
const makeIfMissing = "make the filter if it is missing, for `N` items, e.g. 5M"

// sizeFlags are the flags that describe a new filter. The first is --items,
// with this usage. The others have an effect only with it.
func sizeFlags(items string) []cli.Flag {
	return []cli.Flag{
		countFlag(items, "items", "n"),
		rateFlag("false positive rate `P` of a new filter, e.g. 1% or 1/1000", "rate", 0.01, "p"),
		lifetimeFlag("let a new filter expire after `TIME`, e.g. 24h or 7d", "ttl"),
		schemeFlag(),
	}
}

func schemeFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "scheme", Value: "blocked",
		Usage: "the scheme `NAME`: blocked, or xxh3, which takes less memory and longer commands",
	}
}

// configOf returns the Config of a plain filter in the flags. Without --items
// its Capacity is 0, and the other sizeFlags are errors.
func configOf(c *cli.Command) (bloom.Config, error) {
	cfg, err := sizeConfig(c)
	if err == nil && cfg.Capacity != 0 {
		_, err = cfg.Geometry()
	}
	return cfg, flagError(err)
}

// sizeConfig is configOf without the check that a plain filter can have the
// size.
func sizeConfig(c *cli.Command) (bloom.Config, error) {
	cfg := bloom.Config{
		Capacity: countOf(c, "items"), FPRate: rateOf(c, "rate"), TTL: lifetimeOf(c, "ttl"),
	}
	switch name := c.String("scheme"); name {
	case "blocked":
	case "xxh3":
		cfg.Scheme = bloom.SchemeXXH3
	default:
		return cfg, usagef("--scheme is %q: use blocked or xxh3", name)
	}
	switch {
	case cfg.Capacity == 0 && c.IsSet("items"):
		return cfg, usagef("--items is 0: say how many items to expect, at least 1")
	case c.IsSet("ttl") && cfg.TTL < time.Millisecond:
		return cfg, usagef("--ttl is %v: use at least 1ms, or leave it out for a filter that stays", cfg.TTL)
	case cfg.Capacity == 0:
		for _, name := range []string{"rate", "ttl", "scheme"} {
			if c.IsSet(name) {
				return cfg, usagef("--%s is for a new filter: it has no effect without --items", name)
			}
		}
		return bloom.Config{}, nil
	}
	s, err := seed()
	cfg.Seed = s
	return cfg, err
}

// flagError turns an error about a Config into one about the flag.
func flagError(err error) error {
	var config *bloom.ConfigError
	if !errors.As(err, &config) {
		return err
	}
	flag, ok := flagOf[config.Field]
	if !ok {
		flag = config.Field
	}
	return usagef("%s %s", flag, durations.ReplaceAllStringFunc(inFlags.Replace(config.Reason), inDays))
}

// durations finds those of package time: 2330h10m3s.
var durations = regexp.MustCompile(`\b([0-9]+h)?([0-9]+m)?[0-9.]+s\b`)

// inDays writes a duration as whoever types a flag writes it: 97d2h10m3s.
func inDays(text string) string {
	d, err := time.ParseDuration(text)
	if err != nil {
		return text
	}
	return human.Exact(d)
}
