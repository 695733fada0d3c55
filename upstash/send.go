package upstash

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// sender sends calls to one database.
type sender struct {
	settings

	endpoint  endpoint
	root      string // the URL of a single command
	auth      **hidden[auth]
	transport Transport
	tokens    syncTokens
	scripts   scriptSupport
}

// auth is the token, alone and in the form of the header field.
type auth struct{ token, bearer string }

// run sends the call and reports it, as a whole, to the call observer.
func (s *sender) run(ctx context.Context, x *call) error {
	x.token = (*s.auth).v.token
	if s.callObserver == nil {
		return s.attempts(ctx, x)
	}
	e := Event{Label: LabelOf(ctx), Command: x.name, Commands: x.commands, Start: time.Now()}
	x.total = &e
	e.Err = s.attempts(ctx, x)
	e.Duration = time.Since(e.Start)
	s.callObserver(ctx, e)
	return e.Err
}

// attempts makes attempts until one brings an answer, or no other may follow.
func (s *sender) attempts(ctx context.Context, x *call) error {
	for {
		err := s.attempt(ctx, x)
		if err == nil {
			return nil
		}
		if x.other { // nothing ran
			x.forms++
			x.inForm(x.form)
			continue
		}
		if x.attempts-x.forms > s.retries || ctx.Err() != nil || !retryable(x.traits, err) {
			return x.failure(err)
		}
		if !sleep(ctx, s.pause(x.attempts, err)) {
			return x.failure(interrupted(ctx, err))
		}
		if attemptOutcome(x.traits, err) == outcomeUnknown {
			x.earlier = true
		}
	}
}

// attempt sends the request once, decodes the answer, and reports the attempt
// to the observers.
func (s *sender) attempt(ctx context.Context, x *call) error {
	x.resp, x.other = Response{}, false
	if err := ctx.Err(); err != nil {
		return NotSent(contextError(ctx, nil))
	}
	x.attempts++
	x.sent = time.Now()
	err := s.sendScript(ctx, x)
	if s.observer == nil && s.callObserver == nil {
		return err
	}
	e := Event{
		Label: LabelOf(ctx), Command: x.name, Commands: x.commands, Attempt: x.attempts,
		StatusCode: x.resp.StatusCode, Start: x.sent, Duration: time.Since(x.sent),
		BytesOut: len(x.body), BytesIn: len(x.resp.Body), Err: err,
	}
	if !x.other {
		e.count(x.traits, x.refused(), err)
	}
	if x.total != nil {
		x.total.add(e)
	}
	if s.observer != nil {
		s.observer(ctx, e)
	}
	return err
}

// sendScript is sendOnce, and learns how the server takes a script.
func (s *sender) sendScript(ctx context.Context, x *call) error {
	err := s.sendOnce(ctx, x)
	if x.script == nil {
		return err
	}
	x.other = false
	if server, ok := err.(*Error); ok {
		x.form, x.other = s.scripts.next(x.script, x.form, server)
	} else if err == nil {
		s.scripts.ran(x.script, x.form)
	}
	return err
}

// sendOnce sends the request and decodes the answer.
func (s *sender) sendOnce(ctx context.Context, x *call) error {
	mark := s.prepare(x)
	err := s.roundTrip(ctx, x)
	if err != nil {
		return err
	}
	if !s.noSyncToken {
		s.tokens.store(x.resp.syncToken, mark, x.traits&traitRead != 0)
	}
	return x.decode()
}

// prepare writes the request anew for each attempt, because the sync token may
// have changed. It returns the token's mark.
func (s *sender) prepare(x *call) (mark *string) {
	h := append(x.headers[:0], Header{"Content-Type", "application/json"},
		Header{"Authorization", (*s.auth).v.bearer})
	if !s.noSyncToken {
		var token string
		token, mark = s.tokens.load()
		h = append(h, Header{"Upstash-Sync-Token", token})
	}
	switch {
	case x.resp2:
		h = append(h, Header{"Upstash-Response-Format", "resp2"})
	case x.base64:
		h = append(h, Header{"Upstash-Encoding", "base64"})
	}
	url := s.root
	switch {
	case x.raw != "":
		url = s.endpoint.base + x.raw
		h[0].Value = "application/octet-stream"
	case x.path != "/":
		url = s.endpoint.base + x.path
	}
	x.req = Request{URL: url, Header: h, Body: x.body, MaxResponse: s.maxResponse}
	return mark
}

// roundTrip gives the request to the transport, for no longer than the timeout.
func (s *sender) roundTrip(ctx context.Context, x *call) error {
	tryCtx := ctx
	if s.timeout > 0 {
		var cancel context.CancelFunc
		tryCtx, cancel = withTimeout(ctx, max(s.timeout, x.timeout))
		defer cancel()
	}
	if err := s.transport.RoundTrip(tryCtx, &x.req, &x.resp); err != nil {
		return networkError(ctx, tryCtx, max(s.timeout, x.timeout), quiet(err, x.token, x.raw))
	}
	return nil
}

// networkError returns err, with the limit that ended the attempt if one did.
func networkError(ctx, tryCtx context.Context, limit time.Duration, err error) error {
	sent := !isNotSent(err)
	if ctx.Err() != nil {
		err = contextError(ctx, err)
	} else if cause := context.Cause(tryCtx); errors.Is(cause, context.DeadlineExceeded) {
		if !errors.Is(err, context.DeadlineExceeded) { // else it may say what was waited for
			err = context.DeadlineExceeded
		}
		err = fmt.Errorf("no answer within %v (WithTimeout): %w", limit, err)
	} else if cause != nil {
		err = cause // the host has no timer for it
	}
	if !sent {
		return NotSent(err)
	}
	return err
}

// interrupted returns the error of a call that ended in the pause after err.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err // its deadline would have come during the pause
	}
	both := &interruptedError{contextError(ctx, nil), err}
	if isNotSent(err) {
		return NotSent(both)
	}
	return both
}

// interruptedError is the error of a context that ended in the pause after an
// attempt.
type interruptedError struct{ ended, last error }

func (e *interruptedError) Error() string   { return e.ended.Error() + ", after: " + wordsOf(e.last) }
func (e *interruptedError) Unwrap() []error { return []error{e.ended, e.last} }

// contextError returns the context's own cause if the context has ended, so
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
