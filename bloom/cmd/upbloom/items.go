package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

func (a *app) addCommand() *cli.Command {
	return &cli.Command{
		Name: "add", Usage: "add items", ArgsUsage: "KEY ITEM... (or - for lines of standard input)",
		Flags: slices.Concat(sizeFlags(makeIfMissing), fillFlags()),
		Action: a.onDatabase(2, -1, func(ctx context.Context, c *cli.Command, args []string) error {
			return a.each(ctx, c, args, adds)
		}),
	}
}

func (a *app) removeCommand() *cli.Command {
	return &cli.Command{
		Name: "remove", Usage: "take items out of a cuckoo filter",
		ArgsUsage: "KEY ITEM... (or - for lines of standard input)",
		Action: a.onDatabase(2, -1, func(ctx context.Context, c *cli.Command, args []string) error {
			return a.each(ctx, c, args, removes)
		}),
	}
}

// A batch says what a command does with its items, and which words are its
// answers.
type batch struct {
	yes, no string
	run     func(handle, context.Context, []string) ([]bool, error)
	field   func(*answer) **bool // of the answer in JSON
	adds    bool
	noIsNo  bool   // a no shows in the exit status
	kind    string // the only kind it works on, "" for any
	again   string // what to do if it failed and does no harm when it runs again
}

// changes reports whether the command writes.
func (b batch) changes() bool { return b.adds || b.kind != "" }

var (
	looksUp = batch{
		yes: "yes", no: "no", run: handle.ExistsAll, noIsNo: true,
		field: func(a *answer) **bool { return &a.Found },
		again: "run the command again to ask about all",
	}
	adds = batch{
		yes: "new", no: "seen", run: handle.AddAll, adds: true,
		field: func(a *answer) **bool { return &a.New },
		again: "run the command again to add the rest: it does no harm to those that are in, but a new" +
			" item that this run has added is then called seen",
	}
	removes = batch{
		yes: "removed", no: "missing", noIsNo: true, kind: cuckooKind,
		run: func(h handle, ctx context.Context, items []string) ([]bool, error) {
			return h.(*bloom.Cuckoo).RemoveAll(ctx, items)
		},
		field: func(a *answer) **bool { return &a.Removed },
	}
)

// answer is the JSON of check, add or remove for an item.
type answer struct {
	Item    string `json:"item"`
	Found   *bool  `json:"found,omitempty"`
	New     *bool  `json:"new,omitempty"`
	Removed *bool  `json:"removed,omitempty"`
	Error   string `json:"error,omitempty"`
}

// createLong makes a filter that not every plan takes, before the first Add. An
// Add makes a string that ends at its last bit, and a later one could be too
// long.
func (a *app) createLong(ctx context.Context, c *cli.Command, f *bloom.Filter) error {
	_, err := f.Create(ctx)
	a.wrote = !upstash.SafeToRetry(err)
	if err = suited(c, err); exitStatus(err) != exitUnknown {
		return err
	}
	return followed(err, "the filter was made, or it was not, and no item was added: it does no harm to run the"+
		" command again")
}

// filterFor returns the plain filter of --items, which an add of the items makes if
// it is missing, and whether it is there. It checks whether they may be added.
func (a *app) filterFor(ctx context.Context, c *cli.Command, items []string) (o opened, there bool, _ error) {
	f, err := a.filter(ctx, c)
	if err == nil {
		there, err = a.isThere(ctx, f)
	}
	if err == nil {
		err = a.mayAdd(ctx, c, opened{f, a.client, plainKind}, there, items)
	}
	switch {
	case err != nil:
	case there:
		f, err = a.withoutTTL(f, c)
	case f.Geometry().Bytes(bloom.LayoutHeaded) > longestRecord:
		err = a.createLong(ctx, c, f)
	}
	return opened{f, a.client, plainKind}, there, err
}

// filterOf opens the filter of a batch. For an add it checks whether the items
// may be added, and with --items it makes a plain filter, unless it is there.
func (a *app) filterOf(ctx context.Context, c *cli.Command, b batch, items []string) (o opened, there bool, _ error) {
	if b.adds {
		cfg, err := a.configOf(c)
		if err != nil {
			return opened{}, false, err
		}
		if cfg.Capacity != 0 {
			return a.filterFor(ctx, c, items)
		}
	}
	o, err := a.openKey(ctx)
	switch {
	case b.adds && isFree(err):
		err = marked{err, errMakeable}
	case err != nil:
	case b.kind != "" && o.kind != b.kind:
		err = advised{bloom.ErrNotFilter, fmt.Sprintf("the key holds a %s: items can be taken out only of a"+
			" cuckoo filter; nothing was changed", kindNoun(o.kind))}
	case b.adds:
		err = a.mayAdd(ctx, c, o, true, items)
	case !b.changes() && !a.demo:
		o.handle = &nearby{handle: o.handle, a: a}
	}
	return o, true, err
}

// each runs a batch and prints an answer for each item.
func (a *app) each(ctx context.Context, c *cli.Command, args []string, b batch) error {
	items, err := a.itemsOf(ctx, args[1:])
	if err != nil {
		return err
	}
	o, there, err := a.filterOf(ctx, c, b, items)
	if err != nil {
		return err
	}
	a.wrote = b.changes()
	missing, err := a.answers(ctx, o, b, items, args[1] == "-")
	if b.adds {
		err = suited(c, err)
	}
	switch {
	case err != nil:
		return err
	case a.json:
	case len(items) == 1 && args[1] != "-" && isFile(items[0]):
		fmt.Fprintf(a.errOut, "upbloom: %s was taken as an item, and is also a file here: to take its lines use"+
			" upbloom %s %s - < %[1]s\n", printable(items[0]), a.command, printable(a.key))
	}
	if missing && b.noIsNo {
		return errNo
	}
	if b.adds && there && !a.json {
		if note := a.keptTTL(ctx, c); note != "" {
			fmt.Fprintln(a.errOut, "upbloom:", note)
		}
	}
	return nil
}

// isFile reports whether an item is the name of a file. It asks no other host:
// an item may begin like a share of Windows.
func isFile(item string) bool {
	if len(filepath.VolumeName(item)) > len("C:") {
		return false
	}
	info, err := os.Stat(item)
	return err == nil && info.Mode().IsRegular()
}

// answers runs a batch, prints an answer for each item, and reports whether one
// is a no. If the batch fails, it prints what became of each item, or if they
// are lines and may all be sent again, only the answers.
func (a *app) answers(
	ctx context.Context, o opened, b batch, items []string, lines bool,
) (missing bool, _ error) {
	answers, err := b.run(o.handle, ctx, items)
	if o.kind == shardedKind {
		err = shardMissing(err)
	}
	failed, isBatch := errors.AsType[*bloom.BatchError](err)
	if err != nil && !isBatch {
		return false, err
	}
	countsCopies := o.kind == cuckooKind && b.changes()
	again := isBatch && lines && !a.json && !countsCopies
	for i, item := range items {
		state := bloom.ItemDone
		if isBatch {
			state = failed.Items[i]
		}
		if again && state != bloom.ItemDone {
			continue
		}
		line, word := b.answer(item, answers[i], state)
		missing = missing || word == b.no
		if err := a.print(line, fmt.Sprintf("%-4s  %s", word, printable(item))); err != nil {
			return false, err
		}
	}
	if again && !errors.Is(err, upstash.ErrRecordTooLarge) && !errors.Is(err, bloom.ErrNotFound) {
		err = advised{err, plain(err) + "; " + b.again}
	}
	if isBatch && b.changes() && failed.Count(bloom.ItemDone) > 0 {
		err = marked{err, errPartly}
	}
	return missing, err
}

// answer returns what is printed of an item, as JSON and in a word.
func (b batch) answer(item string, yes bool, state bloom.ItemState) (line answer, word string) {
	line = answer{Item: item}
	if state != bloom.ItemDone {
		line.Error = state.String()
		return line, line.Error
	}
	*b.field(&line) = &yes
	if yes {
		return line, b.yes
	}
	return line, b.no
}

// nearby is a filter whose look-ups the nearest region answers if the primary may
// not, to a token that may only read. Its "yes" holds. Its "no" may be that of a
// replica that lags, so the refusal stays the error.
type nearby struct {
	handle
	a    *app
	near handle // in the region, once it was opened
}

func (n *nearby) ExistsAll(ctx context.Context, items []string) ([]bool, error) {
	found, refusal := n.handle.ExistsAll(ctx, items)
	if !errors.Is(refusal, upstash.ErrNoPermission) {
		return found, refusal
	}
	if n.near == nil {
		reader, err := n.a.connected(upstash.WithReadOnly())
		if err != nil {
			return nil, err
		}
		other := *n.a
		other.client = reader
		o, err := other.openKey(ctx)
		if err != nil {
			return nil, refusal
		}
		n.near = o.handle
	}
	found, err := n.near.ExistsAll(ctx, items)
	if err != nil {
		return nil, refusal
	}
	if !slices.Contains(found, false) {
		return found, nil
	}
	states := make([]bloom.ItemState, len(items))
	for i, yes := range found {
		if yes {
			states[i] = bloom.ItemDone
		}
	}
	return found, lookUpError{&bloom.BatchError{Items: states, Err: advised{refusal, "the token may not run BITFIELD," +
		" and a no may be that of a replica that lags: use a full token"}}}
}

// lookUpError is the error of a batch that only looked up.
type lookUpError struct{ *bloom.BatchError }

func (lookUpError) SafeToRetry() bool { return true }
func (e lookUpError) Unwrap() error   { return e.BatchError }

func (a *app) checkCommand() *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "look items up", ArgsUsage: "KEY ITEM... (or - for lines of standard input)",
		Action: a.onDatabase(2, -1, func(ctx context.Context, c *cli.Command, args []string) error {
			if len(args) == 2 && args[1] == "-" {
				return a.checkLines(ctx, c)
			}
			return a.each(ctx, c, args, looksUp)
		}),
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
	var o opened
	missing, answered := false, uint64(0)
	for items := range in.rounds(&err) {
		if o.handle == nil {
			if o, _, err = a.filterOf(ctx, c, looksUp, items); err != nil {
				return err
			}
		}
		no, err := a.answers(ctx, o, looksUp, items, true)
		if answered > 0 && isA[*bloom.BatchError](err) {
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
	case o.handle == nil:
		return in.noItems()
	case missing:
		return errNo
	}
	return nil
}

// rounds returns the lines in rounds. It sets err as lines does, and prints
// the notes of lines at the end.
func (in *input) rounds(err *error) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		lines, stop := make(chan string, roundLines-1), make(chan struct{})
		defer close(stop)
		notes := new(bytes.Buffer) // the caller may end before it
		quiet, reader := *in.a, *in
		quiet.errOut, reader.a = notes, &quiet
		var readErr error
		go func() {
			defer close(lines)
			for item := range reader.lines(&readErr) {
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
		_, _ = notes.WriteTo(in.a.errOut)
		*err = readErr
	}
}
