// Package door is what package upstash does for the rest of this module, and
// for nobody else. Package upstash sets the functions, so a package that calls
// one imports it. They take and return its types as any, because it imports this
// package: a client is an *upstash.Client, an option an upstash.Option.
package door

import "time"

var (
	// MaxRequest returns the limit of upstash.WithMaxRequest, in bytes.
	MaxRequest func(client any) int
	// Observed reports whether an observer of the client would see a label.
	Observed func(client any) bool
	// KnownServerTime is ServerTime without a request. If that is not known, it
	// returns the process's own, and false.
	KnownServerTime func(client any) (t time.Time, ok bool)
	// WithClock makes an option that sets the clocks of ServerTime, wall and
	// monotonic. Timeouts heed neither.
	WithClock func(now func() time.Time, elapsed func() time.Duration) (option any)
	// WithRetryBudget makes an option that limits the retries of all calls of a
	// client together, to 100 by default. A retry takes one, and a successful
	// call brings back a tenth. Without any left, calls end with their first
	// error.
	WithRetryBudget func(tokens int) (option any)
)
