package upstash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/internal/synced"
)

// sender sends calls to one database.
type sender struct {
	settings

	endpoint  endpoint
	root      string // the URL of a single command
	auth      **hidden[auth]
	transport Transport
	within    limiter // the transport, if it is one
	tokens    syncTokens
	budget    budget
	scripts   scriptSupport
	answered  atomic.Bool // an answer of HTTP has come
}

// auth is the token, alone and in the form of the header field.
type auth struct{ token, bearer string }

// run sends the call and reports it, as a whole, to the call observer.
func (s *sender) run(ctx context.Context, x *call) error {
	x.token = (*s.auth).v.token
	ctx, x.operation = synced.Take(ctx)
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
		e := s.attempt(ctx, x)
		if e.err == nil {
			s.budget.giveBack()
			return nil
		}
		if x.other { // nothing ran
			x.forms++
			x.inForm(x.form)
			continue
		}
		if x.attempts-x.forms > s.retries || ctx.Err() != nil || !e.mayFollow(x.traits) {
			return x.failure(&e, e.err)
		}
		if !s.budget.take() {
			return x.failure(&e, e.err)
		}
		if !sleep(ctx, s.pause(x.attempts, e.server)) {
			return x.failure(&e, interrupted(ctx, e.err))
		}
		if e.outcome == outcomeUnknown {
			x.earlier = true
		}
	}
}

// attempt sends the request once, decodes the answer, and reports the attempt
// to the observers.
func (s *sender) attempt(ctx context.Context, x *call) ending {
	x.resp, x.other = Response{}, false
	if x.kept != nil {
		x.resp.Body = x.kept.room[:0]
	}
	if ctx.Err() != nil {
		return ending{err: contextError(ctx, nil), outcome: outcomeNotSent}
	}
	x.attempts++
	x.sent = time.Now()
	end := s.sendScript(ctx, x)
	if s.observer == nil && s.callObserver == nil {
		return end
	}
	e := Event{
		Label: LabelOf(ctx), Command: x.name, Commands: x.commands, Attempt: x.attempts,
		StatusCode: x.resp.StatusCode, Start: x.sent, Duration: time.Since(x.sent),
		BytesOut: len(x.body), BytesIn: len(x.resp.Body), Err: end.err,
	}
	if !x.other {
		e.count(x.traits, x.refusals(), &end)
	}
	if x.total != nil {
		x.total.add(e)
	}
	if s.observer != nil {
		s.observer(ctx, e)
	}
	return end
}

// sendScript is sendOnce, and learns how the server takes a script.
func (s *sender) sendScript(ctx context.Context, x *call) ending {
	end := s.sendOnce(ctx, x)
	if x.script == nil {
		return end
	}
	x.other = false
	if end.server != nil {
		x.form, x.other = s.scripts.next(x.script, x.form, end.server)
	} else if end.err == nil {
		s.scripts.ran(x.script, x.form)
	}
	return end
}

// sendOnce sends the request and decodes the answer.
func (s *sender) sendOnce(ctx context.Context, x *call) ending {
	sent, mark := s.prepare(x)
	if e := s.roundTrip(ctx, x); e.err != nil {
		if !s.answered.Load() {
			e.askAboutRedis()
		}
		return e
	}
	if !s.answered.Load() { // most often a load is all
		s.answered.Store(true)
	}
	if !s.noSyncToken {
		if !x.operation.Looks() {
			s.tokens.store(x.resp.syncToken, sent, mark, x.traits&traitRead != 0)
		}
		if x.operation != nil && isSyncToken(x.resp.syncToken) {
			x.operation.Answered(x.resp.syncToken)
		}
	}
	if err := x.decode(); err != nil {
		e := answerEnding(x.traits, err)
		e.askAbout(s.endpoint.path())
		return e
	}
	return ending{}
}

// prepare writes the request again for each attempt, because the sync token may
// have changed. It returns the token and its mark.
func (s *sender) prepare(x *call) (token string, mark uint64) {
	h := append(x.headers[:0], Header{"Content-Type", "application/json"},
		Header{"Authorization", (*s.auth).v.bearer})
	if !s.noSyncToken {
		token, mark = s.tokens.load()
		if earlier := x.operation.Token(); earlier != "" {
			token, mark = earlier, noMark
		}
		x.resp.sentToken = token
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
	return token, mark
}

// roundTrip gives the request to the transport, for no longer than the timeout.
func (s *sender) roundTrip(ctx context.Context, x *call) ending {
	limit := max(s.timeout, x.timeout)
	if s.timeout == 0 {
		limit = 0
	}
	if s.within != nil {
		err := s.within.roundTripWithin(ctx, x.sent, limit, &x.req, &x.resp)
		if err == nil {
			return ending{}
		}
		return x.networkEnding(ctx, err, func(err error) error { return limitError(limit, err) })
	}
	tryCtx := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		tryCtx, cancel = withTimeout(ctx, limit)
		defer cancel()
	}
	err := s.transport.RoundTrip(tryCtx, &x.req, &x.resp)
	if err == nil {
		return ending{}
	}
	return x.networkEnding(ctx, err, func(err error) error { return attemptError(tryCtx, limit, err) })
}

// A limiter is a transport that itself watches the limit of an attempt.
type limiter interface {
	roundTripWithin(ctx context.Context, now time.Time, limit time.Duration, req *Request, resp *Response) error
}

// networkEnding is the ending of an attempt without a whole answer. If the
// caller's context has ended, the error is the context's; else explain may say
// more.
func (x *call) networkEnding(ctx context.Context, err error, explain func(error) error) ending {
	e := transportEnding(err)
	asked := question(e.err)
	e.err = quieted(e.err, x.token, x.raw)
	if isOver(ctx) {
		e.err = contextError(ctx, e.err)
	} else {
		e.err = explain(e.err)
		e.advise(asked)
	}
	return e
}

// attemptError returns err, with what ended the attempt's own context.
func attemptError(tryCtx context.Context, limit time.Duration, err error) error {
	if !isOver(tryCtx) {
		return err
	}
	if _, cause := endOf(tryCtx); !errors.Is(cause, context.DeadlineExceeded) {
		return cause // the host has no timer for it
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		err = context.DeadlineExceeded
	}
	return limitError(limit, err)
}

// limitError returns err, with the attempt's limit if it ended the attempt.
func limitError(limit time.Duration, err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded): // it may say what was waited for
	case limit > 0 && errors.Is(err, os.ErrDeadlineExceeded):
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

// interruptedError is the error of a context that ended in the pause after an
// attempt.
type interruptedError struct{ ended, last error }

func (e *interruptedError) Error() string   { return e.ended.Error() + ", after: " + wordsOf(e.last) }
func (e *interruptedError) Unwrap() []error { return []error{e.ended, e.last} }

// maxLate is how long the end of a context may take to come after its deadline.
const maxLate = time.Second

// isOver reports whether ctx has ended. The network counts to the deadline of a
// context with a timer of its own, which may go off first: then isOver waits for
// the end of ctx, because only an ended context has a cause.
func isOver(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	if ctx.Err() != nil || !ok || time.Now().Before(deadline) {
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
