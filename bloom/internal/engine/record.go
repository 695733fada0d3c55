// Package engine keeps one Redis string of any kind: what is sent to it, how its
// answers are judged, and what is remembered of it. Package bloom gives the words
// their meaning.
package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/upstash"
)

// A Record is one Redis string: its key, the header it should have, and a
// handle's knowledge of it. Every type of package bloom in Redis is made of
// records. It is safe for concurrent use.
type Record struct {
	Client    *upstash.Client
	Key       string
	Items     Items         // how an item is written and read
	Shape     Shape         // nil for a plain filter
	Timed     Timed         // nil for all kinds but a Window
	Scripted  Scripted      // nil for a kind that writes by BITFIELD
	Meaning   Meaning       // says what a strange word means
	Header    int64         // the word at bit 0; 0 in the Bare layout
	Rate      uint64        // the coded false positive rate, in the low bits of its birth numbers
	TTL       time.Duration // to settle with; 0 for none
	MustExist bool          // a write to a missing filter creates nothing
	Nearest   bool          // the nearest region is asked

	// Only what the primary said is remembered: a replica may speak of the
	// past.
	Verified atomic.Bool           // the header was seen and is ours
	refused  atomic.Pointer[error] // why nothing more is written
	settling atomic.Pointer[settlement]
	// bareSettled: a Bare record's EXPIRE was sent. Nothing in the string says so.
	bareSettled atomic.Bool
	NoRESP2     atomic.Bool // the server sends no RESP2
}

func (r *Record) Headed() bool { return r.Header != 0 }

// Label names the operation for the client's observer, after the caller's own
// label: "crawler bloom.Add". Without an observer it costs nothing.
func (r *Record) Label(ctx context.Context, operation string) context.Context {
	if !door.Observed(r.Client) {
		return ctx
	}
	if own := upstash.LabelOf(ctx); own != "" {
		operation = own + " " + operation
	}
	return upstash.WithLabel(ctx, operation)
}

// Forget resets the record: like a new one, it knows nothing of its key.
func (r *Record) Forget() {
	r.Verified.Store(false)
	r.refused.Store(nil)
	r.bareSettled.Store(false)
}

// Learn compares a header word from the primary with the record's, and
// remembers the result: after another filter, nothing is written until the
// right filter, or none, was seen.
func (r *Record) Learn(word int64) error {
	err := r.Compare(word)
	switch {
	case err == nil:
		r.Verified.Store(true)
		r.refused.Store(nil)
	case fault.Is(err, ErrNotFound):
		r.Forget()
	default:
		return r.Refuse(err)
	}
	return err
}

// Compare judges a header word and remembers nothing.
func (r *Record) Compare(word int64) error {
	switch word {
	case r.Header:
		return nil
	case 0:
		return ErrNotFound
	}
	return r.Meaning.OtherHeader(word)
}

// compareNear is Compare for a header word that a region may have sent, of a
// record with a header.
func (r *Record) compareNear(word int64) error {
	if word == 0 {
		return errMissingNear
	}
	return r.Compare(word)
}

// Refuse remembers why nothing more may be written.
func (r *Record) Refuse(err error) error {
	r.refused.Store(&err)
	return err
}

// Failed explains an error of the primary, and remembers a key of another type.
func (r *Record) Failed(err error) error {
	err = r.explainWrite(err)
	if fault.Is(err, format.ErrNotFilter) {
		return r.Refuse(err)
	}
	return err
}

// failedAt is Failed, or Explain if the error may be that of a region.
func (r *Record) failedAt(near bool, err error) error {
	if near {
		return Explain(err)
	}
	return r.Failed(err)
}

// explainWrite is Explain for a write: it also says what makes the string shorter,
// if it is too long.
func (r *Record) explainWrite(err error) error {
	if fault.Is(err, upstash.ErrRecordTooLarge) {
		return r.Meaning.TooLarge(err)
	}
	return Explain(err)
}

// CompareKind judges the kind's own word of an answer.
func (r *Record) CompareKind(word int64) error {
	if r.Shape == nil {
		return nil
	}
	mutable := r.Shape.MutableBits()
	if fixed := r.Shape.KindWord(nil) >> mutable; word>>mutable == fixed {
		return nil
	}
	return r.Meaning.OtherWord(word)
}

// learnKind is CompareKind for an answer of the primary, and remembers that
// nothing may be written to another string.
func (r *Record) learnKind(word int64) error {
	err := r.CompareKind(word)
	if err != nil {
		r.Refuse(err)
	}
	return err
}
