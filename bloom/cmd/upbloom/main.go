// Command upbloom looks at and moves the Bloom filters of an Upstash database.
//
//	go install github.com/upbloom/upbloom/bloom/cmd/upbloom@latest
//
//	upbloom ls                          what filters are there
//	upbloom info KEY                    how full is it, when does it expire
//	upbloom check KEY ITEM...           is it in
//	upbloom add KEY ITEM...             add items
//	upbloom load KEY [FILE]             add millions, a line each
//	upbloom save KEY FILE               download it
//	upbloom restore KEY FILE            bring it back
//	upbloom replace KEY [FILE]          rebuild it from the items of a file
//	upbloom calc --items N --rate P     what a filter costs
//	upbloom serve                       a server for tests, on this machine
//
// The database is that of UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN,
// or of KV_REST_API_URL and KV_REST_API_TOKEN. With --demo it is one in this
// process, with some filters in it, so that everything can be tried without an
// account. The secret seed of a filter is read from UPBLOOM_SEED, so that it
// stands in no shell history.
//
// Items are text in UTF-8. A line or an argument that is not is an error, which
// says its number, and then nothing is sent: a filter of other bytes would
// answer "no" to every program that asks with text.
//
// The exit status is:
//
//	0    all went well
//	1    check did not find an item
//	2    the command line, the environment or a file is wrong
//	3    there is no filter at the key, or another one, or other data
//	4    the database could not be reached, or refused
//	5    a write may have been made, or it was made and whether an item was new
//	     is not known
//	130  it was interrupted
//	141  whoever reads its output stopped reading, as head does
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v3"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second interrupt ends the program at once
	err := newApp(os.Stdin, os.Stdout, os.Stderr).Run(ctx, os.Args)
	stop()
	if err != nil {
		if !errors.Is(err, errNo) {
			text := plain(err)
			if exitStatus(err) == exitInterrupted {
				text = "interrupted: " + text
			}
			fmt.Fprintln(os.Stderr, "upbloom:", text)
		}
		os.Exit(exitStatus(err))
	}
}

// newApp is the whole command line.
func newApp(in io.Reader, out, errOut io.Writer) *cli.Command {
	a := &app{in: in, out: out, errOut: errOut}
	root := &cli.Command{
		Name:  "upbloom",
		Usage: "look at and move the Bloom filters of an Upstash database",
		Description: "The database is that of UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN, or of\n" +
			"KV_REST_API_URL and KV_REST_API_TOKEN. UPBLOOM_SEED is the seed of a filter that has one.\n\n" +
			"Items are text in UTF-8.\n\n" +
			"Exit status: 0 all went well, 1 an item was not found, 2 wrong usage or file, 3 no filter\n" +
			"at the key, or another, 4 the database could not be reached, or refused, 5 a write may\n" +
			"have been made.",
		Writer: out, ErrWriter: errOut,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "demo", Usage: "use a database in this process, with some filters in it"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON, for programs"},
			&cli.BoolFlag{Name: "quiet", Usage: "show no progress"},
		},
		Before: func(ctx context.Context, c *cli.Command) (context.Context, error) {
			a.demo, a.json, a.quiet = c.Bool("demo"), c.Bool("json"), c.Bool("quiet")
			return ctx, nil
		},
		After: func(context.Context, *cli.Command) error { a.close(); return nil },
		Commands: []*cli.Command{
			a.lsCommand(), a.infoCommand(), a.checkCommand(), a.addCommand(), a.loadCommand(),
			a.saveCommand(), a.restoreCommand(), a.replaceCommand(), a.calcCommand(), a.serveCommand(),
		},
		HideHelpCommand: true,
		OnUsageError:    usageErrorOf,
		Action: func(_ context.Context, c *cli.Command) error {
			if c.NArg() > 0 {
				var names []string
				for _, sub := range c.Commands {
					names = append(names, sub.Name)
				}
				return usagef("there is no command %q\nThe commands are %s; upbloom --help explains them.",
					c.Args().First(), strings.Join(names, ", "))
			}
			return cli.ShowRootCommandHelp(c)
		},
		ExitErrHandler: func(context.Context, *cli.Command, error) {}, // main prints and exits
	}
	for _, sub := range root.Commands {
		sub.OnUsageError = usageErrorOf
	}
	return root
}
