// Package door is what packages upstash and bloom do for the rest of this module,
// and for nobody else. They set the functions, so a package that calls one
// imports theirs. The functions take and return their types as any, because they
// import this package: a client is an *upstash.Client, an option an
// upstash.Option, a filter a handle of package bloom. The tests of this module set
// the one variable.
package door

import (
	"context"
	"time"
)

// ErrLimit is why the context of an attempt has ended if the attempt's own limit
// ended it, and not the caller.
var ErrLimit error = limitError{}

type limitError struct{}

func (limitError) Error() string        { return context.DeadlineExceeded.Error() }
func (limitError) Is(target error) bool { return target == context.DeadlineExceeded }
func (limitError) Timeout() bool        { return true }
func (limitError) Temporary() bool      { return true }

// Patience is how long an attempt of the clients of package upstashtest may take, and
// a command, a header and Close of its servers, unless it is 0 or an option says
// otherwise; and a script of package bloom, and the settling of a TTL. On a busy
// machine a user's limits would end what is only slow.
var Patience time.Duration

var (
	// MaxRequest returns the limit of upstash.WithMaxRequest, in bytes.
	MaxRequest func(client any) int
	// Observed reports whether an observer of the client would see a label.
	Observed func(client any) bool
	// KnownServerTime is ServerTime without a request. If that is not known, it
	// returns the process's own, and false.
	KnownServerTime func(client any) (t time.Time, ok bool)
	// Numbered notes the birth number in a command, a *upstash.Command or
	// *upstash.BitField: each attempt then carries its own, by lots.OfAttempt.
	Numbered func(command any, birth int64)
	// ServerTimeBounds returns the earliest and the latest time that the server's
	// clock may show, by what was last learned of it, however long ago. If that is
	// nothing, ok is false.
	ServerTimeBounds func(client any) (earliest, latest time.Time, ok bool)
	// WithClock makes an option that sets the clocks of ServerTime, wall and
	// monotonic. Timeouts heed neither.
	WithClock func(now func() time.Time, elapsed func() time.Duration) (option any)
	// WithRetryBudget makes an option that limits the retries of all calls of a
	// client together, to 100 by default. A retry takes one, and a successful
	// call brings back a tenth. Without any left, calls end with their first
	// error.
	WithRetryBudget func(tokens int) (option any)
	// TrustRoots makes a client over the native default transport trust a pool of
	// certificates, an *x509.CertPool, in place of the system's. The client must not
	// have been used. On wasm it is nil.
	TrustRoots func(client, roots any)

	// SetBatch sets how many bytes a request of a filter's batches has, and how
	// many requests are under way at once; 0 leaves it. It is for tests.
	SetBatch func(filter any, bytes, parallel int)
	// MirrorClock has a Mirror see another time than time.Now. The answers to its
	// questions then count from the start of the call. It is for tests and the
	// playground.
	MirrorClock func(mirror any, now func() time.Time)
	// InParts makes a bloom.MoveOption with parts of so many bytes, so many at
	// once. It is for tests.
	InParts func(bytes, parallel int) (option any)
)
