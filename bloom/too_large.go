package bloom

import "github.com/upbloom/upbloom/internal/human"

// mostPlansRecord is the longest record in bytes on most of Upstash's plans,
// and every plan allows it.
const mostPlansRecord = 100_000_000

// A tooLargeError is upstash.ErrRecordTooLarge of a filter. The server's words,
// often those of a script, say less, and do not name the limit.
type tooLargeError struct {
	err    error
	bytes  uint64 // of the string that was refused; 0 for that of one more layer
	advice string // what to do about it
}

func (e *tooLargeError) Error() string {
	text := "bloom: the filter's longer string"
	if e.bytes != 0 {
		text = "bloom: the filter's string of " + human.Count(e.bytes) + " bytes"
	}
	return text + " is too large for one record of the database: " + e.advice
}
func (e *tooLargeError) Unwrap() error { return e.err }

// tooLarge explains that the server refused the record's string for its length.
func (r *record) tooLarge(err error) error {
	e := &tooLargeError{err, r.geo.Bytes(r.layout), "lower the Capacity, raise the FPRate, choose a larger" +
		" plan, or spread the items over more records with NewSharded"}
	if r.shape != nil {
		e.bytes, e.advice = r.shape.length(r), r.shape.shorter()
	}
	return e
}
