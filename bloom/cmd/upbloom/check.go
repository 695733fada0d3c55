package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
)

func (a *app) checkCommand() *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "look items up", ArgsUsage: "KEY ITEM... (or - for lines of standard input)",
		Description: "Prints yes or no for each item. A yes may be a false positive. The exit status\n" +
			"is 1 if any item is a no. With a read-only token a yes holds, but a no may be that of\n" +
			"a replica that lags: it is \"not done\", and the exit status 4. Lines of standard\n" +
			"input are answered as they come, up to 10,000 in a request. Of these, one that is not done\n" +
			"has no line, but with --json: a line on standard error counts them.",
		Action: func(ctx context.Context, c *cli.Command) error {
			args, err := a.arguments(c, 2, -1)
			if err != nil {
				return err
			}
			if len(args) == 2 && args[1] == "-" {
				return a.checkLines(ctx, c)
			}
			return a.each(ctx, c, looksUp)
		},
	}
}

// roundLines is how many lines of standard input one round asks for at most.
const roundLines = 10_000

// checkLines looks up the lines of standard input. Each round takes those that
// came during the one before.
func (a *app) checkLines(ctx context.Context, c *cli.Command) error {
	in, err := a.open(ctx, "-")
	if err != nil {
		return err
	}
	var h handle
	missing, answered := false, uint64(0)
	for items := range a.rounds(in, &err) {
		if h == nil {
			if h, err = a.handleFor(ctx, c, looksUp, items); err != nil {
				return err
			}
		}
		no, err := a.answers(ctx, h, looksUp, items, true)
		var failed *bloom.BatchError
		if answered > 0 && errors.As(err, &failed) {
			return advised{err, fmt.Sprintf("after %s: %s", human.Counted(answered, "answer"), plain(err))}
		}
		if err != nil {
			return err
		}
		missing, answered = missing || no, answered+uint64(len(items))
	}
	switch {
	case err != nil:
		return err
	case h == nil:
		return a.noItems()
	case missing:
		return errNo
	}
	return nil
}

// rounds returns the lines of r in rounds. It sets err as lines does, and prints
// the notes of lines at the end.
func (a *app) rounds(r io.Reader, err *error) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		lines, stop := make(chan string, roundLines-1), make(chan struct{})
		defer close(stop)
		reader, notes := *a, new(bytes.Buffer) // the caller may end before it
		reader.errOut = notes
		var readErr error
		go func() {
			defer close(lines)
			for item := range reader.lines(r, &readErr) {
				select {
				case lines <- item:
				case <-stop:
					return
				}
			}
		}()
		for first := range lines {
			round := []string{first}
			for range len(lines) {
				round = append(round, <-lines)
			}
			if !yield(round) {
				return
			}
		}
		_, _ = notes.WriteTo(a.errOut)
		*err = readErr
	}
}
