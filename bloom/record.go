package bloom

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

const (
	batchBytes = 1 << 20 // of a request
	atOnce     = 4       // requests of a batch, or parts of a string
)

// A handle is a record and how calls use it. Filter, Window, Scalable and Cuckoo
// embed it.
type handle struct {
	rec            record
	bytes          int // of a request of a batch, at most
	parallel       int // requests of a batch at once
	missingIsEmpty bool
}

// geometryFor checks what a constructor was given, and returns the geometry that the
// Config says.
func geometryFor(c *upstash.Client, key string, cfg interface{ Geometry() (Geometry, error) }) (Geometry, error) {
	geo, err := cfg.Geometry()
	if err == nil {
		err = checkTarget(c, key)
	}
	return geo, err
}

// checkTarget checks the client and the key.
func checkTarget(c *upstash.Client, key string) error {
	switch {
	case c == nil:
		return errors.New("bloom: the client is nil: make one with upstash.New or upstash.FromEnv")
	case key == "":
		return engine.ErrEmptyKey
	case !utf8.ValidString(key):
		return errors.New("bloom: the key is not valid UTF-8, which the REST API cannot carry")
	}
	return nil
}

// init makes the handle of a string. The Config says what those of all types say.
func (h *handle) init(c *upstash.Client, key string, cfg Config, geo Geometry, kind Kind,
	items engine.Items, shape engine.Shape,
) {
	h.bytes, h.parallel = min(batchBytes, door.MaxRequest(c)), atOnce
	h.missingIsEmpty = cfg.MissingIsEmpty
	r := &h.rec
	r.geo, r.layout, r.kind = geo, cfg.Layout, kind
	r.Client, r.Key, r.TTL, r.MustExist, r.Rate = c, key, cfg.TTL, cfg.MustExist, cfg.rateCode()
	r.Nearest = cfg.ReadsNearest
	if r.layout == LayoutHeaded {
		r.Header = int64(geo.header(kind).Word())
	}
	r.Items, r.Shape, r.Meaning = items, shape, r
	r.Timed, _ = shape.(engine.Timed)
	r.Scripted, _ = shape.(engine.Scripted)
}

// fitsLimit returns an error if a script that the type cannot do without is longer
// than upstash.WithMaxRequest: it cannot be split. With a key of many KB the first
// call finds out.
func (h *handle) fitsLimit(size func() int) error {
	const plenty = 64 << 10 // for any script
	limit := door.MaxRequest(h.rec.Client)
	if limit >= plenty || h.rec.Client.ReadOnly() {
		return nil
	}
	bytes := size()
	if bytes <= limit {
		return nil
	}
	return fault.Untouched(fault.Errorf("bloom: a script of %s has %d bytes with this key, and cannot be split;"+
		" upstash.WithMaxRequest is %d: %w", h.rec.typ().name, bytes, limit, upstash.ErrRequestTooLarge))
}

// fitsWrite is fitsLimit for the script that writes one item.
func (h *handle) fitsWrite() error {
	return h.fitsLimit(func() int {
		q := engine.Request{Rec: &h.rec.Record}
		q.Birth = format.Marker
		return h.rec.Scripted.Script(&q).Size() + h.rec.Items.ItemBytes(true)
	})
}

// opened takes the rate of new birth numbers from the string, unless the Config
// says it.
func (h *handle) opened(rate uint64) {
	if h.rec.Rate == 0 {
		h.rec.Rate = rate
	}
}

// Geometry returns that of the filter, of one pane, or of the first layer.
func (h *handle) Geometry() Geometry { return h.rec.geo }

func (h *handle) Format(s fmt.State, _ rune) {
	_, _ = fmt.Fprintf(s, "bloom.%s(%v)", cmp.Or(h.rec.typ().typ, "Filter"), h.rec.geo)
}

// Rename moves the filter with its TTL to a free key, else the error is
// [ErrKeyExists]. Stop writers first: without MustExist they recreate the old
// key.
func (h *handle) Rename(ctx context.Context, to string) error {
	return h.rec.Rename(h.label(ctx, "Rename"), to)
}

// Delete removes the filter, and nothing else, and reports whether there was
// one. An attempt of an earlier Create that comes late makes an empty filter
// again, and so does that of an Add without MustExist.
func (h *handle) Delete(ctx context.Context) (bool, error) {
	return h.rec.Delete(h.label(ctx, "Delete"))
}

// label names an operation for the client's observer.
func (h *handle) label(ctx context.Context, operation string) context.Context {
	if typ := h.rec.typ().typ; typ != "" {
		operation = typ + "." + operation
	}
	return h.rec.Label(ctx, "bloom."+operation)
}

// allowMissing turns the ErrNotFound of a look-up into an empty filter if the
// Config says so. Otherwise the error names the field for this. With MustExist there
// is no such hint, because the filter was lost.
func (h *handle) allowMissing(err error) error {
	if !fault.Is(err, ErrNotFound) {
		return err
	}
	if h.missingIsEmpty {
		return nil
	}
	if h.rec.MustExist {
		return err
	}
	field := ".MissingIsEmpty"
	if h.rec.kind == KindWindow {
		field = ".ExpireIdle"
	}
	return &emptyHint{err, h.rec.typ().config() + field}
}

// A record is one Redis string and what its bits mean. Every type of this
// package in Redis is made of records.
type record struct {
	engine.Record
	geo    Geometry
	layout Layout
	kind   Kind
}

// A sizedShape says how long its string is, and what makes it shorter. Of a word
// that differs from the handle's in a fixed bit, it names the field of the Config
// that differs.
type sizedShape interface {
	length() uint64
	howToShorten() string
	differingField(word int64) (field string)
}

func (r *record) typ() typeNames { return typeOf(r.kind) }

// OtherHeader says what a header word means that is not the record's.
func (r *record) OtherHeader(word int64) error {
	got, err := format.ParseHeader(uint64(word))
	if err != nil {
		return err
	}
	return engine.AsOtherFilter(newMismatchError(r.kind, r.geo, got))
}

// OtherWord says what a kind's own word means that is not the record's.
func (r *record) OtherWord(word int64) error {
	if word>>(wordBits-1) != 1 {
		return format.ErrHeaderBits
	}
	e := newMismatchError(r.kind, r.geo, r.geo.header(KindFilter))
	e.GotKind = r.kind
	e.Field = r.Shape.(sizedShape).differingField(word)
	return engine.AsOtherFilter(e)
}

// countCells counts the set cells. It stops at the last cell, because an Add of
// another filter may have set bits behind it.
func (r *record) countCells() upstash.Command {
	first, last := r.cellRange()
	return upstash.Cmd("BITCOUNT", r.Key, first, last, "BIT")
}

// cellRange returns the first and the last bit of the cells, for BITCOUNT.
func (r *record) cellRange() (first, last string) {
	body := r.layout.bodyOffset()
	return strconv.FormatUint(body, 10),
		strconv.FormatUint(body+r.geo.Bits-1, 10)
}

// A RecordTooLargeError is returned when the filter's string is too long for
// the database: see [Config.Capacity]. It wraps [upstash.ErrRecordTooLarge].
type RecordTooLargeError struct {
	// Bytes is the length of the whole string; 0 if that was to have one more
	// layer of a [Scalable].
	Bytes  uint64
	err    error  // in the server's words, which say less and name no limit
	advice string // what to do about it
}

func (e *RecordTooLargeError) Error() string {
	text := "bloom: the filter's longer string"
	if e.Bytes != 0 {
		text = "bloom: the filter's string of " + human.Count(e.Bytes) + " bytes"
	}
	return text + " is too large for one record of the database: " + e.advice
}

func (e *RecordTooLargeError) Unwrap() error { return e.err }

// TooLarge explains that the server refused the record's string for its length.
func (r *record) TooLarge(err error) error {
	e := &RecordTooLargeError{r.geo.Bytes(r.layout), err, "lower the Capacity, raise the FPRate, choose a larger" +
		" plan, or spread the items over more records with NewSharded"}
	if s, ok := r.Shape.(sizedShape); ok {
		e.Bytes, e.advice = s.length(), s.howToShorten()
	}
	return e
}

// create makes a string of so many bits, with the kind's own word.
func (h *handle) create(ctx context.Context, bits uint64, word int64) (created bool, err error) {
	created, err = h.rec.Create(ctx, bits, word)
	if large, ok := fault.As[*RecordTooLargeError](err); ok {
		large.Bytes = (bits + 7) / 8
	}
	return created, err
}
