package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
)

func (a *app) lsCommand() *cli.Command {
	return &cli.Command{
		Name: "ls", Usage: "list the filters", ArgsUsage: "[PATTERN]",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "total", Usage: "print how many filters match, and their sizes together"}},
		Action: a.onDatabase(0, 1, func(ctx context.Context, c *cli.Command, args []string) error {
			pattern := "*"
			if len(args) == 1 {
				pattern = args[0]
			}
			if c.Bool("total") {
				return a.total(ctx, pattern)
			}
			return a.list(ctx, pattern)
		}),
	}
}

// A listing is what ls has found.
type listing struct {
	all     []any    // of state and unread, for programs
	rows    []string // of the table, for people
	failed  []string // the lines of those that could not be read
	failure error    // why the last of them could not
}

// list prints a line for each filter in the order of the keys, and then one for
// each key it could not read.
func (a *app) list(ctx context.Context, pattern string) error {
	found, err := a.scan(ctx, pattern)
	if err != nil && len(found) == 0 {
		return err
	}
	l := listing{all: []any{}} // in JSON it is no null
	for part := range slices.Chunk(found, inspectAtOnce) {
		a.listPart(ctx, part, &l)
	}
	text := table(slices.Concat(
		[]string{"KEY\tKIND\tSIZE\tSCHEME\tITEMS\tFILL\tFALSE POSITIVES\tEXPIRES IN"}, l.rows, l.failed)...)
	switch {
	case len(l.all) > 0:
	case err != nil:
		text = ""
	case pattern != "*":
		text, err = "", noMatch(pattern)
	default:
		text = "no filters"
	}
	if text == "" && !a.json {
		return err
	}
	if printErr := a.print(l.all, text); printErr != nil {
		return printErr
	}
	switch {
	case errors.Is(err, bloom.ErrNotFound):
		return err
	case err != nil:
		return advised{err, "the list is not complete: " + plain(err)}
	case l.failure != nil:
		return fmt.Errorf("%d of %d filters could not be read: %w", len(l.failed), len(l.all), l.failure)
	}
	return nil
}

// listPart adds some filters to a listing.
func (a *app) listPart(ctx context.Context, found []bloom.Inspection, l *listing) {
	var reading sync.WaitGroup
	for i, f := range found {
		if f.Err == nil {
			reading.Go(func() { found[i].Stats = a.inFull(ctx, f.Key, f.Stats) })
		}
	}
	reading.Wait()
	for _, f := range found {
		if f.Err == nil {
			l.all = append(l.all, stateOf(f.Key, f.Stats))
			l.rows = append(l.rows, row(f.Key, f.Stats))
			continue
		}
		l.failure = f.Err
		l.all = append(l.all, unread{f.Key, plain(f.Err)})
		l.failed = append(l.failed, printable(f.Key)+"\tnot read: "+printable(plain(f.Err)))
	}
}

// noMatch is the error of a pattern that no filter's key matches: it may be
// mistyped.
func noMatch(pattern string) error {
	text := fmt.Sprintf("no filter has a key like %s: upbloom ls lists all", printable(pattern))
	if !strings.ContainsAny(pattern, "*?[") {
		text += fmt.Sprintf(", and '%s*' those that begin so", printable(pattern))
	}
	return advised{bloom.ErrNotFound, text}
}

// inFull counts the parts of a window or a scalable filter. If it cannot, as
// without the seed, the state stays as it is.
func (a *app) inFull(ctx context.Context, key string, s bloom.Stats) bloom.Stats {
	if s.Counted() {
		return s
	}
	h, err := openHandle(ctx, a.client, s.Kind.String(), key, a.seed)
	if err != nil {
		return s
	}
	full, err := opened{h, a.client, s.Kind.String()}.stats(ctx)
	if err != nil {
		return s
	}
	return full
}

// row is a filter's line in the table of list. Items and fill of a window are
// those of its fullest pane.
func row(key string, s bloom.Stats) string {
	items, fill, rate := "-", "-", "-"
	if s.Kind == bloom.KindWindow {
		s.Items, s.Fill = 0, 0 // if everything is forgotten
		for _, p := range s.Parts {
			s.Items, s.Fill = max(s.Items, p.Items), max(s.Fill, p.Fill)
		}
	}
	if s.Counted() {
		items, fill = human.Count(s.Items), fmt.Sprintf("%.0f%%", 100*s.Fill)
		rate = rateOfScheme(s.Geometry.Scheme, s.LiveFPRate)
	}
	if s.Saturated {
		items += " full!"
	}
	return strings.Join([]string{
		printable(key), kindOf(s), human.Bytes(s.Bytes), s.Geometry.Scheme.String(), items, fill, rate, ttl(s.TTL),
	}, "\t")
}

// scan returns the filters that match one of the patterns, sorted by their keys, and
// those that could not be read. With an error they are not all.
func (a *app) scan(ctx context.Context, patterns ...string) (found []bloom.Inspection, err error) {
	for _, pattern := range patterns {
		for one, failed := range bloom.Scan(ctx, a.client, pattern) {
			if err = cmp.Or(err, failed); failed == nil {
				found = append(found, one)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b bloom.Inspection) int { return strings.Compare(a.Key, b.Key) })
	// A key may come twice, and match several.
	return slices.CompactFunc(found, func(a, b bloom.Inspection) bool { return a.Key == b.Key }), err
}

// A sum adds up the filters of a kind, or all, and is the JSON of that.
type sum struct {
	Kind    string `json:"kind"`
	Filters int    `json:"filters"`
	Strings int    `json:"strings"` // keys
	Bytes   uint64 `json:"bytes"`
	Over    int    `json:"overCapacity"` // strings
	Expire  int    `json:"expire"`       // strings
}

func (s *sum) add(f bloom.Inspection) {
	s.Strings++
	s.Bytes += f.Stats.Bytes
	if f.Stats.Saturated || f.Stats.OverCapacity() {
		s.Over++
	}
	if f.Stats.TTL > 0 {
		s.Expire++
	}
}

// total prints how many filters match, and their sizes together.
func (a *app) total(ctx context.Context, pattern string) error {
	found, err := a.scan(ctx, pattern)
	if err != nil {
		return err
	}
	all := sum{Kind: "all"}
	kinds, bases := make(map[string]*sum), make(map[string]bool)
	var failure error
	unread := 0
	for _, f := range found {
		if f.Err != nil {
			unread, failure = unread+1, f.Err
			continue
		}
		kind, key := kindOf(f.Stats), f.Key
		if f.Stats.Kind == bloom.KindShard {
			kind, key = shardedKind, baseOf(key)
		}
		of := kinds[kind]
		if of == nil {
			of = &sum{Kind: kind}
			kinds[kind] = of
		}
		if !bases[key] {
			bases[key] = true
			of.Filters, all.Filters = of.Filters+1, all.Filters+1
		}
		of.add(f)
		all.add(f)
	}
	sums := []sum{}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		sums = append(sums, *kinds[kind])
	}
	sums = append(sums, all)
	if len(found) == 0 && pattern != "*" {
		return noMatch(pattern)
	}
	rows := []string{"KIND\tFILTERS\tSTRINGS\tSIZE\tOVER CAPACITY\tEXPIRE"}
	count := func(n int) string { return human.Count(uint64(n)) }
	for _, s := range sums {
		rows = append(rows, strings.Join([]string{
			s.Kind, count(s.Filters), count(s.Strings), human.Bytes(s.Bytes), count(s.Over), count(s.Expire),
		}, "\t"))
	}
	if err := a.print(sums, table(rows...)); err != nil {
		return err
	}
	if unread > 0 {
		return fmt.Errorf("the sums lack %s, which could not be read: %w", human.Counted(uint64(unread), "filter"), failure)
	}
	return nil
}

// baseOf returns the key of a sharded filter of which this is a shard's.
func baseOf(key string) string {
	i := strings.LastIndexByte(key, ':')
	if _, err := strconv.ParseUint(key[i+1:], 10, 16); i < 0 || err != nil {
		return key
	}
	return key[:i]
}

// state is a filter's Stats as JSON. TTL is in seconds, 0 if there is none.
type state struct {
	Key       string  `json:"key"`
	Kind      string  `json:"kind"`
	Scheme    string  `json:"scheme"`
	Bits      uint64  `json:"bits"`
	Hashes    int     `json:"hashes"`
	Seeded    bool    `json:"seeded"`
	Bytes     uint64  `json:"bytes"`
	SetBits   uint64  `json:"setBits"`
	Saturated bool    `json:"saturated"`
	TTL       float64 `json:"ttl"`

	// These are missing if they were not counted.
	Fill  *float64 `json:"fill,omitempty"`
	Items *uint64  `json:"items,omitempty"`
	Rate  *float64 `json:"rate,omitempty"`

	// Capacity is what the filter was made for, as its string says it, FPRate
	// its rate then. They are 0 if that is not known.
	Capacity uint64  `json:"capacity,omitempty"`
	FPRate   float64 `json:"rateAtCapacity,omitempty"`

	Parts    []part  `json:"parts,omitempty"`       // panes, layers, and with info shards
	MaxParts int     `json:"maxParts,omitempty"`    // how many there can be
	PaneSpan float64 `json:"paneSeconds,omitempty"` // of a window
	Span     float64 `json:"spanSeconds,omitempty"` // of a window
	Damaged  bool    `json:"damaged,omitempty"`     // of a cuckoo filter
	Front    float64 `json:"front,omitempty"`       // see crowd; only with info
}

// part is a [bloom.Part] as JSON.
type part struct {
	Bits       uint64  `json:"bits"`
	Bytes      uint64  `json:"bytes,omitempty"`
	SetBits    uint64  `json:"setBits"`
	Fill       float64 `json:"fill"`
	Items      uint64  `json:"items"`
	Capacity   uint64  `json:"capacity,omitempty"`
	LiveFPRate float64 `json:"rate"`
	Saturated  bool    `json:"saturated,omitempty"`
	Newest     bool    `json:"newest,omitempty"`
}

func stateOf(key string, s bloom.Stats) state {
	out := state{
		Key: key, Kind: kindOf(s), Scheme: s.Geometry.Scheme.String(), Bits: s.Geometry.Bits,
		Hashes: s.Geometry.Hashes, Seeded: s.Seeded, Bytes: s.Bytes, SetBits: s.SetBits, Saturated: s.Saturated,
		TTL: s.TTL.Seconds(), Capacity: s.Capacity, FPRate: s.FPRate, MaxParts: s.MaxParts,
		PaneSpan: s.PaneSpan.Seconds(), Span: s.Span.Seconds(), Damaged: s.Damaged,
	}
	if s.Counted() {
		out.Fill, out.Items, out.Rate = &s.Fill, &s.Items, &s.LiveFPRate
	}
	for _, p := range s.Parts {
		out.Parts = append(out.Parts, part(p))
	}
	return out
}

// brief returns a filter's state as one line.
func brief(s bloom.Stats) string {
	text := ""
	if kind := kindOf(s); kind != plainKind {
		text = kindNoun(kind) + ", "
	}
	if s.Counted() {
		text += estimated(s.Geometry.Scheme, s.Items, s.Saturated) + ", " +
			falsePositives(s.Geometry.Scheme, s.LiveFPRate) + ", "
	}
	return text + expiry(s.TTL)
}

// unread is a filter that could not be read, as JSON.
type unread struct {
	Key   string `json:"key"`
	Error string `json:"error"`
}
