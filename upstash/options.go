package upstash

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Option sets how a client behaves. New and [FromEnv] take Options and check
// their values. A nil Option is ignored; of two of a kind the last counts.
type Option func(*settings)

const (
	defaultTimeout     = 10 * time.Second
	defaultRetries     = 4
	defaultRetryBudget = 100
	defaultBackoffBase = 50 * time.Millisecond
	defaultBackoffCap  = 2 * time.Second
	defaultMaxResponse = 32 << 20
	defaultMaxConns    = 256
)

type settings struct {
	transport    Transport
	timeout      time.Duration
	retries      int
	retryBudget  int
	backoffBase  time.Duration
	backoffCap   time.Duration
	maxResponse  int
	maxConns     int
	observer     func(context.Context, Event)
	callObserver func(context.Context, Event)
	clock        processClock
	readOnly     bool
	noSyncToken  bool
	allowHTTP    bool
}

func newSettings(opts []Option) (settings, error) {
	s := settings{
		timeout: defaultTimeout, retries: defaultRetries, retryBudget: defaultRetryBudget,
		maxResponse: defaultMaxResponse,
		maxConns:    defaultMaxConns,
		backoffBase: defaultBackoffBase, backoffCap: defaultBackoffCap,
		clock: newProcessClock(),
	}
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
	case s.retryBudget < 0:
		return bad("WithRetryBudget(%d): use 0 for no limit, or a positive number", s.retryBudget)
	case s.backoffBase < 0 || s.backoffCap < s.backoffBase:
		return bad("WithBackoff(%v, %v): use 0 <= base <= cap", s.backoffBase, s.backoffCap)
	case s.maxResponse < 1:
		return bad("WithMaxResponse(%d): use at least 1 byte", s.maxResponse)
	case int64(s.maxResponse) > math.MaxUint32:
		return bad("WithMaxResponse(%d): use less than 4 GiB", s.maxResponse)
	case s.maxConns < 1:
		return bad("WithMaxConns(%d): use at least 1", s.maxConns)
	}
	return s, nil
}

// WithTransport sets what carries the requests. The default, also for nil, is
// the platform's: HTTP/1.1 natively, fetch on js/wasm, none on wasip1. The
// client does not close t.
func WithTransport(t Transport) Option { return func(s *settings) { s.transport = t } }

// WithTimeout sets how long one attempt may take; the default is 10 s. With 0
// only the context limits it. The context alone limits the whole call, with its
// retries and the pauses between them.
//
// If the peer of a pooled connection vanished without a word, the default
// transport notices after 3 s, on Linux, for requests of at most 8 KiB. Larger
// requests, other systems and other transports wait for the whole timeout.
func WithTimeout(d time.Duration) Option { return func(s *settings) { s.timeout = d } }

// WithRetry sets how many times a call is tried again after its first attempt;
// the default is 4. With 0 there is one attempt.
//
// A request that was never sent, or was refused with status 429, is tried again
// for any command. If it may have been executed, it is tried again only if all
// its commands are repeatable. A spent quota ([ErrQuota]) ends the call.
func WithRetry(retries int) Option { return func(s *settings) { s.retries = retries } }

// WithRetryBudget sets how many retries the client may make over all its calls
// while the server fails; the default is 100. A retry takes a token from the
// budget, and a successful call brings a tenth of one back. If the budget is
// spent, calls end with their first error. While a server is down, even many
// callers send it hardly more than one request for each call, and it can
// recover. With 0 only [WithRetry] limits the retries.
func WithRetryBudget(tokens int) Option { return func(s *settings) { s.retryBudget = tokens } }

// WithBackoff sets the pauses between attempts: before the nth retry a random
// time between 0 and the lesser of ceiling and base * 2^(n-1). The defaults are
// 50 ms and 2 s. If the server asks for a pause with Retry-After, the call
// makes it, and then a random one of the same length at most, and of ceiling at
// most: callers sent away together come back one by one. If the server asks for
// more than 30 s, the call ends (see [RetryAfter]).
func WithBackoff(base, ceiling time.Duration) Option {
	return func(s *settings) { s.backoffBase, s.backoffCap = base, ceiling }
}

// WithMaxResponse sets the longest response to accept, in bytes; the default is
// 32 MiB, and the most is a byte less than 4 GiB. Reading a response takes
// memory beside it: 16 bytes an element for [Reply.Array], which is 8 times the
// length of an array of digits, and about 200 bytes a command for
// [Client.Pipeline] and [Client.MultiExec].
func WithMaxResponse(bytes int) Option { return func(s *settings) { s.maxResponse = bytes } }

// WithMaxConns sets how many connections the native default transport has open
// at most; the default is 256. Each call in progress needs one: n calls run at
// once. A further call waits for a free connection until its context ends. Each
// of its attempts waits as long as [WithTimeout] allows; if none gets a
// connection, the call did not run. All n connections may stay open between
// calls, and a burst of calls uses those of the burst before. After 30 s
// without use a connection is not used again, and a later call closes it.
//
// An open connection costs a file descriptor here and at the server, and about
// 30 KB of memory. On other platforms, and with [WithTransport], the number of
// connections is the transport's own business.
func WithMaxConns(n int) Option { return func(s *settings) { s.maxConns = n } }

// WithReadOnly makes a client that refuses to write: a command not certain to
// be a read returns [ErrReadOnly] before anything is sent, and
// [Client.BitField] sends BITFIELD_RO. Use it with a read-only token. On a
// global database a replica may answer, and may not have seen the last writes
// of other clients.
func WithReadOnly() Option { return func(s *settings) { s.readOnly = true } }

// WithoutSyncToken turns off read-your-writes: the sync token of a response is
// neither kept nor sent. On a global database a replica may then answer a read
// without having seen this client's last write.
func WithoutSyncToken() Option { return func(s *settings) { s.noSyncToken = true } }

// WithInsecureHTTP allows http:// to hosts other than loopback. The token and
// all data travel in clear text: use it on a network you trust.
func WithInsecureHTTP() Option { return func(s *settings) { s.allowHTTP = true } }

// WithObserver calls f after every attempt, on the caller's goroutine, with the
// call's own context. f must be fast and safe for concurrent use. If the client
// refuses a command before sending, there is no attempt.
func WithObserver(f func(context.Context, Event)) Option {
	return func(s *settings) { s.observer = f }
}

// WithCallObserver calls f once at the end of every call, with the sum of all
// its attempts. As for [WithObserver], f runs on the caller's goroutine. If the
// client refuses a command before sending, there is no call. If a
// [Client.Pipeline] sends a [Script] once more, that is a call of its own.
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

// WithClock sets the clocks of [Client.ServerTime]: the wall clock, and a
// monotonic one, which counts from any moment. The default is the clocks of
// package time, also if one of the two is nil. WithClock is meant for tests of
// programs whose clocks are wrong, jump or stand still; timeouts do not heed
// it.
func WithClock(now func() time.Time, elapsed func() time.Duration) Option {
	if now == nil || elapsed == nil {
		return nil
	}
	return func(s *settings) { s.clock = processClock{now, elapsed} }
}
