package bloom

import (
	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/internal/human"
)

// mostPlansRecord is the longest record in bytes on most of Upstash's plans.
const mostPlansRecord = engine.MostPlansRecord

// A RecordTooLargeError is [upstash.ErrRecordTooLarge] of a filter: the database
// refused the filter's string for its length.
//
// An Add lengthens the string of a [Filter] only as far as the item's last bit.
// Above 100 MB call [Filter.Create] first: it makes the whole string, or returns
// this error. Without it single Adds return it by chance, and others succeed.
type RecordTooLargeError struct {
	// Bytes is the length of the whole string, of which an Add may have needed
	// less. It is 0 if that was to have one more layer of a [Scalable].
	Bytes  uint64
	err    error  // in the server's words, which say less and name no limit
	advice string // what to do about it
}

// Error says how long the string is, and what makes it shorter.
func (e *RecordTooLargeError) Error() string {
	text := "bloom: the filter's longer string"
	if e.Bytes != 0 {
		text = "bloom: the filter's string of " + human.Count(e.Bytes) + " bytes"
	}
	return text + " is too large for one record of the database: " + e.advice
}

// Unwrap returns the error of the server.
func (e *RecordTooLargeError) Unwrap() error { return e.err }

// tooLarge explains that the server refused the record's string for its length.
func (r *record) TooLarge(err error) error {
	e := &RecordTooLargeError{r.geo.Bytes(r.layout), err, "lower the Capacity, raise the FPRate, choose a larger" +
		" plan, or spread the items over more records with NewSharded"}
	if s, ok := r.Shape.(sizedShape); ok {
		e.Bytes, e.advice = s.length(), s.howToShorten()
	}
	return e
}
