package upstash

import (
	"context"
	"time"
)

// Event describes one attempt of a call, or a whole call. It holds no key, no
// item and no token, unless the caller put one into the label. It may be
// copied, and kept after the observer returned.
type Event struct {
	// Label is what [WithLabel] put into the call's context.
	Label string
	// Command is the command's name; PIPELINE or MULTI-EXEC for several.
	Command string
	// Commands is how many commands the request carries.
	Commands int
	// Attempt counts from 1. Of a whole call it is how many attempts were made,
	// 0 if the context had ended before the first.
	Attempt int
	// StatusCode is the HTTP status, 0 if no response came. Of a whole call it
	// is that of the last attempt.
	StatusCode int
	// Ran is how many commands ran for certain: the server sent a result for
	// them. MayHaveRun is how many more may have run. Commands that were never
	// sent or were refused count in neither; of a batch with a script, those
	// with an error count in MayHaveRun. For a whole call they are sums over its
	// attempts.
	//
	// The call is billed for Ran commands at least. What else is billed is not
	// counted here: the commands that a script calls, a write in each read
	// region, and perhaps a command that failed.
	Ran, MayHaveRun int
	// Start is when the attempt or call began, Duration how long it took until
	// the whole response was read; in a call the pauses are part of it.
	Start    time.Time
	Duration time.Duration
	// BytesOut and BytesIn are the sizes of the two bodies, summed over the
	// attempts of a whole call.
	BytesOut, BytesIn int
	// Err is nil, a [*Error], or the cause that a [*CallError] would wrap. Of a
	// whole call it is what [Client.Do] or [Client.Pipeline] returns. The errors
	// of single replies are not in it, nor what a typed method finds in them,
	// such as [ErrUncertain].
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

// WithLabel returns a context that puts label into the events of its calls. A
// label says what the program was doing, for example, and to which of its keys.
// It is for observers alone: no error shows it, and it is not sent.
func WithLabel(ctx context.Context, label string) context.Context {
	return context.WithValue(ctx, labelKey{}, label)
}

// LabelOf returns the label of ctx, from [WithLabel], or "".
func LabelOf(ctx context.Context) string {
	label, _ := ctx.Value(labelKey{}).(string)
	return label
}
