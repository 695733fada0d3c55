package upstash

import (
	"context"
	"time"
)

// Event describes one attempt, or a whole call as their sum. It holds no key,
// item or token, unless the label does. It may be copied and kept.
type Event struct {
	Label      string // see [WithLabel]
	Command    string // its name, or PIPELINE or MULTI-EXEC
	Commands   int    // in the request
	Attempt    int    // counts from 1; in a whole call, how many there were
	StatusCode int    // the last HTTP status, 0 if no response came
	// Ran is how many commands the server sent results for. MayHaveRun is how
	// many more may have run, and been billed.
	Ran, MayHaveRun   int
	Start             time.Time
	Duration          time.Duration // with the pauses between attempts
	BytesOut, BytesIn int           // of the bodies
	// Err is what Do or Pipeline returns, or would if no other attempt followed,
	// without the errors of single replies.
	Err error
}

// add makes e the sum of the attempts of a call.
func (e *Event) add(attempt Event) {
	e.Attempt, e.StatusCode = attempt.Attempt, attempt.StatusCode
	e.Ran += attempt.Ran
	e.MayHaveRun += attempt.MayHaveRun
	e.BytesOut += attempt.BytesOut
	e.BytesIn += attempt.BytesIn
}

type labelKey struct{}

// WithLabel returns a context that puts label into the events of its calls. It is
// not sent. Package bloom puts the name of its operation behind it: with the label
// "crawler" the events of a Filter's Add have "crawler bloom.Add", and without one
// "bloom.Add".
func WithLabel(ctx context.Context, label string) context.Context {
	return context.WithValue(ctx, labelKey{}, label)
}

// LabelOf returns the label of [WithLabel], or "".
func LabelOf(ctx context.Context) string {
	label, _ := ctx.Value(labelKey{}).(string)
	return label
}
