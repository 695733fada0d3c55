package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
)

// maxLine is the longest item that is read from a file.
const maxLine = 1 << 20

// lines is a file's items, one a line, without the line's end; empty lines are
// skipped. err is set if reading fails.
func lines(r io.Reader, err *error) iter.Seq[string] {
	return func(yield func(string) bool) {
		s := bufio.NewScanner(r)
		s.Buffer(make([]byte, 64<<10), maxLine)
		for s.Scan() {
			if item := s.Text(); item != "" && !yield(item) {
				return
			}
		}
		if *err = s.Err(); errors.Is(*err, bufio.ErrTooLong) {
			*err = usagef("a line is longer than %d bytes", maxLine)
		}
	}
}

// itemsOf are the arguments, or the lines of standard input for a single "-".
func (a *app) itemsOf(args []string) ([]string, error) {
	if len(args) != 1 || args[0] != "-" {
		return args, nil
	}
	var err error
	items := slices.Collect(lines(a.in, &err))
	return items, err
}

func (a *app) checkCommand() *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "look items up", ArgsUsage: "KEY ITEM... (or - for lines of standard input)",
		Description: "Prints yes or no for each item. A yes may be a false positive. The exit status is 1 if any\n" +
			"is a no.",
		Action: func(ctx context.Context, c *cli.Command) error {
			return a.each(ctx, c, false, "yes", "no", (*bloom.Filter).ExistsAll)
		},
	}
}

func (a *app) addCommand() *cli.Command {
	return &cli.Command{
		Name: "add", Usage: "add items", ArgsUsage: "KEY ITEM... (or - for lines of standard input)",
		Description: "Prints new or seen for each item. Without --items the filter must be there.",
		Flags:       sizeFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			return a.each(ctx, c, true, "new", "seen", (*bloom.Filter).AddAll)
		},
	}
}

// answer is one line of check or add, for programs.
type answer struct {
	Item  string `json:"item"`
	Found *bool  `json:"found,omitempty"`
	New   *bool  `json:"new,omitempty"`
	Error string `json:"error,omitempty"`
}

// each runs a batch and prints an answer for each item.
func (a *app) each(ctx context.Context, c *cli.Command, adds bool, yes, no string,
	run func(*bloom.Filter, context.Context, []string) ([]bool, error),
) error {
	args, err := arguments(c, 2, -1)
	if err != nil {
		return err
	}
	items, err := a.itemsOf(args[1:])
	if err != nil {
		return err
	}
	f, err := a.filter(ctx, c, args[0], adds)
	if err != nil {
		return err
	}
	answers, err := run(f, ctx, items)
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
