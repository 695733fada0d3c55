package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

func (a *app) loadCommand() *cli.Command {
	return &cli.Command{
		Name: "load", Usage: "add the lines of a file, millions at once", ArgsUsage: "KEY [FILE]",
		Flags: slices.Concat(sizeFlags(makeIfMissing), fillFlags(),
			[]cli.Flag{allowEmpty("load an input without items")}),
		Action: a.onDatabase(1, 2, func(ctx context.Context, c *cli.Command, args []string) error {
			in, err := a.openInput(ctx, args)
			if err != nil {
				return err
			}
			defer in.Close()
			f, l, some, err := a.withItems(ctx, c, in)
			if other, ok := errors.AsType[otherKind](err); ok && other.opened.kind == shardedKind {
				return a.loadShards(ctx, c, other.opened, in)
			}
			if err != nil {
				return err
			}
			if some.lines == 0 && !c.Bool("allow-empty") {
				return nothingToLoad(some.of)
			}
			before, err := a.inspect(ctx)
			if err == nil {
				err = errOtherSize(before, f.Geometry())
			}
			if err != nil {
				return err
			}
			s := bloom.Stats{Geometry: f.Geometry()}
			if before != nil {
				s = *before
			}
			err = a.mayTake(ctx, c, opened{f, a.client, plainKind}, s, some.distinctIn(l), some.items)
			if err != nil {
				return err
			}
			if before != nil {
				if f, err = a.withoutTTL(f, c); err != nil {
					return err
				}
			}
			a.wrote = true
			r, err := f.Merge(ctx, l, a.progress("load"))
			if err != nil {
				return a.moveFailed(c, err)
			}
			m := a.merged(r).of(some)
			if before != nil {
				m.Note = a.keptTTL(ctx, c)
			}
			m.Holds, m.scheme = holding(f.Geometry(), 1, s.SetBits+r.NewBits), f.Geometry().Scheme
			return a.print(m, m.text("loaded"))
		}),
	}
}

// nothingToLoad is the error of a load without items.
func nothingToLoad(name string) error {
	return usagef("%s has no items, and nothing was changed: --allow-empty loads it all the same", name)
}

// loadShards adds the lines of an input to a sharded filter. It holds all shards
// in memory. What the input would do is known when it was read to its end: if
// that is refused, the context ends before the first upload.
func (a *app) loadShards(ctx context.Context, c *cli.Command, o opened, in *input) error {
	s, err := o.stats(ctx)
	if err == nil {
		_, err = limitOf(c, o.Geometry(), s.Capacity) // before the input is read
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var refused error
	some := sample{of: in.name}
	read := func(yield func(string) bool) {
		for item := range in.shown().lines(&refused) {
			some.add(item)
			if !yield(item) {
				return // it was interrupted
			}
		}
		if refused == nil {
			refused = a.mayLoad(ctx, c, o, s, &some)
		}
		if refused != nil {
			cancel()
			return
		}
		a.wrote = true // the uploads follow
	}
	r, err := o.handle.(*bloom.Sharded).Load(ctx, read, a.progress("load"))
	switch {
	case refused != nil:
		return refused
	case err == nil:
		m := a.merged(r).of(&some)
		m.Holds = holding(o.Geometry(), uint64(len(s.Parts)), s.SetBits+r.NewBits)
		return a.print(m, m.text("loaded"))
	case errors.Is(err, bloom.ErrNotFound):
		return shardMissing(err)
	case !a.wrote:
		if isA[*upstash.CallError](err) && !errors.Is(err, context.Canceled) { // it only looked
			text := strings.TrimSuffix(plain(err), "; the command may have run")
			err = advised{err, text + "; nothing was changed"}
		}
		return err
	case upstash.SafeToRetry(err):
		return a.moveFailed(c, err)
	}
	return followed(err, "each shard is as it was, or complete, and it does no harm to run the command again")
}

// mayLoad refuses what was read of an input if shards should not take it.
func (a *app) mayLoad(ctx context.Context, c *cli.Command, o opened, s bloom.Stats, some *sample) error {
	switch {
	case some.lines > 0:
		return a.mayTake(ctx, c, o, s, some.distinct(), some.items)
	case !c.Bool("allow-empty"):
		return nothingToLoad(some.of)
	}
	return nil
}

// openInput opens FILE, or standard input.
func (a *app) openInput(ctx context.Context, args []string) (*input, error) {
	return a.open(ctx, append(args, "-")[1])
}

// withItems opens the filter and reads the input into a Local of its geometry and
// into a sample. It changes nothing.
func (a *app) withItems(ctx context.Context, c *cli.Command, in *input,
) (f *bloom.Filter, l *bloom.Local, some *sample, err error) {
	if f, err = a.filter(ctx, c); err != nil {
		return nil, nil, nil, err
	}
	l, some = bloom.NewLocal(f.Geometry()), &sample{of: in.name}
	var readErr error
	l.AddSeq(func(yield func(string) bool) {
		for item := range in.shown().lines(&readErr) {
			some.add(item)
			if some.lines%4096 == 0 && ctx.Err() != nil {
				readErr = halfRead(ctx, in.name)
				return
			}
			if !yield(item) {
				return
			}
		}
	})
	if readErr != nil {
		return nil, nil, nil, readErr
	}
	return f, l, some, nil
}

func (a *app) replaceCommand() *cli.Command {
	return &cli.Command{
		Name: "replace", Usage: "make a filter's items those of a file, and no others",
		ArgsUsage: "KEY [FILE]",
		Flags: slices.Concat(sizeFlags(makeIfMissing), fillFlags(), []cli.Flag{
			allowEmpty("remove all items if the input has none"),
			countFlag("refuse an input of fewer than `N` items", "min-items"),
			lifetimeFlag("let the filter expire after `TIME` from now, e.g. 7d", "renew-ttl"),
			yesFlag("replace a filter of another size, or one with far more items"),
		}),
		Action: a.onDatabase(1, 2, a.replace),
	}
}

func (a *app) replace(ctx context.Context, c *cli.Command, args []string) error {
	renew := lifetimeOf(c, "renew-ttl")
	if err := tooShort(c, "renew-ttl", ""); err != nil {
		return err
	}
	if c.IsSet("renew-ttl") && c.IsSet("ttl") {
		return usagef("--ttl and --renew-ttl: use --renew-ttl alone, which sets the TTL of a new filter too")
	}
	in, err := a.openInput(ctx, args)
	if err != nil {
		return err
	}
	defer in.Close()
	f, l, some, err := a.withItems(ctx, c, in)
	if err != nil {
		return err
	}
	before, err := a.inspect(ctx)
	if err != nil {
		return err
	}
	if before != nil && c.IsSet("ttl") {
		return usagef("--ttl is for a new filter, and %s is there: --renew-ttl sets its TTL",
			printable(a.key))
	}
	if err := a.mayReplace(c, l, some, before); err != nil {
		return err
	}
	empty := bloom.Stats{Geometry: f.Geometry()}
	if before != nil && !isResized(before, f.Geometry()) {
		empty.Capacity = before.Capacity
	}
	if err := a.mayTake(ctx, c, opened{f, a.client, plainKind}, empty, some.distinctIn(l), nil); err != nil {
		return err
	}
	a.wrote = true
	if err := f.Replace(ctx, l, a.progress("replace")); err != nil {
		return a.moveFailed(c, err)
	}
	if renew > 0 {
		if _, err := f.Expire(ctx, renew); err != nil {
			return advised{marked{err, errWritten}, "the filter was replaced, but its TTL could not be set: " + plain(err)}
		}
	}
	m := moved{
		Key: a.key, Bytes: int64(f.Geometry().Bytes(bloom.LayoutHeaded)), Seconds: a.seconds(), Host: a.host(),
	}.of(some)
	if isResized(before, f.Geometry()) {
		m.Note = oldSizeFails
	}
	return a.printChange(ctx, m, false, plainKind, before)
}

// mayReplace refuses to replace the filter by these items if that is likely a
// mistake.
func (a *app) mayReplace(c *cli.Command, l *bloom.Local, some *sample, before *bloom.Stats) error {
	yes, n := c.Bool("yes"), some.lines
	resized := isResized(before, l.Geometry())
	if resized && !yes {
		return usagef("%s at %s is %v, and would become %v, for %s items at %s: programs that use the old size"+
			" get errors from then on\n--yes replaces it all the same; upbloom replace --help says how to"+
			" do it without errors.", printable(a.key), a.host(), before.Geometry, l.Geometry(),
			human.Count(countOf(c, "items")), human.OneIn(rateOf(c, "rate")))
	}
	least := countOf(c, "min-items")
	distinct := l.Stats().Items
	there, full := uint64(0), false
	if before != nil {
		there, full = before.Items, before.Saturated
	}
	lost := fmt.Sprintf("replace would remove %s from %s at %s",
		estimated(l.Geometry().Scheme, there, full), printable(a.key), a.host())
	switch {
	case n < least:
		return usagef("%s has %s, fewer than --min-items %d: nothing was changed", some.of,
			human.Counted(n, "item"), least)
	case n == 0 && !c.Bool("allow-empty"):
		return usagef("%s has no items, and nothing was changed: %s; --allow-empty does it", some.of, lost)
	case n != 0 && least == 0 && (!yes || resized) && distinct < there/2:
		advice := "--min-items says how many it must have, --yes that it is right."
		if resized { // --yes was about the size
			advice = "--min-items says how many it must have."
		}
		return usagef("%s has about %s, fewer than half of the %s in %s at %s: nothing was changed\n%s", some.of,
			human.Counted(distinct, "item"), human.Count(there), printable(a.key), a.host(), advice)
	}
	return nil
}

// moveFailed says what is known of the filter after a load, a restore or a
// replace has failed in its upload, and what to do next.
func (a *app) moveFailed(c *cli.Command, err error) error {
	err = suited(c, err)
	status := exitStatus(err)
	if status == exitUsage || status == exitFilter || errors.Is(err, bloom.ErrLoadLost) {
		return err // which says it all
	}
	safe := upstash.SafeToRetry(err)
	if safe && errors.Is(err, upstash.ErrRecordTooLarge) {
		return followed(err, "nothing was changed")
	}
	if safe {
		return followed(err, "nothing was changed, and what was uploaded is gone within an hour")
	}
	return followed(err, fmt.Sprintf("the filter is as it was, or complete: upbloom info %s shows which,"+
		" and it does no harm to run the command again", printable(a.key)))
}

// moved is the JSON of load, save, restore or replace.
type moved struct {
	Key     string  `json:"key"`
	Items   *uint64 `json:"items,omitempty"`   // lines read by load and replace
	First   string  `json:"first,omitempty"`   // of them
	Last    string  `json:"last,omitempty"`    // the same
	NewBits *uint64 `json:"newBits,omitempty"` // by load and restore

	Created  bool    `json:"created,omitempty"`
	Bytes    int64   `json:"bytes"`
	Requests int64   `json:"requests,omitempty"`
	Commands int64   `json:"commands,omitempty"`
	Seconds  float64 `json:"seconds"` // with the time that reading the input takes

	// Before and After are the filter's states, of replace and restore. Before
	// is missing if there was no filter, After if it could not be read.
	Before *state `json:"before,omitempty"`
	After  *state `json:"after,omitempty"`
	Holds  *part  `json:"holds,omitempty"` // what is in the filter, of load

	Note string `json:"note,omitempty"` // a flag of load had no effect
	From *note  `json:"from,omitempty"` // what the file of restore says
	Host string `json:"host,omitempty"` // of the database, of replace

	scheme bloom.Scheme // of Holds
	origin string       // of what was restored
}

// printChange prints the result of replace or restore, and the filter's state
// before and after.
func (a *app) printChange(ctx context.Context, m moved, restored bool, kind string, before *bloom.Stats) error {
	what := "replaced by"
	if restored {
		what = "restored"
	}
	text := m.text(what) + "\nbefore  no filter"
	if before != nil {
		s := stateOf(m.Key, *before)
		m.Before, text = &s, m.text(what)+"\nbefore  "+brief(*before)
	}
	after, err := a.look(ctx)
	switch {
	case errors.Is(err, bloom.ErrNotFound):
		text += "\nafter   no filter: it has gone since"
	case err != nil: // the filter was changed all the same
		text += "\nafter   a " + kindNoun(kind) + ", not read: " + printable(plain(err))
	default:
		s := stateOf(m.Key, after)
		m.After, text = &s, text+"\nafter   "+brief(after)
		if before == nil && after.TTL == 0 && m.From == nil && restored && (kind == plainKind || kind == scalableKind) {
			text += ": a saved filter holds no TTL, and upbloom ttl sets one"
		}
		if kind == windowKind {
			m.Note = ofPanes(after)
			text += "\n" + m.Note
		}
	}
	return a.print(m, text)
}

// merged returns what a load or a restore did.
func (a *app) merged(r bloom.LoadResult) moved {
	return moved{
		Key: a.key, NewBits: &r.NewBits, Created: r.Created, Bytes: r.Bytes,
		Requests: r.Requests, Commands: r.Commands, Seconds: a.seconds(),
	}
}

// of adds what was read.
func (m moved) of(some *sample) moved {
	m.Items, m.First, m.Last = &some.lines, some.first, some.last
	return m
}

// from says where what was restored comes from.
func (m *moved) from(n note) {
	m.origin = n.origin()
	if n.Key != "" {
		m.From = &n
	}
}

// oldSizeFails follows a change of a filter's size.
const oldSizeFails = "Programs that run with the old size, as the old Capacity, get errors from now on: start them anew."

func (m moved) text(what string) string {
	s := what
	if m.Items != nil {
		s += " " + human.Counted(*m.Items, "line") + ","
	}
	if m.Created {
		s += " a new filter,"
	}
	if m.NewBits != nil {
		s += " " + human.Counted(*m.NewBits, "new bit") + ","
	}
	s += " " + human.Bytes(uint64(m.Bytes))
	if m.Requests > 0 {
		s += fmt.Sprintf(" in %s (%s)", human.Counted(uint64(m.Requests), "request"),
			human.Counted(uint64(m.Commands), "command"))
	}
	s += fmt.Sprintf(", %v", time.Duration(m.Seconds*float64(time.Second)).Round(time.Millisecond))
	if m.Host != "" {
		s += ", at " + m.Host
	}
	if m.origin != "" {
		s += "\nfrom    " + m.origin
	}
	if m.First != "" { // whoever loaded another column, or comments, sees it
		s += "\nfirst   " + beginning(m.First) + "\nlast    " + beginning(m.Last)
	}
	if m.Holds != nil {
		s += fmt.Sprintf("\nafter   %s, %s", estimated(m.scheme, m.Holds.Items, m.Holds.Saturated),
			falsePositives(m.scheme, m.Holds.LiveFPRate))
	}
	if m.Note != "" {
		s += "\n" + m.Note
	}
	return s
}

// holding returns what is in n strings of this geometry that have setBits
// together.
func holding(g bloom.Geometry, n, setBits uint64) *part {
	g.Bits *= n
	set := min(setBits, g.Bits)
	return &part{
		Bits: g.Bits, SetBits: setBits, Fill: float64(set) / float64(g.Bits), LiveFPRate: g.LiveFalsePositiveRate(set),
		Items: uint64(math.Round(g.EstimateItems(min(set, g.Bits-1)))), Saturated: set == g.Bits,
	}
}
