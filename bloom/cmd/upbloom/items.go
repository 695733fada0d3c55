package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
)

// itemsOf returns the arguments, or the lines of standard input if the only
// argument is "-".
func (a *app) itemsOf(ctx context.Context, args []string) ([]string, error) {
	if len(args) == 1 && args[0] == "-" {
		in, err := a.open(ctx, "-")
		if err != nil {
			return nil, err
		}
		items := slices.Collect(a.lines(in, &err))
		return items, err
	}
	for i, item := range args {
		if !utf8.ValidString(item) {
			return nil, usagef("item %d is not valid UTF-8: is the terminal set to another encoding?", i+1)
		}
	}
	return args, nil
}

func (a *app) checkCommand() *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "look items up", ArgsUsage: "KEY ITEM... (or - for lines of standard input)",
		Description: "Prints yes or no for each item. A yes may be a false positive. The exit status\n" +
			"is 1 if any item is a no.",
		Action: func(ctx context.Context, c *cli.Command) error {
			return a.each(ctx, c, false, "yes", "no", handle.ExistsAll)
		},
	}
}

func (a *app) addCommand() *cli.Command {
	return &cli.Command{
		Name: "add", Usage: "add items", ArgsUsage: "KEY ITEM... (or - for lines of standard input)",
		Description: "Prints new or seen for each item. A seen may be a false positive. Without\n" +
			"--items the filter must be there, of any kind. More than 1,000 lines of standard\n" +
			"input that would put a plain filter over its size are refused, as by load. A cuckoo\n" +
			"filter stores one more copy of an item that was seen.",
		Flags: slices.Concat(sizeFlags(), fillFlags()),
		Action: func(ctx context.Context, c *cli.Command) error {
			return a.each(ctx, c, true, "new", "seen", handle.AddAll)
		},
	}
}

// answer is what check or add prints of an item, for programs.
type answer struct {
	Item  string `json:"item"`
	Found *bool  `json:"found,omitempty"`
	New   *bool  `json:"new,omitempty"`
	Error string `json:"error,omitempty"`
}

// unasked is how many items add sends without a look at the filter before.
const unasked = 1000

// isOrMissing returns an error if the key holds anything but the filter of f. An
// Add would be told so too, but only after its bits were set there.
func (a *app) isOrMissing(ctx context.Context, f *bloom.Filter) error {
	want := f.Geometry()
	there, err := bloom.Open(ctx, a.client, a.key, bloom.OpenSeed(want.Seed))
	if err != nil {
		err = a.plainOnly(ctx, err)
	}
	switch {
	case errors.Is(err, bloom.ErrNotFound):
		return nil
	case err == nil && there.Geometry() != want:
		return &bloom.MismatchError{
			Want: want, Got: there.Geometry(), WantKind: bloom.KindFilter, GotKind: bloom.KindFilter,
		}
	}
	return err
}

// mayAdd is mayFill for items.
func (a *app) mayAdd(ctx context.Context, c *cli.Command, f *bloom.Filter, items []string) error {
	before, err := a.inspect(ctx)
	if err == nil {
		err = sameSize(before, f.Geometry())
	}
	if err != nil {
		return err
	}
	l := bloom.NewLocal(f.Geometry())
	for _, item := range items {
		l.Add(item)
	}
	return a.mayFill(ctx, c, f, l, before)
}

// handleFor opens the filter of check or of add. If adds is true, it looks whether
// the items may be added, and --items makes a plain filter.
func (a *app) handleFor(ctx context.Context, c *cli.Command, adds bool, items []string) (handle, error) {
	if adds {
		if cfg, err := configOf(c); err != nil {
			return nil, err
		} else if cfg.Capacity != 0 {
			f, err := a.filter(ctx, c, a.key, true)
			if err == nil && len(items) > unasked {
				err = a.mayAdd(ctx, c, f, items)
			}
			if err == nil {
				err = a.isOrMissing(ctx, f)
			}
			return f, err
		}
	}
	o, err := a.openKey(ctx, a.key)
	if adds && errors.Is(err, bloom.ErrNotFound) {
		return nil, makeable{err}
	}
	if err != nil || !adds {
		return o.handle, err
	}
	if f, ok := o.handle.(*bloom.Filter); ok {
		if len(items) > unasked {
			err = a.mayAdd(ctx, c, f, items)
		}
		return f, err
	}
	for _, name := range []string{"max-rate", "force"} {
		if c.IsSet(name) {
			return nil, usagef("--%s is for a plain filter: it has no effect on a %s", name, kindNoun(o.kind))
		}
	}
	return o.handle, nil
}

// each runs a batch and prints the word yes or the word no for each item, or
// what became of it if the batch failed.
func (a *app) each(ctx context.Context, c *cli.Command, adds bool, yes, no string,
	run func(handle, context.Context, []string) ([]bool, error),
) error {
	args, err := a.arguments(c, 2, -1)
	if err != nil {
		return err
	}
	items, err := a.itemsOf(ctx, args[1:])
	if err != nil {
		return err
	}
	h, err := a.handleFor(ctx, c, adds, items)
	if err != nil {
		return err
	}
	answers, err := run(h, ctx, items)
	if _, ok := h.(*bloom.Sharded); ok {
		err = shardMissing(err)
	}
	var batch *bloom.BatchError
	if err != nil && !errors.As(err, &batch) {
		return err
	}
	missing := false
	for i, item := range items {
		line := answer{Item: item}
		word := no
		if answers[i] {
			word = yes
		}
		switch {
		case batch != nil && batch.Items[i] != bloom.ItemDone:
			word, line.Error = batch.Items[i].String(), batch.Items[i].String()
		case adds:
			line.New = &answers[i]
		default:
			line.Found = &answers[i]
			missing = missing || !answers[i]
		}
		if err := a.print(line, fmt.Sprintf("%-4s  %s", word, printable(item))); err != nil {
			return err
		}
	}
	if err == nil && missing {
		return errNo
	}
	return err
}
