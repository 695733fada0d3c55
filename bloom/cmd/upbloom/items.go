package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"unicode/utf8"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
)

// maxLine is the longest item that is read from a file.
const maxLine = 1 << 20

// lines returns the items of a file, one a line, without the end of the line.
// Empty lines are skipped. It stops at a line that is no item, or if reading
// fails, and sets err.
func lines(r io.Reader, err *error) iter.Seq[string] {
	return func(yield func(string) bool) {
		s := bufio.NewScanner(r)
		s.Buffer(make([]byte, 64<<10), maxLine)
		n := 0
		for s.Scan() {
			n++
			item := s.Text()
			if !utf8.ValidString(item) {
				*err = usagef("line %d is not valid UTF-8: convert the file first, e.g. with"+
					" iconv -f LATIN1 -t UTF-8", n)
				return
			}
			if item != "" && !yield(item) {
				return
			}
		}
		if *err = s.Err(); errors.Is(*err, bufio.ErrTooLong) {
			*err = usagef("line %d is longer than %d bytes: an item is a line", n+1, maxLine)
		}
	}
}

// itemsOf returns the arguments, or the lines of standard input if the only
// argument is "-".
func (a *app) itemsOf(ctx context.Context, args []string) ([]string, error) {
	if len(args) == 1 && args[0] == "-" {
		var err error
		items := slices.Collect(lines(interruptible(ctx, a.in), &err))
		return items, err
	}
	for i, item := range args {
		if !utf8.ValidString(item) {
			return nil, usagef("item %d is not valid UTF-8: is the terminal set to another encoding?", i+1)
		}
	}
	return args, nil
}

// interruptible returns a reader of r that fails when the context ends. A read
// of a terminal or of a pipe would wait on.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() {
		_ = in.CloseWithError(fmt.Errorf("standard input was not read to its end: %w", ctx.Err()))
	})
	go func() {
		_, err := io.Copy(in, r)
		_ = in.CloseWithError(err)
	}()
	return out
}

func (a *app) checkCommand() *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "look items up", ArgsUsage: "KEY ITEM... (or - for lines of standard input)",
		Description: "Prints yes or no for each item. A yes may be a false positive. The exit status\n" +
			"is 1 if any item is a no.",
		Action: func(ctx context.Context, c *cli.Command) error {
			return a.each(ctx, c, false, "yes", "no", (*bloom.Filter).ExistsAll)
		},
	}
}

func (a *app) addCommand() *cli.Command {
	return &cli.Command{
		Name: "add", Usage: "add items", ArgsUsage: "KEY ITEM... (or - for lines of standard input)",
		Description: "Prints new or seen for each item. A seen may be a false positive. Without\n" +
			"--items the filter must be there.",
		Flags: sizeFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			return a.each(ctx, c, true, "new", "seen", (*bloom.Filter).AddAll)
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

// each runs a batch and prints the word yes or the word no for each item, or
// what became of it if the batch failed.
func (a *app) each(ctx context.Context, c *cli.Command, adds bool, yes, no string,
	run func(*bloom.Filter, context.Context, []string) ([]bool, error),
) error {
	args, err := arguments(c, 2, -1)
	if err != nil {
		return err
	}
	items, err := a.itemsOf(ctx, args[1:])
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
