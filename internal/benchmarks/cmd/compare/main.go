// Command compare measures package bloom beside other programs, and beside bare
// HTTP and Redis requests. It writes the figures of the README.
//
//	cd internal/benchmarks && go run ./cmd/compare
//
// All contestants of a contest take turns, and each has given the right answers
// before. A table shows medians over the rounds, and ratios of turns of the
// same round with their quartiles. It needs redis-server, and Node unless
// -node=false.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const day = 24 * time.Hour

func main() {
	if played, err := playRole(os.Args[1:]); played {
		exitOn(err)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exitOn(run(ctx, os.Stdout, os.Args[1:]))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// options are the command line's.
type options struct {
	settings
	node    bool
	only    *regexp.Regexp
	callers []int
	sizes   []int
	local   []int
	write   string
	readme  string
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 9, "counted rounds of each contest")
	flags.DurationVar(&o.turn, "turn", 0, "length of a turn; 0 leaves it to each part, some 17 minutes in all")
	flags.BoolVar(&o.node, "node", true, "let the filter on Node take part")
	only := flags.String("only", ".", "parts to run, a `regexp`: "+strings.Join(partNames(), ", "))
	callers := flags.String("callers", "1,64,1000", "numbers of concurrent callers")
	sizes := flags.String("sizes", "10,100,1000,10000", "items in a batch")
	local := flags.String("local", "10000,1000000,30000000,100000000", "items in a Local")
	flags.StringVar(&o.write, "write", "", "write tables and plots into this `folder`, as well as printing them")
	flags.StringVar(&o.readme, "readme", "", "put the first facts into this `file`, between the marks in it")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.rounds < 1 || o.turn < 0 || flags.NArg() > 0 {
		return o, fmt.Errorf("use at least one round, no turn below 0 and flags alone; see -help")
	}
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, err
	}
	if o.callers, err = numbers(*callers); err != nil {
		return o, err
	}
	if o.sizes, err = numbers(*sizes); err != nil {
		return o, err
	}
	o.local, err = numbers(*local)
	return o, err
}

// short reports whether a run only checks that everything works.
func (o options) short() bool { return o.turn > 0 && o.turn < 100*time.Millisecond }

func numbers(text string) (list []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q: use numbers above 0 between commas", text)
		}
		list = append(list, n)
	}
	return list, nil
}

func run(ctx context.Context, out io.Writer, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	a, err := newArena(ctx, o.node)
	defer func() { // stopping and removing take a moment
		cancel()
		time.Sleep(100 * time.Millisecond)
	}()
	if err != nil {
		return err
	}
	r := &report{out: out, folder: o.write}
	if o.write != "" {
		if err := os.MkdirAll(o.write, 0o755); err != nil {
			return err
		}
	}
	for _, p := range parts {
		if !o.only.MatchString(p.name) {
			continue
		}
		o := o
		if o.turn == 0 {
			o.turn = p.turn
		}
		r.begin(o)
		err := p.run(a, o, r)
		if err == nil {
			err = r.end(p.name)
		}
		if err != nil {
			// If the run ends early, the measurements before stay.
			return errors.Join(fmt.Errorf("%s: %w", p.name, err), r.writeTargets(o), r.writeFacts(o.readme))
		}
	}
	return errors.Join(r.writeTargets(o), r.writeFacts(o.readme))
}
