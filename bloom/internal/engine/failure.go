package engine

import (
	"errors"
	"fmt"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
)

// Package bloom documents these.
var (
	ErrNotFound  = errors.New(textNoFilter + textCheckKey)
	ErrUncertain = errors.New("bloom: the item is in the filter, and it may have been new: an" +
		" earlier attempt may have added it; treat it as new if doing the work twice is better" +
		" than never")
	ErrNoTTL = errors.New("bloom: the write is in the filter, but its TTL could not be set; the" +
		" next Add tries again")
	ErrRecreated = errors.New("bloom: during the call the filter was replaced, or it was deleted," +
		" expired or evicted, and created again; what was added before is gone: call again")
	ErrKeyExists = errors.New("bloom: the key to rename to holds something: choose another key," +
		" or delete it first")
	ErrEmptyKey = errors.New(`bloom: the key is empty: name the filter, e.g. "seen:webhooks"`)
	ErrLoadLost = errors.New("bloom: a part of the upload was gone before it could be used, and" +
		" nothing of it was taken: turn eviction off for such a database, and try again")
	ErrNoHeader = fmt.Errorf("%w: its first 53 bits are zero; use a key that holds nothing else",
		format.ErrNotFilter)
)

var ErrNegative = fault.Errorf("bloom: %w: a negative count", upstash.ErrBadResponse)

// Explain adds to a server's words their meaning for a filter.
func Explain(err error) error {
	server, ok := fault.As[*upstash.Error](err)
	switch {
	case !ok:
	case server.Code() == "WRONGTYPE":
		return &wrongTypeError{err}
	case server.Code() == "CROSSSLOT":
		return fault.Errorf("bloom: the database is a cluster, which takes several keys at once only if they have"+
			" one tag, as in {x}:seen: %w", err)
	case fault.Is(err, upstash.ErrRequestTooLarge):
		return fault.Errorf("bloom: the request is too large for the database: lower"+
			" upstash.WithMaxRequest: %w", err)
	}
	return err
}

// explainRead is Explain for a look-up.
func explainRead(err error) error {
	if fault.Is(err, upstash.ErrOutOfMemory) {
		return fault.Errorf("bloom: a BITFIELD counts as a write, which a full database refuses: free"+
			" memory, or look up with Config.ReadsNearest or upstash.WithReadOnly: %w", err)
	}
	return Explain(err)
}

// wrongTypeError is format.ErrNotFilter after a WRONGTYPE, whose words say less.
type wrongTypeError struct{ err error }

func (e *wrongTypeError) Error() string {
	return "bloom: the key holds a list, a hash or another type that is no string, and so no filter:" +
		" use a key that holds nothing else"
}
func (e *wrongTypeError) Is(target error) bool { return target == format.ErrNotFilter }
func (e *wrongTypeError) Unwrap() error        { return e.err }

// Sentinels in other words.
var (
	// errMissingNear is ErrNotFound of an answer that a region may have given.
	errMissingNear = error(&variant{
		textNoFilter + ", or the nearest region does not have it yet" + textCheckKey, ErrNotFound,
	})
	// ErrBareMissing is ErrNotFound of a Bare filter, which Create does not make.
	ErrBareMissing = error(&variant{"bloom: no string at this key: nothing was added, or it expired or was" +
		" evicted; check the key and the database's URL", ErrNotFound})
	// errChanged is ErrRecreated of a part that a region may have sent.
	errChanged = error(&variant{"bloom: the filter was deleted, replaced or created again during the call, or the" +
		" nearest region does not have all of it yet: call again, and use a client without" +
		" upstash.WithoutSyncToken", ErrRecreated})
	// errTakenKey is ErrKeyExists of a Restore.
	errTakenKey = error(&variant{"bloom: the key holds something, and a backup is restored only to a free key:" +
		" choose another, or delete it first; to put back a plain filter without a gap, use Backup.Local" +
		" and Filter.Replace", ErrKeyExists})
	// ErrTaken is ErrUncertain of an upload.
	ErrTaken = error(&variant{"bloom: it is not known whether the upload was taken: the script was sent again, and" +
		" its parts were gone; an earlier attempt may have taken them, or they were evicted: call again", ErrUncertain})
)

type variant struct {
	text string
	of   error
}

func (e *variant) Error() string        { return e.text }
func (e *variant) Is(target error) bool { return target == e.of }

// NoFilterHere reports whether an error of the primary says that the filter is no
// longer there.
func NoFilterHere(err error) bool { return fault.Is(err, ErrNotFound) || IsForeign(err) }

// IsAnswer reports whether an error of the primary says what is at the key.
func IsAnswer(err error) bool { return NoFilterHere(err) || fault.Is(err, ErrRecreated) }

const (
	textNoFilter = "bloom: no filter at this key: it was never created, expired or was evicted"
	textCheckKey = "; check the key and the database's URL, or call Create"
)

// otherFilter marks the error about another filter at the key.
type otherFilter struct{ error }

func (e *otherFilter) Unwrap() error { return e.error }

// AsOtherFilter marks err as one that says that another filter is at the key.
func AsOtherFilter(err error) error { return &otherFilter{err} }

// IsForeign reports whether an error says that the key holds something else.
func IsForeign(err error) bool {
	_, other := fault.As[*otherFilter](err)
	return other || fault.Is(err, format.ErrNotFilter)
}

// untouchedUnlessRepeated marks the error of a script that found no filter, or
// another one, and so changed nothing. If there was an earlier attempt, that one
// may have run on a filter deleted since, or may run on one created later.
func untouchedUnlessRepeated(err error, maybeRepeated bool) error {
	if NoFilterHere(err) && !maybeRepeated {
		return fault.Untouched(err)
	}
	return err
}

// orContradiction returns why a script refused a filter. If nothing is wrong
// with the header in its answer, the answer contradicts itself.
func orContradiction(err error) error {
	if err == nil {
		return fault.Errorf("bloom: %w: a filter was refused, but its header is right",
			upstash.ErrBadResponse)
	}
	return err
}
