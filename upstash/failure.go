package upstash

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Error is the answer of the server, or of a proxy before it, that stands in
// place of a result. It is returned as *Error. It is safe for concurrent use,
// and must not be changed.
type Error struct {
	// StatusCode is the HTTP status: 400 for most failing commands, 401 for a
	// bad token, 429 for a limit, 200 for a command that failed in a pipeline.
	StatusCode int
	// Message holds the server's own words. An argument of the command that
	// they quote is replaced by "…".
	Message string
	// Command is the command's name, never its arguments.
	Command string
	// RetryAfter is the wait that the Retry-After field asked for, 0 if there
	// was none.
	RetryAfter time.Duration

	outcome  outcome
	attempts int // 0 if it is not known
}

// Code returns the first word of the message, e.g. "WRONGTYPE", "NOPERM" or
// "ERR", if it is in capitals, else "".
func (e *Error) Code() string { return codeOf(e.Message) }

// Error returns the command's name, the server's words, the status, what to do
// about it, and whether the command may have run if that is in doubt.
func (e *Error) Error() string {
	text := "upstash: " + e.Command + ": " + e.words()
	if e.attempts > 1 {
		text += fmt.Sprintf(", after %d attempts", e.attempts)
	}
	if o := outcomeOf(e); o == outcomeUnknown {
		text += o.words()
	}
	return text
}

// words returns the text without the command's name, as a part of a longer
// text.
func (e *Error) words() string {
	text := fmt.Sprintf("%s (HTTP status %d)", e.Message, e.StatusCode)
	if kind := e.kind(); kind != nil {
		if _, remedy, ok := strings.Cut(strings.TrimPrefix(kind.Error(), "upstash: "), ": "); ok {
			text += ": " + remedy
		}
	}
	if e.RetryAfter > 0 {
		text += fmt.Sprintf("; try again in %v", e.RetryAfter)
	}
	return text
}

// Is reports whether target is the sentinel that the error matches.
func (e *Error) Is(target error) bool {
	kind := e.kind()
	return kind != nil && kind == target
}

// kind returns the sentinel that the error matches, or nil. The service reports
// its limits with the code ERR and a status that its documentation leaves open,
// so only the words can tell them apart.
func (e *Error) kind() error {
	says := func(words string) bool { return strings.Contains(e.Message, words) }
	switch code := e.Code(); {
	case e.StatusCode == 401:
		return ErrUnauthorized
	case code == "NOPERM":
		return ErrNoPermission
	case code == "EXECABORT":
		return ErrAborted
	case code == "OOM", says("DB capacity quota exceeded"):
		return ErrOutOfMemory
	case says("max requests limit exceeded"), says("max daily request limit exceeded"):
		return ErrQuota
	case e.StatusCode == 429:
		return ErrRateLimited
	case e.StatusCode == 413, says("max request size exceeded"):
		return ErrRequestTooLarge
	case says("max single record size exceeded"), says("string exceeds maximum allowed size"):
		return ErrRecordTooLarge
	}
	return nil
}

// CallError is the error of a call that failed for another reason than an error
// from the server. It is returned as *CallError and wraps the cause: a network
// error, a context's error, or a sentinel such as ErrResponseTooLarge,
// ErrBadResponse, ErrReadOnly or ErrUncertain. It is safe for concurrent use,
// and must not be changed.
type CallError struct {
	// Command is the command's name, never its arguments.
	Command string
	// Attempts is how many times the request was tried.
	Attempts int
	// StatusCode is the HTTP status of the last attempt, 0 if none came.
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
	b.WriteString(outcomeOf(e).words())
	return b.String()
}

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }

// wordsOf returns a cause's text without the prefix that the whole text has.
func wordsOf(err error) string {
	if server, ok := err.(*Error); ok {
		return server.words()
	}
	return strings.TrimPrefix(fmt.Sprint(err), "upstash: ")
}

// RetryAfter returns how long the server asked to wait before another try, 0 if
// err holds no such wish.
func RetryAfter(err error) time.Duration {
	var server *Error
	if errors.As(err, &server) {
		return server.RetryAfter
	}
	return 0
}

// SafeToRetry reports whether err guarantees that no attempt of the command
// changed anything: it was never sent, or refused, or it only reads. If err, or
// an error that it wraps, has a method SafeToRetry() bool, that one answers.
// For nil, and for any other error from outside this package, SafeToRetry
// returns false.
func SafeToRetry(err error) bool {
	var own interface{ SafeToRetry() bool }
	if errors.As(err, &own) {
		return own.SafeToRetry()
	}
	switch outcomeOf(err) {
	case outcomeNotSent, outcomeRefused, outcomeRead:
		return true
	}
	return false
}

// attemptOutcome returns what one attempt ended in. An error with status 2xx or
// 4xx means that the command changed nothing, unless it was a script, which may
// have stopped half way. Any other status says nothing, and neither does a 408,
// which comes from a proxy.
func attemptOutcome(t traits, err error) outcome {
	var server *Error
	switch {
	case isNotSent(err):
		return outcomeNotSent
	case !errors.As(err, &server):
		return outcomeUnknown
	case server.StatusCode == 408, server.StatusCode/100 != 2 && server.StatusCode/100 != 4:
		return outcomeUnknown
	case t&traitScript == 0, server.Code() == "NOSCRIPT":
		return outcomeRefused
	case server.StatusCode == 401, server.StatusCode == 413, server.StatusCode == 429:
		return outcomeRefused
	}
	return outcomeUnknown
}

// outcomeOf returns what an error was judged to be when it was made. One that
// was made elsewhere, for example in a test, is judged as the only attempt of a
// write.
func outcomeOf(err error) outcome {
	var call *CallError
	var server *Error
	switch {
	case errors.As(err, &call):
		if call.outcome != outcomeUnjudged {
			return call.outcome
		}
	case errors.As(err, &server):
		if server.outcome != outcomeUnjudged {
			return server.outcome
		}
	case errors.Is(err, ErrArgument), errors.Is(err, ErrReadOnly),
		errors.Is(err, ErrClosed), errors.Is(err, ErrNoTransport):
		return outcomeNotSent
	}
	return judge(0, false, attemptOutcome(0, err))
}
