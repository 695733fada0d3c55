// Command upbloom looks at and moves the Bloom filters of an Upstash database.
//
//	go install github.com/upbloom/upbloom/bloom/cmd/upbloom@latest
//
//	upbloom ls                          what filters are there
//	upbloom info KEY                    how full is it, when does it expire
//	upbloom check KEY ITEM...           is it in
//	upbloom add KEY ITEM...             add items
//	upbloom remove KEY ITEM...          take items out of a cuckoo filter
//	upbloom create KEY --items N        make an empty one
//	upbloom load KEY [FILE]             add millions, a line each
//	upbloom replace KEY [FILE]          make its items those of a file
//	upbloom save KEY FILE               download it
//	upbloom restore KEY FILE            bring it back
//	upbloom ttl KEY [TIME]              show or set when it expires
//	upbloom rm KEY                      remove it
//	upbloom calc --items N --rate P     what each type, a set and keys cost
//	upbloom seed                        print a new secret seed
//	upbloom doctor                      does a database keep upbloom's promises
//	upbloom serve                       a server for tests, on this machine
//	upbloom completion bash             TAB completes commands and flags
//
// It uses the database of UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN,
// or of KV_REST_API_URL and KV_REST_API_TOKEN. With --demo it uses a database
// in this process, with some filters in it: everything can be tried without an
// account. The secret seed of a filter comes from UPBLOOM_SEED, because others
// on the machine can see the arguments of a program.
//
// Items are text in UTF-8. If a line or an argument is not, the error names its
// number and nothing is changed: a filter of other bytes would answer "no" to
// every program that asks with text. A byte order mark is not part of the first
// item, and in front of another it is refused, as are compressed files, saved
// filters and lines with a zero byte.
//
// A filter is a plain one, a window, a scalable, a cuckoo or a sharded one.
// create has a flag for each kind, and the other commands recognize it. load is
// for plain and sharded filters, replace for plain ones. save and restore are for
// every kind, and for each shard by itself. restore leaves a filter that is there
// alone, unless --replace or --merge is set. ttl sets the expiry of plain and
// scalable ones. All shards of a sharded filter must be in the one database.
//
// What to do if something is wrong with a filter stands in bloom/RUNBOOK.md.
//
// A command asks first, or refuses and names the flag it wants, if it would
// remove a filter or most of its items, or fill it far beyond its size. add looks
// only for more than 1,000 items, for too many for an empty filter, and with
// --max-rate. remove does what it is told.
//
// rm, save and restore do the same for many filters with --match PATTERN. They list
// them, and ask for their number. What fails does not stop the rest. It is listed,
// and the exit status is the highest of all.
//
// A shell completes the commands and flags with what upbloom completion prints
// for bash, zsh, fish or pwsh: source <(upbloom completion bash). Tests run the
// first three; what it prints for pwsh was never run.
//
// # JSON
//
// With --json a command prints an object, ls a list of them. check, add, remove
// and doctor print one a line, for each item or check, as do rm, save and restore
// with --match, for each filter. Times are in seconds, with fractions. A rate of
// false positives, a fill and other shares are from 0 to 1. A field in parentheses
// is missing if it is not known or does not apply, and most of them if they are 0
// or false.
//
//	ls, info; before and after of replace and restore:
//	  key
//	  kind               filter, window, scalable, cuckoo, sharded or shard
//	  scheme             blocked, xxh3, fnv1a or cuckoo
//	  bits, hashes       of one pane, of the first layer, of one shard;
//	                     hashes of a cuckoo filter: slots in a bucket
//	  seeded             it has a secret seed
//	  bytes              length now, of all shards together
//	  setBits            of all panes, layers or shards together
//	  saturated          all bits are set, or those of a pane or shard
//	  ttl                until it expires; 0: it does not
//	  (fill)             share of set bits, of all parts; of a cuckoo filter the
//	                     share of slots taken
//	  (items)            estimate of the distinct ones, too low if saturated, and
//	                     up to 40% low of fnv1a; of panes or layers their sum,
//	                     though an item may be in several; exact in a cuckoo
//	                     filter, with copies
//	  (rate)             of now; 0 if it is empty; of fnv1a a lower bound, even a
//	                     tiny one, which without --json is "not known"
//	  (capacity)         items that the filter was made for, within 1%, or more of
//	                     a small one; of a scalable filter with all its layers; not
//	                     if the string does not say it, as of one made for a rate
//	                     above 1 in 4, or by another program
//	  (rateAtCapacity)   the rate with so many items
//	  (parts)            panes, the next to be filled first; layers, the newest
//	                     last; shards by number. ls has them, and fill, items
//	                     and rate, of windows and layers only with the seed
//	  (maxParts)         how many parts there can be
//	  (paneSeconds)      how long a pane of a window is filled
//	  (spanSeconds)      how long a window finds an item after its last Add; it
//	                     forgets it two panes and 5 s later at the latest
//	  (damaged)          something else wrote to a cuckoo filter: info finds out
//	  (front)            info, of a plain filter: so much of the string's front is
//	                     fuller than the rest, by bits of a smaller filter
//	parts; holds of load:
//	  bits, setBits, fill, items, rate, (saturated)
//	                     items and rate of fnv1a as above
//	  (bytes)            of a shard's string; of what a pane or a layer takes of it
//	  (capacity)         items that it is sized for, of a shard with a margin
//	  (newest)           the pane takes the items of now
//	ls, of a filter that cannot be read:
//	  key, error
//	ls --total, of each kind, and of all:
//	  kind, filters
//	  strings            keys: a sharded filter has several
//	  bytes              their lengths together
//	  overCapacity       so many of the strings
//	  expire             the same
//	one that failed, of rm, save and restore with --match:
//	  key, error, exit
//	check, add, remove:
//	  item
//	  (found)            check: it is in; false is given
//	  (new)              add: it was not in; false is given
//	  (removed)          remove: it was in; false is given
//	  (error)            instead of these: not done, uncertain or unknown
//	create:
//	  key, kind, ttl
//	  created            false: it was there already
//	  bytes              length now
//	  (note)             what to know of its growth, or that --ttl had no effect
//	load, replace, save, restore:
//	  key
//	  (items)            load, replace: lines read
//	  (first, last)      load, replace: of these items
//	  (newBits)          load, restore: bits that were 0 before; 0 is given; not
//	                     of restore --replace
//	  (created)          load, restore: the filter was made
//	  bytes              sent; of replace and restore --replace the length of the
//	                     filter; of save that of the file
//	  (requests)         load, restore, but not --replace
//	  (commands)         the same: billed
//	  seconds            from start to end
//	  (before)           replace, restore: the filter, if there was one
//	  (after)            replace, restore: the filter, if it could be read
//	  (holds)            load: what is in now, of shards in all of them
//	  (note)             load: a flag had no effect; restore: how much of a window
//	                     still counts, or which filter it was; replace and restore:
//	                     what fails from now on; save: the filter is damaged; in
//	                     words
//	  (from)             restore: what the file says
//	  (host)             replace: of the database
//	from of restore:
//	  (key, host)        of the filter and its database
//	  (saved)            when, as 2027-01-31T03:00:00Z
//	  (expires)          the same
//	  (birth)            the birth number of the filter
//	ttl:
//	  key
//	  ttl                until it expires; 0: it does not
//	rm:
//	  key, removed
//	  host               of the database
//	calc:
//	  items, rate        as wanted
//	  adds, lookups      a month
//	  batch, regions     items in a call, read regions beside the primary
//	  (stale, processes)  MaxStale in seconds of a Mirror in each process
//	  ways
//	  cheapest           their names, at the prices of the table
//	ways of calc:
//	  way                filter, window, scalable, cuckoo, sharded, set or keys with EX;
//	                     with regions also filter with ReadsNearest; with stale
//	                     also Mirror, of a filter, and Mirror of a window
//	  bytes              memory; of a filter the length of its strings
//	  addCommands        billed for a call with new items
//	  againCommands      for one with items that are in
//	  lookupCommands     for one with look-ups
//	  commands           in the month
//	  (refreshes)        of the Mirrors, in the month
//	  trafficGB          requests and answers with their headers, in 10^9 bytes
//	  peakRate           commands a second, taken as 5 times the average
//	  money              in US dollars, pay as you go
//	  (fixedPlan)        the cheapest fixed plan that takes all this
//	  (fixedMoney)       its price, with the read regions
//	  (impossible)       why there is none for the items at the rate
//	seed:
//	  seed               decimal, as text
//	doctor:
//	  check
//	  verdict            ok, note, FAIL or skipped
//	  says               the reason, in words
//	  (needs)            of a FAIL: what does not work without it
//	serve:
//	  url, token, readOnlyToken
//	an error, on standard error:
//	  error              in words
//	  exit               the exit status
//
// # Exit status
//
// The exit status is:
//
//	0    all went well
//	1    check or remove did not find an item
//	2    the command line, the environment or a file is wrong, or the command
//	     was refused before it changed anything
//	3    there is no filter at the key, or another one, or other data
//	4    the database could not be reached, or refused, or doctor found a FAIL
//	5    a write may have been made, or it was made and its result is not known,
//	     or could not be printed
//	130  it was interrupted, by Ctrl-C, SIGTERM or a terminal that closed; 5 if a
//	     write may have been made; a second interrupt ends it at once; serve,
//	     which runs until then, ends with 0
//	141  whoever reads its output stopped reading, as head does
package main

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/upstash"
)

func main() { program() }

// program is main. Only tests have options.
func program(opts ...upstash.Option) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a write fails instead
	a := &app{in: os.Stdin, out: output{os.Stdout}, errOut: os.Stderr, options: opts}
	os.Exit(exitStatus(a.run(untilInterrupted(), os.Args)))
}

// untilInterrupted returns a context that ends with an interrupt (SIGINT,
// SIGTERM, or SIGHUP of a terminal that closes). From then on another one ends
// the program at once. If SIGHUP is ignored, as under nohup, it stays so.
func untilInterrupted() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(interrupt, syscall.SIGHUP)
	}
	go func() {
		<-interrupt
		signal.Stop(interrupt) // first: whoever sees the end of ctx may send another
		cancel(errInterrupted)
	}()
	return ctx
}

// run runs the command line, and prints its error.
func (a *app) run(ctx context.Context, args []string) error {
	root, help := a.root(), new(bytes.Buffer)
	root.Writer = help
	err := a.complete(root, args[1:])
	if err == nil {
		err = a.unsure(a.notChanged(root.Run(ctx, args)))
	}
	if isA[cli.ExitCoder](err) {
		// --help with an argument, which the parser takes for a subcommand.
		name := root.Args().First()
		err = unknownCommand(root, name)
		if root.Command(name) != nil {
			err = cli.ShowCommandHelp(ctx, root, name)
		}
	}
	if err == nil {
		err = helpAlone(root)
	}
	if err == nil {
		_, err = help.WriteTo(a.out)
	}
	behindBar := atomic.LoadInt32(&a.inLine) == 1 && err != nil
	if behindBar || a.typed() && errors.Is(err, context.Canceled) { // behind ^C
		fmt.Fprintln(a.errOut)
	}
	switch {
	case err == nil, errors.Is(err, errNo), errors.Is(err, errNoReader):
	case a.json || slices.Contains(args, "--json"): // a.json is not set yet if a flag is wrong
		_ = writeJSON(a.errOut, failure{a.message(err), exitStatus(err)})
	default:
		fmt.Fprintln(a.errOut, "upbloom:", a.message(err))
	}
	return err
}

// helpAlone refuses --help beside a key or an item: what a variable of the shell
// holds may be called so, and a script would take the help for an answer.
func helpAlone(root *cli.Command) error {
	name, rest := root.Args().First(), root.Args().Tail()
	sub := root.Command(name)
	if sub != nil && !root.Bool("help") {
		rest = sub.Args().Slice()
	}
	if sub == nil || len(rest) == 0 || !sub.Bool("help") && !root.Bool("help") {
		return nil
	}
	return usagef("--help or -h stands beside a key or an item: upbloom help %s explains the command, and behind -- it"+
		" is an item", name)
}

// failure is the JSON of an error.
type failure struct {
	Error string `json:"error"`
	Exit  int    `json:"exit"`
}

// root returns the command line's definition.
func (a *app) root() *cli.Command {
	root := &cli.Command{
		Name:        "upbloom",
		Usage:       "look at and move the Bloom filters of an Upstash database",
		Description: description("upbloom"),
		Version:     version(),
		Writer:      a.out, ErrWriter: a.errOut,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "demo", Usage: "use a database in this process, with some filters in it"},
			&cli.BoolFlag{
				Name:  "json",
				Usage: "print JSON, for programs; errors too, to standard error; go doc lists its fields",
			},
			&cli.BoolFlag{Name: "quiet", Usage: "show no progress, and no line about waiting for the database or for input"},
		},
		Before: func(ctx context.Context, c *cli.Command) (context.Context, error) {
			a.demo, a.json, a.quiet = c.Bool("demo"), c.Bool("json"), c.Bool("quiet")
			return ctx, nil
		},
		After: func(context.Context, *cli.Command) error { a.close(); return nil },
		Commands: []*cli.Command{
			a.lsCommand(), a.infoCommand(), a.checkCommand(), a.addCommand(), a.removeCommand(),
			a.createCommand(), a.loadCommand(), a.replaceCommand(), a.saveCommand(), a.restoreCommand(),
			a.ttlCommand(), a.rmCommand(), a.calcCommand(), a.seedCommand(), a.doctorCommand(), a.serveCommand(),
			a.helpCommand(), a.completionCommand(),
		},
		HideHelpCommand: true,
		OnUsageError:    usageErrorOf,
		Action: func(_ context.Context, c *cli.Command) error {
			if c.NArg() > 0 {
				return unknownCommand(c, c.Args().First())
			}
			return cli.ShowRootCommandHelp(c)
		},
		ExitErrHandler: func(context.Context, *cli.Command, error) {}, // main prints and exits
	}
	for _, sub := range root.Commands {
		sub.OnUsageError, sub.Description = usageErrorOf, description(sub.Name)
	}
	return root
}

// helpTexts are what the help of the program and of each command explains.
//
//go:embed help
var helpTexts embed.FS

func description(command string) string {
	text, _ := helpTexts.ReadFile("help/" + command + ".txt") // help itself has none
	return strings.TrimSpace(string(text))
}

func (a *app) helpCommand() *cli.Command {
	return &cli.Command{
		Name: "help", Usage: "explain a command", ArgsUsage: "[COMMAND]",
		Action: a.taking(0, 1, func(ctx context.Context, c *cli.Command, args []string) error {
			if len(args) == 0 {
				return cli.ShowRootCommandHelp(c.Root())
			}
			if c.Root().Command(args[0]) == nil {
				return unknownCommand(c.Root(), args[0])
			}
			return cli.ShowCommandHelp(ctx, c.Root(), args[0])
		}),
	}
}

// release is the version that .ci/release builds, with -X.
var release string

// version returns the release, or else the module's version or the revision of
// the build.
func version() string {
	of := release
	if info, ok := debug.ReadBuildInfo(); ok && of == "" {
		of = info.Main.Version
	}
	return fmt.Sprintf("%s, %s, %s/%s", cmp.Or(of, "(unknown)"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
