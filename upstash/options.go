package upstash

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Option sets how a client behaves. [New] checks the values. A nil Option is
// ignored; of two of a kind the last counts.
type Option func(*settings)

const (
	defaultTimeout     = 10 * time.Second
	defaultRetries     = 4
	defaultRetryBudget = 100
	defaultBackoffBase = 50 * time.Millisecond
	defaultBackoffCap  = 2 * time.Second
	defaultMaxRequest  = 10_000_000
	defaultMaxResponse = 32 << 20
	defaultMaxConns    = 256

	minMaxRequest = 1 << 10
)

type settings struct {
	transport    Transport
	timeout      time.Duration
	retries      int
	retryBudget  int
	backoffBase  time.Duration
	backoffCap   time.Duration
	maxRequest   int
	maxResponse  int
	maxConns     int
	observer     func(context.Context, Event)
	callObserver func(context.Context, Event)
	clock        processClock
	readOnly     bool
	noSyncToken  bool
	allowHTTP    bool
}

// defaults are the settings without options.
var defaults = settings{
	timeout: defaultTimeout, retries: defaultRetries, retryBudget: defaultRetryBudget,
	maxRequest: defaultMaxRequest, maxResponse: defaultMaxResponse, maxConns: defaultMaxConns,
	backoffBase: defaultBackoffBase, backoffCap: defaultBackoffCap,
}

func newSettings(opts []Option) (settings, error) {
	s := defaults
	s.clock = newProcessClock()
	for _, o := range opts {
		if o != nil {
			o(&s)
		}
	}
	bad := func(format string, args ...any) (settings, error) {
		return s, fmt.Errorf("%w: %s", ErrArgument, fmt.Sprintf(format, args...))
	}
	switch {
	case s.timeout < 0:
		return bad("WithTimeout(%v): use 0 for no limit, or a positive duration", s.timeout)
	case s.retries < 0:
		return bad("WithRetry(%d): use 0 for a single attempt", s.retries)
	case s.backoffBase < 0 || s.backoffCap < s.backoffBase:
		return bad("WithBackoff(%v, %v): use 0 <= base <= cap", s.backoffBase, s.backoffCap)
	case s.maxRequest < minMaxRequest:
		return bad("WithMaxRequest(%d): use at least %d bytes", s.maxRequest, minMaxRequest)
	case s.maxResponse < 1:
		return bad("WithMaxResponse(%d): use at least 1 byte", s.maxResponse)
	case int64(s.maxResponse) > math.MaxUint32:
		return bad("WithMaxResponse(%d): use less than 4 GiB", s.maxResponse)
	case s.maxConns < 1:
		return bad("WithMaxConns(%d): use at least 1", s.maxConns)
	}
	return s, nil
}

// WithTransport sets what carries the requests; nil is the default.
func WithTransport(t Transport) Option { return func(s *settings) { s.transport = t } }

// WithTimeout limits each attempt, to 10 s by default; 0 is no limit. Only the
// context limits a whole call: with the defaults, five attempts and the pauses
// between them, a call to a database that stalls takes 50 to 51 s. A handler with
// less time gives its context a deadline, or sets this and [WithRetry].
//
// If a kept connection brings no answer within this limit, the next attempt opens
// a new one; within a context's deadline only if that left 3 s or more.
func WithTimeout(d time.Duration) Option { return func(s *settings) { s.timeout = d } }

// WithRetry sets how many times a call may be tried again, 4 by default. All
// calls of a client share 100 retries, and a successful call brings back a tenth
// of one: without any left, calls end with their first error.
func WithRetry(retries int) Option { return func(s *settings) { s.retries = retries } }

// WithBackoff sets the pause before retry n: a random time up to base *
// 2^(n-1), but at most ceiling. The defaults are 50 ms and 2 s. A Retry-After
// is waited for, and then a random time up to as long, at most ceiling. One of
// more than 30 s ends the call.
func WithBackoff(base, ceiling time.Duration) Option {
	return func(s *settings) { s.backoffBase, s.backoffCap = base, ceiling }
}

// WithMaxRequest sets how long the body of a request may be, in bytes: what the
// database's plan takes. The default is 10,000,000, which every plan does, the
// minimum 1,024. A longer command or batch returns [ErrRequestTooLarge], and
// nothing is sent. Package bloom splits its own, but no script: with keys of up
// to 40 bytes a Scalable needs 5,100, a Cuckoo 5,400, a Window 1,050, and a Load,
// Replace or Restore 3,900 and the name of each part of the string.
func WithMaxRequest(bytes int) Option { return func(s *settings) { s.maxRequest = bytes } }

// WithMaxResponse limits the length of a response in bytes, to 32 MiB by
// default; it must be below 4 GiB. [Reply.Array] takes 16 bytes an element
// more, a batch about 200 a command.
func WithMaxResponse(bytes int) Option { return func(s *settings) { s.maxResponse = bytes } }

// WithMaxConns limits the connections of the native transport, to 256 by
// default. A call waits for one as long as an attempt may take. Each costs
// about 30 KB.
func WithMaxConns(n int) Option { return func(s *settings) { s.maxConns = n } }

// WithReadOnly makes a client for a read-only token. A command that may write
// returns [ErrReadOnly], and [Client.BitField] sends BITFIELD_RO, which a
// replica may answer, behind others' writes.
func WithReadOnly() Option { return func(s *settings) { s.readOnly = true } }

// WithoutSyncToken turns off read-your-writes: a replica may then answer
// without this client's last write.
func WithoutSyncToken() Option { return func(s *settings) { s.noSyncToken = true } }

// WithInsecureHTTP allows http:// to any host. Token and data travel in clear
// text.
func WithInsecureHTTP() Option { return func(s *settings) { s.allowHTTP = true } }

// WithObserver calls f after every attempt, on the caller's goroutine, with the
// call's context. f must be safe for concurrent use. Of several the last counts.
func WithObserver(f func(context.Context, Event)) Option {
	return func(s *settings) { s.observer = f }
}

// WithCallObserver calls f as [WithObserver] does, but once after every call. Of
// several the last counts, and replaces the others unsaid: to trace and to log, trace
// here, as examples/otel does, and log attempts by WithObserver, or call both in one f.
// Neither is called for [ErrArgument], [ErrReadOnly] and [ErrClosed]. A
// [Script] that a Pipeline sends again is a call of its own.
func WithCallObserver(f func(context.Context, Event)) Option {
	return func(s *settings) { s.callObserver = f }
}

// processClock is the clocks of the process: the wall clock, and a monotonic one.
type processClock struct {
	now     func() time.Time
	elapsed func() time.Duration
}

func newProcessClock() processClock {
	start := time.Now()
	return processClock{now: time.Now, elapsed: func() time.Duration { return time.Since(start) }}
}

// maxClockGap is how far wall and monotonic clock may run apart. A frozen process
// leaves a gap.
const maxClockGap = time.Second

// ranApart reports whether the wall clock went another way than the monotonic one
// did: from wall to now, while passed went by.
func (c processClock) ranApart(wall time.Time, passed time.Duration) bool {
	gap := c.now().Round(0).Sub(wall.Round(0)) - passed
	return gap.Abs() > maxClockGap
}

// withClock sets the clocks of ServerTime, wall and monotonic.
func withClock(now func() time.Time, elapsed func() time.Duration) Option {
	return func(s *settings) { s.clock = processClock{now, elapsed} }
}

// withRetryBudget sets how many retries all calls together may use.
func withRetryBudget(tokens int) Option { return func(s *settings) { s.retryBudget = tokens } }
