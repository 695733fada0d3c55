package upstash

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrNoTransport is returned when the platform has no network of its own
	// (GOOS=wasip1) and no Transport was passed.
	ErrNoTransport = errors.New("upstash: no transport on this platform: pass one with WithTransport," +
		" e.g. httptransport.New(client) around the http.Client of your host's SDK")

	// ErrResponseTooLarge is returned when a response is longer than the limit
	// set by WithMaxResponse.
	ErrResponseTooLarge = errors.New("response is larger than the limit: raise it with WithMaxResponse," +
		" or ask for less at once")

	// ErrBadResponse is returned when a response is not what the REST API
	// gives: not JSON, cut short, or a result of another type or length.
	ErrBadResponse = errors.New("unexpected response")

	// ErrReadOnly is returned, before anything is sent, when a client made
	// with WithReadOnly is asked to write.
	ErrReadOnly = errors.New("the client is read-only: make one without WithReadOnly and with a full token")

	// ErrUncertain is returned by a typed write when it had to be sent again
	// after an attempt whose outcome is unknown, so that the answer may be
	// that of a repetition. The write itself is in place.
	ErrUncertain = errors.New("the write is in place, but an earlier attempt may already have made it")

	// ErrNil is returned when a value is asked of a reply that is null.
	ErrNil = errors.New("upstash: the reply is null: check IsNil first")

	// ErrArgument is returned, before anything is sent, when a command cannot
	// be encoded: an argument that is not valid UTF-8, an empty name, a value
	// out of range.
	ErrArgument = errors.New("upstash: bad argument")

	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("upstash: the client is closed: make a new one with New")

	// ErrUnauthorized is matched by an Error whose status is 401.
	ErrUnauthorized = errors.New("upstash: unauthorized")
)

// Error is what the server, or a proxy before it, said instead of a result.
// It is returned as *Error and must not be changed.
type Error struct {
	// StatusCode is the HTTP status: 400 for most failing commands, 401 for a
	// bad token, 429 for a limit, 200 for a command that failed in a pipeline.
	StatusCode int
	// Message is the server's own words, with arguments of the command taken
	// out where it quoted them.
	Message string
	// Command is the command's name, never its arguments.
	Command string
	// RetryAfter is what the Retry-After field asked for, or 0.
	RetryAfter time.Duration

	script   bool
	attempts int // 0 where it is not known
}

// Code is the first word of the message where it is in capitals, e.g.
// "WRONGTYPE", "NOPERM" or "ERR", else "".
func (e *Error) Code() string { return codeOf(e.Message) }

func codeOf(message string) string {
	word, _, _ := strings.Cut(message, " ")
	for i := 0; i < len(word); i++ {
		if word[i] < 'A' || word[i] > 'Z' {
			return ""
		}
	}
	return word
}

// Error gives the command's name, the server's words, the status, and whether
// the command may have run where that is in doubt.
func (e *Error) Error() string {
	text := "upstash: " + e.Command + ": " + e.words()
	if e.attempts > 1 {
		text += fmt.Sprintf(", after %d attempts", e.attempts)
	}
	if e.outcome() == outcomeUnknown {
		text += "; the command may have run"
	}
	return text
}

// words is the error without the command's name, for a longer text.
func (e *Error) words() string {
	text := fmt.Sprintf("%s (HTTP status %d)", e.Message, e.StatusCode)
	if e.StatusCode == 401 {
		text += ": use the REST token of this database (UPSTASH_REDIS_REST_TOKEN), not its password"
	}
	if e.RetryAfter > 0 {
		text += fmt.Sprintf(": try again in %v", e.RetryAfter)
	}
	return text
}

// Is makes errors.Is(err, ErrUnauthorized) true for status 401.
func (e *Error) Is(target error) bool {
	return target == ErrUnauthorized && e.StatusCode == 401
}

// outcome tells what the error says about the command: an error answer means
// that it changed nothing, unless it was a script, which may have stopped half
// way. Any other status, and a 408 from a proxy, say nothing at all.
func (e *Error) outcome() outcome {
	switch {
	case e.StatusCode == 408, e.StatusCode/100 != 2 && e.StatusCode/100 != 4:
		return outcomeUnknown
	case e.script && e.StatusCode != 401 && e.StatusCode != 429:
		return outcomeUnknown
	}
	return outcomeRefused
}

// CallError is a call that ended without an answer from the server. It is
// returned as *CallError and wraps the cause: a network error, a context's
// error, ErrResponseTooLarge or ErrBadResponse.
type CallError struct {
	// Command is the command's name, never its arguments.
	Command string
	// Attempts is how many times the request was tried.
	Attempts int
	// StatusCode is the HTTP status of the last attempt, 0 where none came.
	StatusCode int
	// Err is the cause.
	Err error

	outcome outcome
}

// Error says what failed and whether the command may have run.
func (e *CallError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "upstash: %s: %s", e.Command, wordsOf(e.Err))
	var server *Error // has its status in its words
	if e.StatusCode != 0 && !errors.As(e.Err, &server) {
		fmt.Fprintf(&b, " (HTTP status %d)", e.StatusCode)
	}
	if e.Attempts > 1 {
		fmt.Fprintf(&b, ", after %d attempts", e.Attempts)
	}
	switch e.outcome {
	case outcomeNotSent, outcomeRefused:
		b.WriteString("; the command did not run")
	case outcomeUnknown:
		b.WriteString("; the command may have run")
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *CallError) Unwrap() error { return e.Err }

// wordsOf is a cause's text without what the whole begins with.
func wordsOf(err error) string {
	if server, ok := err.(*Error); ok {
		return server.words()
	}
	return strings.TrimPrefix(fmt.Sprint(err), "upstash: ")
}

// quietError is an error of a transport that quoted the request.
type quietError struct {
	text string
	err  error
}

func (e *quietError) Error() string    { return e.text }
func (e *quietError) GoString() string { return e.text }
func (e *quietError) Unwrap() error    { return e.err }

// quiet keeps the token and the request out of an error's text.
func quiet(err error, token string, body []byte) error {
	said := err.Error()
	if text := redact(said, token, body); text != said {
		return &quietError{text, err}
	}
	return err
}

// RetryAfter gives how long the server asked to wait before another try, 0
// where err does not say.
func RetryAfter(err error) time.Duration {
	var server *Error
	if errors.As(err, &server) {
		return server.RetryAfter
	}
	return 0
}

// SafeToRetry reports whether err guarantees that no attempt of the command
// was executed: it was never sent, or refused. It is false for nil and for an
// error that does not come from this package, unless that, or one that it
// wraps, has a method SafeToRetry() bool to answer for itself.
func SafeToRetry(err error) bool {
	var own interface{ SafeToRetry() bool }
	if errors.As(err, &own) {
		return own.SafeToRetry()
	}
	var call *CallError
	if errors.As(err, &call) {
		return call.outcome <= outcomeRefused
	}
	var server *Error
	if errors.As(err, &server) {
		return server.outcome() <= outcomeRefused
	}
	return errors.Is(err, ErrArgument) || errors.Is(err, ErrReadOnly) ||
		errors.Is(err, ErrClosed) || errors.Is(err, ErrNoTransport)
}

// outcome is what is known of an attempt that brought no result.
type outcome uint8

const (
	outcomeNotSent  outcome = iota // nothing reached the server
	outcomeRefused                 // the server said no: nothing changed
	outcomeUnknown                 // sent, and no whole answer came back
	outcomeAnswered                // a whole answer, of another type than was asked for
)

// contextError gives the context's own cause where the context has ended, so
// that errors.Is(err, context.Canceled) holds whatever the network said.
func contextError(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	if errors.Is(err, cause) && errors.Is(err, ctx.Err()) {
		return err
	}
	if errors.Is(cause, ctx.Err()) {
		return cause
	}
	return fmt.Errorf("%w: %w", ctx.Err(), cause)
}

func argumentError(command, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrArgument, command, fmt.Sprintf(format, args...))
}
