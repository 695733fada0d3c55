package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"github.com/upbloom/upbloom/bloom"
)

// made is what create did, for programs.
type made struct {
	Key     string  `json:"key"`
	Created bool    `json:"created"`
	Bytes   uint64  `json:"bytes"`
	TTL     float64 `json:"ttl"` // in seconds, 0 if there is none
}

func (a *app) createCommand() *cli.Command {
	return &cli.Command{
		Name: "create", Usage: "make an empty filter", ArgsUsage: "KEY",
		Description: "Makes the filter with its whole string and its TTL. A filter of the same size that\n" +
			"is there stays as it is.",
		Flags: sizeFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			args, err := a.arguments(c, 1, 1)
			if err != nil {
				return err
			}
			if !c.IsSet("items") {
				return usagef("--items says for how many, e.g. upbloom create --items 5M KEY")
			}
			f, err := a.filter(ctx, c, args[0], true)
			if err != nil {
				return err
			}
			created, err := f.Create(ctx)
			if err != nil {
				return err
			}
			s, err := f.Stats(ctx)
			if err != nil {
				return fmt.Errorf("the filter is there, but its state could not be read: %w", err)
			}
			text := "created  " + s.Geometry.String()
			if !created {
				text = "it was there already, and is as it was  " + brief(s)
			}
			return a.print(made{args[0], created, s.Bytes, s.TTL.Seconds()}, text)
		},
	}
}

// expiring is what ttl found or did, for programs.
type expiring struct {
	Key string  `json:"key"`
	TTL float64 `json:"ttl"` // in seconds, 0 if there is none
}

func (a *app) ttlCommand() *cli.Command {
	return &cli.Command{
		Name: "ttl", Usage: "show or set when a filter expires", ArgsUsage: "KEY [TIME or none]",
		Description: "With a TIME, e.g. 24h or 7d, the filter expires after that time from now. With none\n" +
			"it stays. Programs whose Config has a TTL do not change it afterwards.",
		Action: func(ctx context.Context, c *cli.Command) error {
			args, err := a.arguments(c, 1, 2)
			if err != nil {
				return err
			}
			if len(args) == 2 {
				if err := a.setTTL(ctx, c, args[0], args[1]); err != nil {
					return err
				}
			}
			s, err := a.inspect(ctx)
			if err != nil {
				return err
			}
			if s == nil {
				return bloom.ErrNotFound
			}
			text := "no expiry"
			if s.TTL > 0 {
				text = "expires in " + ttl(s.TTL)
			}
			return a.print(expiring{args[0], s.TTL.Seconds()}, text)
		},
	}
}

func (a *app) setTTL(ctx context.Context, c *cli.Command, key, text string) error {
	var d lifetime
	if text != "none" {
		if err := d.Set(text); err != nil {
			return usagef("%q is no time: %v, or none", text, err)
		}
		if time.Duration(d) < time.Millisecond {
			return usagef("%q would remove the filter at once: use upbloom rm", text)
		}
	}
	f, err := a.filter(ctx, c, key, false)
	if err != nil {
		return err
	}
	found := true
	if text == "none" {
		_, err = f.Persist(ctx)
	} else {
		found, err = f.Expire(ctx, time.Duration(d))
	}
	if err == nil && !found {
		err = bloom.ErrNotFound
	}
	return err
}

// removed is what rm did, for programs.
type removed struct {
	Key     string `json:"key"`
	Removed bool   `json:"removed"`
}

func (a *app) rmCommand() *cli.Command {
	return &cli.Command{
		Name: "rm", Usage: "remove a filter", ArgsUsage: "KEY",
		Description: "Asks first. If standard input is no terminal, it needs --yes. A key that holds\n" +
			"anything but a filter is left alone.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "yes", Usage: "do not ask"}},
		Action: func(ctx context.Context, c *cli.Command) error {
			args, err := a.arguments(c, 1, 1)
			if err != nil {
				return err
			}
			f, err := a.filter(ctx, c, args[0], false)
			if err != nil {
				return err
			}
			if !c.Bool("yes") {
				if err := a.askToRemove(ctx); err != nil {
					return err
				}
			}
			gone, err := f.Delete(ctx)
			if err == nil && !gone {
				err = bloom.ErrNotFound
			}
			if err != nil {
				return err
			}
			return a.print(removed{args[0], true}, "removed")
		},
	}
}

// askToRemove shows what would be lost, and returns an error unless the answer
// is yes.
func (a *app) askToRemove(ctx context.Context) error {
	s, err := a.inspect(ctx)
	if err != nil {
		return err
	}
	if s == nil {
		return bloom.ErrNotFound
	}
	what := fmt.Sprintf("%s: %s", printable(a.key), brief(*s))
	if f, ok := a.in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return usagef("%s\nNothing was removed: --yes does it.", what)
	}
	fmt.Fprintf(a.errOut, "%s\nRemove it? Type yes: ", what)
	answer, err := bufio.NewReader(interruptible(ctx, a.in)).ReadString('\n')
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if answer = strings.TrimSpace(answer); err != nil || answer != "yes" && answer != "y" {
		return usagef("nothing was removed")
	}
	return nil
}
