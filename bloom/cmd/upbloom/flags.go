package main

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
)

// A value is what a flag is set to, as people write it.
type value[T any] struct {
	is    T
	parse func(text string) (T, error)
}

func (v *value[T]) String() string { return fmt.Sprint(v.is) }

func (v *value[T]) Get() any { return v.is }

func (v *value[T]) Set(text string) (err error) {
	v.is, err = v.parse(text)
	return err
}

// valueOf returns the value of a flag, or zero if the command has none.
func valueOf[T any](c *cli.Command, name string) T {
	v, _ := c.Value(name).(T)
	return v
}

func countOf(c *cli.Command, name string) uint64           { return valueOf[uint64](c, name) }
func rateOf(c *cli.Command, name string) float64           { return valueOf[float64](c, name) }
func lifetimeOf(c *cli.Command, name string) time.Duration { return valueOf[time.Duration](c, name) }

func countFlag(usage, name string, aliases ...string) cli.Flag {
	return &cli.GenericFlag{
		Name: name, Aliases: aliases, Usage: usage, Value: &value[uint64]{parse: parseCount}, HideDefault: true,
	}
}

func rateFlag(usage, name string, rate float64, aliases ...string) cli.Flag {
	return &cli.GenericFlag{
		Name: name, Aliases: aliases, Usage: usage, Value: &value[float64]{rate, parseRate}, HideDefault: rate == 0,
	}
}

func lifetimeFlag(usage, name string) cli.Flag {
	return &cli.GenericFlag{
		Name: name, Usage: usage, Value: &value[time.Duration]{parse: parseLifetime}, HideDefault: true,
	}
}

// parseCount reads a number of items: 5000000, 5,000,000, 5M, 2.5k or 5e6.
func parseCount(text string) (uint64, error) {
	digits := strings.NewReplacer(",", "", "_", "").Replace(text)
	if whole, err := strconv.ParseUint(digits, 10, 64); err == nil {
		return whole, nil
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
	if f >= 1<<63 && !math.IsInf(f, 1) || errors.Is(err, strconv.ErrRange) {
		return 0, errors.New("it is too large")
	}
	if err != nil || strings.ContainsAny(digits, "xXpP") || !(f >= 0 && f < 1<<63) || f != math.Trunc(f) {
		return 0, errors.New("write a whole number such as 5000000, 5M or 5e6")
	}
	return uint64(f), nil
}

// parseRate reads a false positive rate: 0.01, 1e-3, 1% or 1/1000.
func parseRate(text string) (float64, error) {
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
		return 0, errors.New("write a rate such as 0.01, 1% or 1/1000")
	}
	return f, nil
}

var (
	errLifetime = errors.New("write a time such as 90m, 24h, 7d or 2w")
	errTooLong  = fmt.Errorf("it is too long: the longest time is %dd", math.MaxInt64/(24*time.Hour))
)

// short is a duration of package time, whose parser does not say that one is too
// long.
var short = regexp.MustCompile(`^(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`)

// parseLifetime reads a time to live: 90m, 24h, 1d, 2w or 1d12h.
func parseLifetime(text string) (time.Duration, error) {
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
		large := errors.Is(err, strconv.ErrRange)                            // n is infinite then
		if err != nil && !large || !(n >= 0) || math.IsInf(n, 1) && !large { // also refuses NaN
			return 0, errLifetime
		}
		rest, sum = after, sum+n*float64(u.length)
	}
	if rest != "" {
		d, err := time.ParseDuration(rest)
		switch {
		case err != nil && short.MatchString(rest):
			return 0, errTooLong
		case err != nil:
			return 0, errLifetime
		}
		sum += float64(d)
	}
	switch {
	case text == "":
		return 0, errLifetime
	case sum >= math.MaxInt64: // it would convert to an arbitrary time
		return 0, errTooLong
	}
	return time.Duration(sum), nil
}

// tooShort refuses a time to live of less than Redis has; or says what to do instead.
func tooShort(c *cli.Command, name, or string) error {
	if ttl := lifetimeOf(c, name); c.IsSet(name) && ttl < time.Millisecond {
		return usagef("--%s is %v: use at least 1ms%s", name, ttl, or)
	}
	return nil
}

// makeIfMissing is what --items does for a command that needs a filter.
const makeIfMissing = "make the filter if it is missing, for `N` items, e.g. 5M"

// sizeFlags are the flags that describe a new filter. The first is --items,
// with this usage. The others have an effect only with it.
func sizeFlags(items string) []cli.Flag {
	return []cli.Flag{
		countFlag(items, "items", "n"),
		rateFlag("false positive rate `P` of a new filter, e.g. 1% or 1/1000", "rate", 0.01, "p"),
		lifetimeFlag("let a new filter expire after `TIME`, e.g. 24h or 7d", "ttl"),
		&cli.StringFlag{
			Name: "scheme", Value: "blocked", HideDefault: true,
			Usage: "scheme `NAME`: blocked, the default, or xxh3: less memory, longer commands",
		},
	}
}

func noCount() error { return usagef("--items is 0: say how many items to expect, at least 1") }

// configOf returns the Config in the flags. Without --items its Capacity is 0,
// and the other sizeFlags are errors.
func (a *app) configOf(c *cli.Command) (bloom.Config, error) {
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
	switch err := tooShort(c, "ttl", ", or leave it out for a filter that stays"); {
	case cfg.Capacity == 0 && c.IsSet("items"):
		return cfg, noCount()
	case err != nil:
		return cfg, err
	case cfg.Capacity == 0:
		for _, name := range []string{"rate", "ttl", "scheme"} {
			if c.IsSet(name) {
				return cfg, usagef("--%s is for a new filter: it has no effect without --items", name)
			}
		}
		return bloom.Config{}, nil
	}
	cfg.Seed = a.seed
	return cfg, nil
}

// kindFlags are the flags that choose the kind of a new filter.
func kindFlags() []cli.Flag {
	return []cli.Flag{
		lifetimeFlag("a window, which finds an item for `SPAN`, e.g. 24h, and forgets it later",
			"window"),
		&cli.IntFlag{
			Name: "panes", HideDefault: true,
			Usage: "cut the window into `N` panes, 1 to 4: more forget sooner and take more memory",
		},
		&cli.BoolFlag{
			Name: "expire-idle", Usage: "let the window expire if nobody uses it until all in it is forgotten",
		},
		&cli.BoolFlag{
			Name:  "scalable",
			Usage: "a filter that grows: to 341 times --items, or 341,000, and to 100 MB",
		},
		&cli.BoolFlag{Name: "cuckoo", Usage: "a filter from which items can be removed"},
		&cli.IntFlag{Name: "shards", Usage: "a filter of `N` strings, 1 to 256", HideDefault: true},
	}
}

// notFor are the flags without effect on a kind.
var notFor = map[string][]string{
	plainKind:    {"panes", "expire-idle"},
	windowKind:   {"ttl", "scheme"},
	scalableKind: {"panes", "expire-idle", "scheme"},
	cuckooKind:   {"panes", "expire-idle", "ttl", "scheme"},
	shardedKind:  {"panes", "expire-idle", "ttl", "scheme"},
}

// chosenKind returns the kind that the flags choose. A flag without effect on
// that kind is an error.
func chosenKind(c *cli.Command) (string, error) {
	kind, flag := plainKind, ""
	for _, by := range []struct{ flag, kind string }{
		{"window", windowKind}, {"scalable", scalableKind}, {"cuckoo", cuckooKind}, {"shards", shardedKind},
	} {
		switch {
		case !c.IsSet(by.flag) || c.Value(by.flag) == false:
		case flag != "":
			return "", usagef("--%s and --%s: a filter is of one kind", flag, by.flag)
		default:
			kind, flag = by.kind, by.flag
		}
	}
	for _, name := range notFor[kind] {
		switch {
		case !c.IsSet(name):
		case name == "panes", name == "expire-idle":
			return "", usagef("--%s is for a window: it has no effect without --window", name)
		case name == "ttl":
			return "", usagef("--ttl has no effect with --%s: %s", flag, map[string]string{
				windowKind:  "--expire-idle lets a window expire",
				cuckooKind:  "a cuckoo filter does not expire",
				shardedKind: "a sharded filter does not expire; remove it with upbloom rm",
			}[kind])
		default:
			return "", usagef("--%s has no effect with --%s: leave it out", name, flag)
		}
	}
	if n := c.Int("panes"); c.IsSet("panes") && n < 1 {
		return "", usagef("--panes is %d: it must be from 1 to 4", n)
	}
	return kind, nil
}

// fillFlags are the flags of commands that may fill a filter too far.
func fillFlags() []cli.Flag {
	return []cli.Flag{
		rateFlag("refuse a false positive rate above `P`, e.g. 5%; fnv1a's is computed too low", "max-rate", 0),
		&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "fill the filter however far"},
	}
}

func yesFlag(usage string) cli.Flag {
	return &cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: usage}
}

func allowEmpty(usage string) cli.Flag { return &cli.BoolFlag{Name: "allow-empty", Usage: usage} }

// suited has the advice for a record too large suit the command line: it names
// the number of shards that suits most plans. If the command has no --items, what is
// saved or at the key decides the filter's size.
func suited(c *cli.Command, err error) error {
	large, ok := errors.AsType[*bloom.RecordTooLargeError](err)
	if !ok {
		return err
	}
	if large.Bytes != 0 && !c.IsSet("items") {
		says := fmt.Errorf("the filter's string of %s bytes is too large for one record of the database: choose a"+
			" larger plan, or fill a smaller filter from where its items come from", human.Count(large.Bytes))
		if batch, ok := errors.AsType[*bloom.BatchError](err); ok {
			says = &bloom.BatchError{Items: batch.Items, Err: says}
		}
		return advised{err, plain(says)}
	}
	text := plain(err)
	whole := bloom.ShardedConfig{Capacity: countOf(c, "items"), FPRate: rateOf(c, "rate")}
	if n, sizeErr := whole.MinShards(longestRecord); sizeErr == nil && n > 1 {
		text = strings.Replace(text, "--shards N", fmt.Sprintf("--shards %d", n), 1)
	}
	return advised{err, text}
}
