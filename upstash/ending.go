package upstash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/upbloom/upbloom/upstash/internal/conn"
	"github.com/upbloom/upbloom/upstash/internal/quiet"
)

// networkEnding is the ending of an attempt without a whole answer. If the
// caller's context has ended, the error is the context's; else it may be that of
// the limit.
func (x *call) networkEnding(ctx, tryCtx context.Context, limit time.Duration, err error) ending {
	e, question := ending{err: err, outcome: outcomeUnknown}, ""
	// Only an error made by NotSent itself proves that nothing was sent.
	if mark, ok := err.(*notSentError); ok {
		e.err, e.outcome = mark.err, outcomeNotSent
		question = conn.Question(e.err) // about what is wrong most often then, over any transport
	}
	e.final = conn.Permanent(e.err) || errors.Is(e.err, ErrNoTransport) || errors.Is(e.err, ErrResponseTooLarge)
	// It wraps only errors of the network and the system that say no more than its text.
	e.err = quiet.Error(x.cover([]string{e.err.Error()})[0], e.err)
	if isOver(ctx) {
		e.err = contextError(ctx, e.err)
		return e
	}
	e.err = limitError(tryCtx, limit, e.err)
	// An attempt that took too long says enough.
	if question != "" && !errors.Is(e.err, context.DeadlineExceeded) {
		e.err = fmt.Errorf("%w: %s", e.err, question)
	}
	return e
}

// limitError returns err, with the limit if that ended the attempt. tryCtx is nil if
// the transport watched it.
func limitError(tryCtx context.Context, limit time.Duration, err error) error {
	if tryCtx != nil {
		if !isOver(tryCtx) {
			return err
		}
		if _, cause := endOf(tryCtx); !errors.Is(cause, context.DeadlineExceeded) {
			return cause // the host has no timer for it
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded): // it may say what was waited for
	case tryCtx != nil, errors.Is(err, os.ErrDeadlineExceeded):
		err = context.DeadlineExceeded
	default:
		return err
	}
	return fmt.Errorf("no answer within %v (WithTimeout): %w", limit, err)
}

// interrupted returns the error of a call that ended in the pause after err.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err // its deadline would have come during the pause
	}
	return &interruptedError{contextError(ctx, nil), err}
}

// maxLate is how long the end of a context may take to come after its deadline.
const maxLate = time.Second

// isOver reports whether ctx has ended. The network has a timer of its own for
// the deadline of ctx, which may go off first. Then isOver waits for the end of
// ctx, because only an ended context has a cause.
func isOver(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	if !ok || time.Now().Before(deadline) {
		return ctx.Err() != nil
	}
	late, cancel := withTimeout(context.Background(), maxLate)
	defer cancel()
	select {
	case <-ctx.Done():
	case <-late.Done():
	}
	return true
}

// endOf returns the error and the cause of a context that is over.
func endOf(ctx context.Context) (err, cause error) {
	if err = ctx.Err(); err == nil {
		return context.DeadlineExceeded, context.DeadlineExceeded
	}
	return err, context.Cause(ctx)
}

// contextError returns the cause of a context that is over: errors.Is(err,
// context.Canceled) then holds whatever the network said.
func contextError(ctx context.Context, err error) error {
	ended, cause := endOf(ctx)
	if errors.Is(err, cause) && errors.Is(err, ended) {
		return err
	}
	if errors.Is(cause, ended) {
		return cause
	}
	return fmt.Errorf("%w: %w", ended, cause)
}

// failure returns the caller's error for the ending of the last attempt. cause
// is its error, or wraps it with what ended the call in the pause after it.
func (x *call) failure(e *ending, cause error) error {
	if e.server != nil && cause == e.err {
		return e.server
	}
	return &CallError{
		Command: x.name, Attempts: x.attempts, StatusCode: x.resp.StatusCode, Err: cause,
		outcome: judge(x.traits, x.earlierMayHaveRun, e.outcome),
	}
}

// ending is how an attempt failed. Where the transport or the server said it,
// it is noted once what is known of the commands. Nothing is read out of err
// later: it may wrap the error of another call, such as the cause of a context.
type ending struct {
	err     error  // what the caller is told; nil if the attempt brought an answer
	server  *Error // err, if it is an answer of the server
	outcome outcome
	final   bool // another attempt would end in the same way

	again bool       // the server refused the form of the script
	form  scriptForm // the one to send then
}

// askAboutRedis adds a question if the client never had an answer: Redis itself
// closes the connection when it sees HTTP, and waits for more of a TLS handshake.
func (e *ending) askAboutRedis() {
	unanswered := errors.Is(e.err, errNoAnswer) || errors.Is(e.err, io.EOF) // as net/http says
	if e.outcome == outcomeUnknown && unanswered {
		e.err = fmt.Errorf("%w: is the URL that of a REST API, and not of Redis itself?", e.err)
	} else if errors.Is(e.err, conn.ErrSilentHandshake) {
		e.err = fmt.Errorf("%w: is it Redis' own port, and not that of its REST API?", e.err)
	}
}

// answerEnding is the ending of an attempt with the answer err, from decode.
func answerEnding(t traits, err error) ending {
	server, ok := err.(*Error)
	if !ok {
		return ending{err: err, outcome: outcomeUnknown, final: err == ErrResponseTooLarge}
	}
	return ending{
		err: err, server: server, outcome: answerOutcome(t, server),
		final: server.RetryAfter > maxRetryAfter || server.kind() == ErrQuota,
	}
}

// askAbout adds a question to an error that a wrong scheme or path in the URL may
// have caused. An error that says more than ERR needs none. noMessage is what an
// answer without a message is said to have.
func (e *ending) askAbout(u endpoint, noMessage string) {
	q := "the URL has a path, " + u.path + ": is it right?"
	s := e.server
	switch {
	case s != nil && s.StatusCode == 400 && !u.tls && s.Message == noMessage:
		s.question = "should the URL begin with https://?"
	case u.path == "":
	case errors.Is(e.err, ErrBadResponse):
		e.err = fmt.Errorf("%w: %s", e.err, q)
	case s == nil || s.StatusCode != 400 && s.StatusCode != 404:
	case s.kind() == nil && (s.Code() == "" || s.Code() == "ERR"):
		s.question = q
	}
}

// retryable reports whether another attempt may follow.
func (e *ending) retryable(t traits) bool {
	switch {
	case e.final:
		return false
	case e.outcome == outcomeNotSent:
		return true
	case e.outcome == outcomeRefused:
		return e.server.StatusCode == 429
	case e.server != nil && e.server.StatusCode < 500 && e.server.StatusCode != 408:
		return false // a redirect or a failed script
	}
	return t&traitRepeatable != 0
}

// count sets how many commands ran, and how many may have run. The attempt
// failed as end says, or brought answers, some of them refusals.
func (e *Event) count(x *call, end *ending) {
	if end.err != nil {
		if end.outcome == outcomeUnknown {
			e.MayHaveRun = e.Commands
		}
		return
	}
	e.Ran = e.Commands
	for _, env := range x.envelopes {
		if env.errMsg == nil {
			continue
		}
		e.Ran--
		if x.traits&traitScript != 0 {
			e.MayHaveRun++ // it may be the script that failed
		}
	}
}
