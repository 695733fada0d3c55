// Command compare measures package bloom beside other programs, and beside bare
// HTTP and Redis requests. README.md of this module says what it measures and how.
//
//	cd internal/benchmarks && go run ./cmd/compare
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
)

const ms = time.Millisecond

// A part of a run measures one thing and prints it.
type part struct {
	name string
	turn time.Duration // the length of a turn, unless the command line says it
	run  func(a *arena, r *report) error
}

var parts = []part{
	{"calls", 400 * ms, measureCalls},
	{"batches", 200 * ms, measureBatches},
	{"local", 250 * ms, measureLocal},
	{"billed", 0, countBilled},
	{"cold", 400 * ms, measureColdStart},
	{"rates", 0, measureRates},
}

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
	node          bool
	only          *regexp.Regexp
	write, readme string
}

func parse(args []string) (o options, err error) {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 9, "counted rounds of each contest")
	flags.DurationVar(&o.turn, "turn", 0, "length of a turn; 0 leaves it to each part")
	flags.BoolVar(&o.node, "node", true, "let the filter on Node take part")
	only := flags.String("only", ".", "parts to run, a `regexp`: "+strings.Join(names, ", "))
	flags.StringVar(&o.write, "write", "", "write the tables into this `file`, as well as printing them")
	flags.StringVar(&o.readme, "readme", "", "put the three facts into this `file`, between the marks in it")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.rounds < 1 || o.turn < 0 || flags.NArg() > 0 {
		return o, errors.New("use at least one round, no turn below 0 and flags alone; see -help")
	}
	o.only, err = regexp.Compile(*only)
	return o, err
}

func run(ctx context.Context, out io.Writer, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	a, err := newArena(ctx, o.node)
	defer func() {
		cancel()
		a.processes.Wait()
	}()
	if err != nil {
		return err
	}
	var kept bytes.Buffer
	r := &report{out: io.MultiWriter(out, &kept)}
	r.printf("%s, %s, load %s; %d rounds.\n\n", machine(), time.Now().UTC().Format(time.DateOnly), load(), o.rounds)
	for _, p := range parts {
		if !o.only.MatchString(p.name) {
			continue
		}
		r.settings = o.settings
		if r.turn == 0 {
			r.turn = p.turn
		}
		r.printf("## %s\n\n", p.name)
		if err := p.run(a, r); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		r.printf("Load after: %s.\n\n", load())
	}
	if r.err == nil && o.write != "" {
		r.err = os.WriteFile(o.write, append(bytes.TrimSpace(kept.Bytes()), '\n'), 0o644)
	}
	if r.err == nil && o.readme != "" {
		r.err = r.writeFacts(o.readme)
	}
	return r.err
}
