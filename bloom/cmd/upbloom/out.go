package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
)

// output is standard output, or a pipe with a name. Its error is errNoReader if
// nobody reads it.
type output struct{ *os.File }

func (o output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	if isReaderGone(err) {
		err = errNoReader
	}
	return n, err
}

// isReaderGone reports whether err is that of a write to a pipe that nobody
// reads.
func isReaderGone(err error) bool {
	return slices.ContainsFunc(readerGone, func(gone error) bool { return errors.Is(err, gone) })
}

// print writes v as JSON, or text for people.
func (a *app) print(v any, text string) (err error) {
	if a.json {
		err = writeJSON(a.out, v)
	} else {
		_, err = fmt.Fprintln(a.out, text)
	}
	if err != nil && a.wrote && !errors.Is(err, errNoReader) {
		return advised{written{err}, "the command was carried out, but its result could not be printed: " + plain(err)}
	}
	return err
}

// written is the error of what follows a write that was made, such as reading
// its result or printing it.
type written struct{ error }

func (e written) Unwrap() error { return e.error }

// writeJSON writes v in one line.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escapeJSON(b.Bytes()))
	return err
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

	// Unknown values are missing. A window as a whole has no Items and no Fill.
	Fill  *float64 `json:"fill,omitempty"`
	Items *uint64  `json:"items,omitempty"`
	Rate  *float64 `json:"rate,omitempty"`

	// Capacity is what a cuckoo filter was sized for, RateFull its rate then. No
	// other kind can tell.
	Capacity uint64  `json:"capacity,omitempty"`
	RateFull float64 `json:"rateAtCapacity,omitempty"`

	Parts     []part  `json:"parts,omitempty"`       // panes, layers, and with info shards
	MaxLayers int     `json:"maxLayers,omitempty"`   // of a scalable filter
	PaneSpan  float64 `json:"paneSeconds,omitempty"` // of a window
	Span      float64 `json:"spanSeconds,omitempty"` // of a window
	Damaged   bool    `json:"damaged,omitempty"`     // of info, of a cuckoo filter
}

// part is a pane, a layer or a shard as JSON.
type part struct {
	SetBits uint64  `json:"setBits"`
	Fill    float64 `json:"fill"`
	Items   uint64  `json:"items"`
	Rate    float64 `json:"rate"`
	// Items is a lower bound if all cells are set.
	Saturated bool   `json:"saturated,omitempty"`
	Bits      uint64 `json:"bits,omitempty"` // of a layer, which are not alike
}

// unread is a filter that could not be read, as JSON.
type unread struct {
	Key   string `json:"key"`
	Error string `json:"error"`
}

func stateOf(key string, s bloom.Stats) state {
	out := state{
		Key: key, Kind: kindOf(s.Kind, s.Geometry), Scheme: s.Geometry.Scheme.String(),
		Bits: s.Geometry.Bits, Hashes: s.Geometry.Hashes, Seeded: s.Seeded, Bytes: s.Bytes,
		SetBits: s.SetBits, Saturated: s.Saturated, TTL: s.TTL.Seconds(),
		Capacity: s.Capacity, RateFull: s.FPRate,
	}
	if out.Kind != windowKind && out.Kind != scalableKind { // the count of all their cells does not tell
		out.Fill, out.Items, out.Rate = &s.Fill, &s.Items, &s.LiveFPRate
	}
	return out
}

// ttl formats a time to live in a few characters; none is "never".
func ttl(d time.Duration) string {
	if d <= 0 {
		return "never"
	}
	return human.Span(d)
}

// moved is the JSON of load, save, restore or replace.
type moved struct {
	Key     string  `json:"key"`
	Items   *uint64 `json:"items,omitempty"`   // lines read by load and replace
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

	scheme string // of Holds
}

// printChange prints the result of replace or restore, and the filter's state
// before and after.
func (a *app) printChange(ctx context.Context, m moved, what string, before *bloom.Stats) error {
	text := m.text(what) + "\nbefore  no filter"
	if before != nil {
		s := stateOf(m.Key, *before)
		m.Before, text = &s, m.text(what)+"\nbefore  "+brief(s)
	}
	after, err := a.inspect(ctx)
	switch {
	case err != nil: // the filter was changed all the same
		text += "\nafter   not read: " + printable(plain(err))
	case after == nil:
		text += "\nafter   no filter: it has gone since"
	default:
		s := stateOf(m.Key, *after)
		m.After, text = &s, text+"\nafter   "+brief(s)
		if before == nil && after.TTL == 0 && what == "restored" {
			text += ": a saved filter holds no TTL, and upbloom ttl sets one"
		}
	}
	return a.print(m, text)
}

// brief returns a filter's state as one line.
func brief(s state) string {
	text := ""
	if s.Kind != plainKind {
		text = kindNoun(s.Kind) + ", "
	}
	if s.Items != nil {
		text += estimated(s.Scheme, *s.Items, s.Saturated) + ", "
	}
	if s.Rate != nil {
		text += falsePositives(s.Scheme, *s.Rate) + ", "
	}
	return text + expiry(time.Duration(s.TTL*float64(time.Second)))
}

// falsePositives says a rate. That of fnv1a is only a lower bound.
func falsePositives(scheme string, rate float64) string {
	if rate == 0 {
		return "no false positives"
	}
	if text := rateOfScheme(scheme, rate); text != human.Unknown {
		return text + " false positives"
	}
	return "false positives " + human.Unknown
}

func rateOfScheme(scheme string, rate float64) string {
	if scheme == bloom.SchemeFNV1a.String() {
		return human.AtLeast(rate)
	}
	return human.OneIn(rate)
}

// holding returns what is in n strings of this geometry that have setBits
// together.
func holding(g bloom.Geometry, n, setBits uint64) *part {
	each := min(setBits/n, g.Bits)
	return &part{
		SetBits: setBits, Fill: float64(each) / float64(g.Bits), Rate: g.LiveFalsePositiveRate(each),
		Items: n * uint64(math.Round(g.EstimateItems(min(each, g.Bits-1)))), Saturated: each == g.Bits,
	}
}

func expiry(d time.Duration) string {
	if d <= 0 {
		return "no expiry"
	}
	return "expires in " + ttl(d)
}

// merged returns what a load or a restore did.
func (a *app) merged(r bloom.LoadResult) moved {
	return moved{
		Key: a.key, NewBits: &r.NewBits, Created: r.Created, Bytes: r.Bytes,
		Requests: r.Requests, Commands: r.Commands, Seconds: a.seconds(),
	}
}

// seconds returns how long the command has run.
func (a *app) seconds() float64 { return time.Since(a.began).Seconds() }

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
		s += fmt.Sprintf(" in %s (%s)", human.Counted(uint64(m.Requests), "request"), human.Counted(uint64(m.Commands), "command"))
	}
	s += fmt.Sprintf(", %v", time.Duration(m.Seconds*float64(time.Second)).Round(time.Millisecond))
	if m.Holds != nil {
		s += fmt.Sprintf("\nafter   %s, %s", estimated(m.scheme, m.Holds.Items, m.Holds.Saturated),
			falsePositives(m.scheme, m.Holds.Rate))
	}
	if m.Note != "" {
		s += "\n" + m.Note
	}
	return s
}

// estimated returns "about 2,000 items". If every cell is set, nobody knows how
// many more there are. The estimate for fnv1a is too low.
func estimated(scheme string, items uint64, saturated bool) string {
	switch {
	case saturated:
		return "more than " + human.Counted(items, "item")
	case scheme == bloom.SchemeFNV1a.String():
		return "about " + human.Counted(items, "item") + " or more"
	}
	return "about " + human.Counted(items, "item")
}
