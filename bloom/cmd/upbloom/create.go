package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// made is the JSON of create.
type made struct {
	Key     string  `json:"key"`
	Kind    string  `json:"kind"`
	Created bool    `json:"created"`
	Bytes   uint64  `json:"bytes"`
	TTL     float64 `json:"ttl"` // in seconds, 0 without one
	Note    string  `json:"note,omitempty"`
}

func (a *app) createCommand() *cli.Command {
	return &cli.Command{
		Name: "create", Usage: "make an empty filter", ArgsUsage: "KEY",
		Description: "Makes the filter with its whole string and its TTL. If the key has a filter of the\n" +
			"same kind and size, it stays as it is. The filter is a plain one without --window,\n" +
			"--scalable, --cuckoo or --shards. All shards are in this database.",
		Flags: slices.Concat(sizeFlags("for `N` items, e.g. 5M; required"), kindFlags()),
		Action: func(ctx context.Context, c *cli.Command) error {
			args, err := a.arguments(c, 1, 1)
			if err != nil {
				return err
			}
			if !c.IsSet("items") {
				return usagef("--items is missing: say for how many items, e.g. upbloom create --items 5M KEY")
			}
			o, err := a.newOf(ctx, c, args[0])
			if err != nil {
				return err
			}
			there, err := a.openKey(ctx, args[0])
			switch {
			case err == nil && there.kind != o.kind:
				return advised{bloom.ErrNotFilter, fmt.Sprintf("the key holds a %s, and not a %s: use"+
					" another key, or remove it with upbloom rm", kindNoun(there.kind), kindNoun(o.kind))}
			case isHeadless(err) && o.kind != shardedKind, err != nil && !errors.Is(err, bloom.ErrNotFound):
				return err
			}
			a.wrote = true
			created, err := o.Create(ctx)
			if o.kind == shardedKind && errors.Is(err, bloom.ErrNotFound) {
				return advised{err, missingShards(err) + ", and others hold items: lost, or in another database;" +
					" nothing was changed: upbloom rm --rest removes the others"}
			}
			if err != nil {
				return suited(c, otherSize(err, o.kind))
			}
			s, _, err := o.stats(ctx)
			if err != nil {
				if created {
					err = written{err}
				}
				return advised{err, "the filter is there, but its state could not be read: " + plain(err)}
			}
			text, note := "created  "+sizeOf[o.kind]+o.Geometry().String(), ""
			switch {
			case !created:
				text, note = "it was there already, and is as it was  "+brief(s), a.keptTTL(ctx, c)
			case o.kind == shardedKind:
				text = fmt.Sprintf("created  sharded filter of %d, each shard %v", c.Int("shards"), o.Geometry())
			case o.kind == scalableKind:
				note = endOfGrowth(countOf(c, "items"), o.Geometry())
			}
			if note != "" {
				text += "\n" + note
			}
			return a.print(made{args[0], o.kind, created, s.Bytes, s.TTL, note}, text)
		},
	}
}

// otherSize explains the error of a Create if the key holds a filter of the
// same kind and another size.
func otherSize(err error, kind string) error {
	var mismatch *bloom.MismatchError
	if !errors.As(err, &mismatch) || mismatch.OtherSeed || mismatch.Field != "" ||
		mismatch.WantKind != mismatch.GotKind {
		return err
	}
	return advised{err, fmt.Sprintf("another %s is at this key, %v, and not %v: use another key, or the same"+
		" flags as then", kindNoun(kind), mismatch.Got, mismatch.Want)}
}

// sizeOf says what the Geometry of each kind describes.
var sizeOf = map[string]string{
	windowKind: "window, each pane ", scalableKind: "scalable filter, first layer ",
	cuckooKind: "cuckoo filter, ",
}

// kindFlags are the flags that choose the kind of a new filter.
func kindFlags() []cli.Flag {
	return []cli.Flag{
		lifetimeFlag("a window, which finds an item for `SPAN`, e.g. 24h, and forgets it later",
			"window"),
		&cli.IntFlag{
			Name: "panes", HideDefault: true,
			Usage: "cut the window's span into `N` panes, 1 to 4: with more it forgets sooner and takes more memory",
		},
		&cli.BoolFlag{
			Name: "expire-idle", Usage: "let the window expire if nobody uses it until all in it is forgotten",
		},
		&cli.BoolFlag{Name: "scalable", Usage: "a filter that grows, up to 341 times --items (below 1,000 as for 1,000)" +
			" and to 100 MB"},
		&cli.BoolFlag{Name: "cuckoo", Usage: "a filter from which items can be removed"},
		&cli.IntFlag{Name: "shards", Usage: "a filter of `N` strings, 1 to 256", HideDefault: true},
	}
}

// newOf returns a handle of the kind and the size in the flags.
func (a *app) newOf(ctx context.Context, c *cli.Command, key string) (opened, error) {
	kind, err := chosenKind(c)
	if err != nil {
		return opened{}, err
	}
	if kind == "" {
		f, err := a.filter(ctx, c, key, true)
		return a.ofFilter(f), err
	}
	cfg, err := sizeConfig(c)
	if err != nil {
		return opened{}, err
	}
	client, err := a.connect(ctx)
	if err != nil {
		return opened{}, err
	}
	var o opened
	switch kind {
	case "window":
		var w *bloom.Window
		w, err = bloom.NewWindow(client, key, bloom.WindowConfig{
			Capacity: cfg.Capacity, FPRate: cfg.FPRate, Seed: cfg.Seed,
			Span: lifetimeOf(c, "window"), Panes: c.Int("panes"), ExpireIdle: c.Bool("expire-idle"),
		})
		o = a.ofWindow(w)
	case "scalable":
		var l *bloom.Scalable
		l, err = bloom.NewScalable(client, key, bloom.ScalableConfig{
			Capacity: cfg.Capacity, FPRate: cfg.FPRate, Seed: cfg.Seed, TTL: cfg.TTL,
		})
		o = a.ofScalable(l)
	case "cuckoo":
		var f *bloom.Cuckoo
		f, err = bloom.NewCuckoo(client, key, bloom.CuckooConfig{
			Capacity: cfg.Capacity, FPRate: cfg.FPRate, Seed: cfg.Seed,
		})
		o = a.ofCuckoo(f)
	case "shards":
		var f *bloom.Sharded
		f, err = bloom.NewSharded([]*upstash.Client{client}, key, bloom.ShardedConfig{
			Capacity: cfg.Capacity, FPRate: cfg.FPRate, Seed: cfg.Seed,
			Shards: c.Int("shards"),
		})
		o = a.ofSharded(f)
	}
	return o, flagError(err)
}

// chosenKind returns the flag that chooses the kind, or "" for a plain filter.
// A flag without effect on that kind is an error.
func chosenKind(c *cli.Command) (string, error) {
	kind := ""
	for _, name := range []string{"window", "scalable", "cuckoo", "shards"} {
		switch {
		case !c.IsSet(name) || c.Value(name) == false:
		case kind != "":
			return "", usagef("--%s and --%s: a filter is of one kind", kind, name)
		default:
			kind = name
		}
	}
	without := map[string][]string{
		"": {"panes", "expire-idle"}, "window": {"ttl", "scheme"}, "scalable": {"panes", "expire-idle", "scheme"},
		"cuckoo": {"panes", "expire-idle", "ttl", "scheme"}, "shards": {"panes", "expire-idle", "ttl", "scheme"},
	}[kind]
	for _, name := range without {
		switch {
		case !c.IsSet(name):
		case name == "panes", name == "expire-idle":
			return "", usagef("--%s is for a window: it has no effect without --window", name)
		case name == "ttl" && kind == "window":
			return "", usagef("--ttl has no effect with --window: --expire-idle lets a window expire")
		case name == "ttl" && kind == "cuckoo":
			return "", usagef("--ttl has no effect with --cuckoo: a cuckoo filter does not expire")
		case name == "ttl" && kind == "shards":
			return "", usagef("--ttl has no effect with --shards: a sharded filter does not expire; remove it with" +
				" upbloom rm")
		default:
			return "", usagef("--%s has no effect with --%s: leave it out", name, kind)
		}
	}
	if n := c.Int("panes"); c.IsSet("panes") && n < 1 {
		return "", usagef("--panes is %d: it must be from 1 to 4", n)
	}
	return kind, nil
}
