package bloom

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// A record is one Redis string: its key, the header it should have, and a
// handle's knowledge of it. Every type of this package in Redis is made of
// records. It is safe for concurrent use.
type record struct {
	client *upstash.Client
	key    string
	geo    Geometry
	layout Layout
	kind   Kind
	shape  shape         // nil for a plain filter
	header int64         // the word at bit 0; 0 in the Bare layout
	ttl    time.Duration // to settle with; 0 for none
	must   bool          // a write to a missing filter creates nothing
	reads  Reads

	// Only what the primary said is remembered: a replica may speak of the
	// past.
	verified atomic.Bool           // the header was seen and is ours
	refused  atomic.Pointer[error] // why nothing more is written
	settling atomic.Bool           // a settling command is under way; Bare: was sent
	noRESP2  atomic.Bool           // the server sends no RESP2
}

func (r *record) headed() bool { return r.layout == LayoutHeaded }

// label names the operation for the client's observer, after the caller's own
// label: "crawler bloom.Add". Without an observer it costs nothing.
func (r *record) label(ctx context.Context, operation string) context.Context {
	if !r.client.Observed() {
		return ctx
	}
	if own := upstash.LabelOf(ctx); own != "" {
		operation = own + " " + operation
	}
	return upstash.WithLabel(ctx, operation)
}

// forget resets the record: like a new one, it knows nothing of its key.
func (r *record) forget() {
	r.verified.Store(false)
	r.refused.Store(nil)
	if !r.headed() {
		r.settling.Store(false)
	}
}

// mayWrite returns an error if a write is known to fail or to do harm.
func (r *record) mayWrite() error {
	if err := r.refused.Load(); err != nil {
		return untouched(*err)
	}
	if r.client.ReadOnly() {
		return upstash.ErrReadOnly
	}
	return nil
}

// learn compares a header word from the primary with the record's, and
// remembers the result: after another filter, nothing is written until the
// right filter, or none, was seen.
func (r *record) learn(word int64) error {
	err := r.compare(word)
	switch {
	case err == nil:
		r.verified.Store(true)
		r.refused.Store(nil)
	case is(err, ErrNotFound):
		r.forget()
	default:
		return r.refuse(err)
	}
	return err
}

// compare judges a header word and remembers nothing.
func (r *record) compare(word int64) error {
	switch word {
	case r.header:
		return nil
	case 0:
		return ErrNotFound
	}
	got, err := parseHeader(uint64(word))
	if err != nil {
		return err
	}
	return newMismatchError(r.kind, r.geo, got)
}

// compareNear is compare for a header word that a region may have sent.
func (r *record) compareNear(word int64) error {
	if word == 0 && r.header != 0 {
		return missingNear{}
	}
	return r.compare(word)
}

// refuse remembers why nothing more may be written.
func (r *record) refuse(err error) error {
	r.refused.Store(&err)
	return err
}

// failed explains an error of the primary, and remembers a key of another type.
func (r *record) failed(err error) error {
	err = r.explain(err)
	if is(err, ErrNotFilter) {
		return r.refuse(err)
	}
	return err
}

// explain adds to a server's words their meaning for a filter.
func explain(err error) error {
	server, ok := as[*upstash.Error](err)
	switch {
	case !ok:
	case server.Code() == "WRONGTYPE":
		return &wrongTypeError{err}
	case is(err, upstash.ErrRequestTooLarge):
		return errorf("bloom: the request is too large for the database: lower"+
			" Config.BatchBytes: %w", err)
	}
	return err
}

// explain also says what makes the record's string shorter, if it is too long.
func (r *record) explain(err error) error {
	if is(err, upstash.ErrRecordTooLarge) {
		return r.tooLarge(err)
	}
	return explain(err)
}

// explainRead is explain for a look-up.
func explainRead(err error) error {
	if is(err, upstash.ErrOutOfMemory) {
		return errorf("bloom: a BITFIELD counts as a write, which a full database refuses: free"+
			" memory, or read with upstash.WithReadOnly: %w", err)
	}
	return explain(err)
}

// behindText is the text of a regionError if only a region has answered. It
// names the field of the type's config, which a Window has not.
func (r *record) behindText() string {
	text := "the token may not run BITFIELD, and this answer of a BITFIELD_RO may be that of a" +
		" replica that lags: use a full token, or accept it with upstash.WithReadOnly"
	if r.kind == KindWindow {
		return text
	}
	return text + " or " + typeOf(r.kind, r.geo.Scheme).config + ".Reads"
}

// near reports whether look-ups go to the nearest region first.
func (r *record) near() bool { return r.reads != ReadsPrimary || r.client.ReadOnly() }

// identity asks for the header and the birth number.
func (r *record) identity() *upstash.BitField {
	return upstash.NewBitField(r.key).Get(u53, 0).Get(u53, birthOffset)
}

// identityIn judges the answer to identity.
func identityIn(reply upstash.Reply) (id [2]int64, err error) {
	words, err := reply.Ints(nil)
	if err == nil && len(words) != len(id) {
		err = wrongCount(len(words), len(id))
	}
	for i := 0; i < len(words) && err == nil; i++ {
		id[i], err = fieldWord(words[i])
	}
	return id, err
}

// hasBirth asks the primary whether the filter is the record's and has this
// birth number. Without an answer it returns false.
func (r *record) hasBirth(ctx context.Context, birth int64) bool {
	reply, err := r.client.Do(ctx, r.identity().Command())
	if err != nil {
		return false
	}
	id, err := identityIn(reply)
	return err == nil && id == [2]int64{r.header, birth}
}
