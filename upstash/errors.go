package upstash

import (
	"errors"
	"fmt"
)

// Errors found by this client itself.
var (
	// ErrNoTransport is returned when no [Transport] was passed and the
	// platform has none: GOOS=wasip1, or a host of GOOS=js without fetch or
	// timers.
	ErrNoTransport = errors.New("upstash: no transport on this platform: pass one with WithTransport," +
		" e.g. httptransport.New(client) around the http.Client of your host's SDK")

	// ErrResponseTooLarge is returned when the body of a response is longer
	// than [WithMaxResponse] allows.
	ErrResponseTooLarge = errors.New("upstash: response is larger than the limit: raise it with" +
		" WithMaxResponse, or ask for less at once")

	// ErrBadResponse is returned when a response is not what the REST API
	// sends: not JSON, cut short, or a result of another type or length.
	ErrBadResponse = errors.New("upstash: unexpected response")

	// ErrReadOnly is returned, before anything is sent, when a client made with
	// [WithReadOnly] is asked to write.
	ErrReadOnly = errors.New("upstash: the client is read-only: make one without WithReadOnly" +
		" and with a full token")

	// ErrUncertain is returned by a typed write if it was sent again after an
	// attempt of unknown outcome: the answer may be the answer to a repetition.
	// The write itself is in place.
	ErrUncertain = errors.New("upstash: the write is in place, but an earlier attempt may already have made it")

	// ErrNil is returned when a value is read from a null [Reply].
	ErrNil = errors.New("upstash: the reply is null: check IsNil first")

	// ErrArgument is returned, before anything is sent, when a command cannot
	// be encoded (an argument that is not valid UTF-8, an empty name, a value
	// out of range), and by [New] and [FromEnv] for a URL, token or option that
	// cannot be used.
	ErrArgument = errors.New("upstash: bad argument")

	// ErrClosed is returned by every call after Close that would send something.
	ErrClosed = errors.New("upstash: the client is closed: make a new one with New")
)

// Kinds of errors from the server. An Error matches at most one of these: by
// its status or code, or by its words if the service documents nothing better.
var (
	// ErrUnauthorized is matched by an [Error] whose status is 401.
	ErrUnauthorized = errors.New("upstash: unauthorized: use the REST token of this database" +
		" (UPSTASH_REDIS_REST_TOKEN), not its password")

	// ErrNoPermission is matched by an [Error] whose code is NOPERM: the token
	// may not run the command, or not on this key. A read-only token may not
	// run BITFIELD, not even to read.
	ErrNoPermission = errors.New("upstash: the token has no permission for this command:" +
		" use a full token; a client with WithReadOnly looks up with a read-only one")

	// ErrRateLimited is matched by an [Error] whose status is 429, if it is not
	// [ErrQuota]. The client has tried the call again by then, unless
	// [WithRetry], [WithRetryBudget], the context's deadline or a Retry-After of
	// more than 30 s prevented it.
	ErrRateLimited = errors.New("upstash: too many commands in too short a time: send fewer at a time")

	// ErrQuota is matched by an [Error] whose words say that the plan's
	// requests for the day or month are used up. Such a call is not tried
	// again.
	ErrQuota = errors.New("upstash: the plan's requests are used up: wait for the next period," +
		" or choose a larger plan")

	// ErrRequestTooLarge is matched by an [Error] whose status is 413, or whose
	// words say that the request is longer than the plan allows.
	ErrRequestTooLarge = errors.New("upstash: the request is larger than the plan allows: send less at once")

	// ErrRecordTooLarge is matched by an [Error] whose words say that the
	// command would make a string longer than the plan, or Redis itself,
	// allows.
	ErrRecordTooLarge = errors.New("upstash: the record would be larger than the plan allows")

	// ErrOutOfMemory is matched by an [Error] whose words say that the database
	// is full. Redis then refuses BITFIELD even if it only reads, and every
	// transaction ([ErrAborted]); BITFIELD_RO still answers.
	ErrOutOfMemory = errors.New("upstash: the database is full: delete keys, or choose a larger plan")

	// ErrAborted is matched by an [Error] whose code is EXECABORT: the server
	// refused to queue one of a transaction's commands, and ran none. It does
	// not say why. A full Redis queues nothing at all, not even a read.
	ErrAborted = errors.New("upstash: the transaction was discarded: the server refused one of its" +
		" commands, for a mistake in it, for want of permission, or because the database is full" +
		" (then delete keys, or choose a larger plan); Pipeline returns the reason for each command")
)

func argumentError(command, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrArgument, command, fmt.Sprintf(format, args...))
}
