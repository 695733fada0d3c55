package upstash

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/internal/synced"
)

// sender sends calls to one database.
type sender struct {
	settings

	endpoint     endpoint
	root         string // the URL of a single command
	auth         **hidden[auth]
	transport    Transport
	timed        timedTransport // the transport, if it is one
	tokens       syncTokens
	budget       budget
	scripts      scriptSupport
	everAnswered atomic.Bool // by HTTP, whatever it said
}

// auth is the token, alone and in the form of the header field.
type auth struct{ token, bearer string }

// observed reports whether an observer would see a label.
func (s *settings) observed() bool { return s.observer != nil || s.callObserver != nil }

// run sends the call until an attempt brings an answer, or no other may follow.
// It reports the call, as a whole, to the call observer.
func (s *sender) run(ctx context.Context, x *call) error {
	x.token = (*s.auth).v.token
	ctx, x.operation = synced.Take(ctx)
	if s.callObserver == nil {
		return s.untilAnswered(ctx, x)
	}
	e := Event{Label: LabelOf(ctx), Command: x.name, Commands: x.commands, Start: time.Now()}
	x.total = &e
	e.Err = s.untilAnswered(ctx, x)
	e.Duration = time.Since(e.Start)
	s.callObserver(ctx, e)
	return e.Err
}

// untilAnswered makes attempts, with pauses between them. ending.retryable says
// whether another may follow.
func (s *sender) untilAnswered(ctx context.Context, x *call) error {
	for retries := 0; ; retries++ {
		e := s.attemptInForm(ctx, x)
		if e.err == nil {
			s.budget.giveBack()
			return nil
		}
		if retries >= s.retries || ctx.Err() != nil || !e.retryable(x.traits) || !s.budget.spend() {
			return x.failure(&e, e.err)
		}
		if !sleep(ctx, s.pause(x.attempts, e.server)) {
			return x.failure(&e, interrupted(ctx, e.err))
		}
		x.earlierMayHaveRun = x.earlierMayHaveRun || e.outcome == outcomeUnknown
	}
}

// attemptInForm is attempt. If the server refuses the form of a script, it sends
// the next form at once.
func (s *sender) attemptInForm(ctx context.Context, x *call) ending {
	for {
		e := s.attempt(ctx, x)
		if !e.again {
			return e
		}
		x.form = e.form
		x.earlierMayHaveRun = x.earlierMayHaveRun || e.outcome == outcomeUnknown
	}
}

// attempt sends the request once, decodes the answer, and reports the attempt
// to the observers.
func (s *sender) attempt(ctx context.Context, x *call) ending {
	x.resp, x.body = Response{}, x.bodyIn(x.form, x.before+x.attempts)
	if x.kept != nil {
		x.resp.Body = x.kept.room[:0]
	}
	if ctx.Err() != nil {
		return ending{err: contextError(ctx, nil), outcome: outcomeNotSent}
	}
	if len(x.body) > s.maxRequest {
		return ending{err: s.tooLong(len(x.body)), outcome: outcomeNotSent, final: true}
	}
	x.attempts++
	x.sent = time.Now()
	end := s.sendAndDecode(ctx, x)
	if x.script != nil {
		s.scripts.learn(x.script, x.form, x.traits, &end)
		if end.again {
			end.server.outcome = judge(x.traits, x.earlierMayHaveRun, end.outcome)
		}
	}
	if s.observed() {
		s.report(ctx, x, &end)
	}
	return end
}

func (s *sender) report(ctx context.Context, x *call, end *ending) {
	e := Event{
		Label: LabelOf(ctx), Command: x.name, Commands: x.commands, Attempt: x.attempts,
		StatusCode: x.resp.StatusCode, Start: x.sent, Duration: time.Since(x.sent),
		BytesOut: len(x.body), BytesIn: len(x.resp.Body),
	}
	if end.err != nil {
		e.Err = x.failure(end, end.err)
	}
	e.count(x, end)
	if x.total != nil {
		x.total.add(e)
	}
	if s.observer != nil {
		s.observer(ctx, e)
	}
}

// tooLong is the error of a request that is longer than the limit.
func (s *settings) tooLong(bytes int) error {
	return fmt.Errorf("%w, or raise WithMaxRequest if it allows more (the request has %d bytes, the limit is %d)",
		ErrRequestTooLarge, bytes, s.maxRequest)
}

// sendAndDecode sends the request and decodes the answer.
func (s *sender) sendAndDecode(ctx context.Context, x *call) ending {
	sent, mark := s.prepare(x)
	if e := s.roundTrip(ctx, x); e.err != nil {
		if !s.everAnswered.Load() {
			e.askAboutRedis()
		}
		return e
	}
	if !s.everAnswered.Load() { // most often a load is all
		s.everAnswered.Store(true)
	}
	if !s.noSyncToken {
		if !x.operation.Looks() {
			s.tokens.store(x.resp.syncToken, sent, mark, x.traits&traitRead != 0)
		}
		if isSyncToken(x.resp.syncToken) {
			x.operation.Answered(x.resp.syncToken)
		}
	}
	if err := x.decode(); err != nil {
		e := answerEnding(x.traits, err)
		e.askAbout(s.endpoint, noMessage(len(x.resp.Body)))
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
	if x.resp2 {
		h = append(h, Header{"Upstash-Response-Format", "resp2"})
	} else if x.base64 {
		h = append(h, Header{"Upstash-Encoding", "base64"})
	}
	url := s.root
	if x.raw != "" {
		url = s.endpoint.base + x.raw
		h[0].Value = "application/octet-stream"
	} else if x.path != "/" {
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
	var err error
	var tryCtx context.Context // with the limit; nil if the transport itself watches it
	if s.timed != nil {
		err = s.timed.roundTripWithin(ctx, x.sent, limit, &x.req, &x.resp)
	} else {
		tryCtx = ctx
		if limit > 0 {
			var cancel context.CancelFunc
			tryCtx, cancel = withTimeout(ctx, limit)
			defer cancel()
		}
		err = s.transport.RoundTrip(tryCtx, &x.req, &x.resp)
	}
	if err == nil {
		return ending{}
	}
	return x.networkEnding(ctx, tryCtx, limit, err)
}

// A timedTransport itself watches the limit of an attempt.
type timedTransport interface {
	roundTripWithin(ctx context.Context, now time.Time, limit time.Duration, req *Request, resp *Response) error
}
