package upstash

import (
	"context"
	"fmt"
	"time"
)

// exchange is one call: a request, sent once or several times, and what came
// of it.
type exchange struct {
	name     string // for errors and events
	commands int
	path     string
	body     []byte
	traits   traits
	resp2    bool
	base64   bool

	// What the transport gets. It lives here so that a call is one allocation.
	req     Request
	resp    Response
	headers [4]Header

	reply         Reply      // for path "/"
	envelopes     []envelope // for /pipeline and /multi-exec
	maybeRepeated bool
}

// exchange runs attempts until one brings an answer, or none may follow.
func (c *Client) exchange(ctx context.Context, x *exchange) error {
	for attempt := 1; ; attempt++ {
		err := c.attempt(ctx, x, attempt)
		if err == nil {
			return nil
		}
		if outcomeOf(err) == outcomeUnknown {
			x.maybeRepeated = true
		}
		again := attempt <= c.retries && ctx.Err() == nil &&
			retryable(err, x.traits&traitRepeatable != 0)
		if !again {
			return c.final(x, err, attempt)
		}
		if !sleep(ctx, c.pause(attempt, err)) {
			return c.final(x, interrupted(ctx, err), attempt)
		}
	}
}

// final makes the error that the caller sees. Whether the command may have run
// is judged over all attempts, not over the last alone.
func (c *Client) final(x *exchange, err error, attempts int) error {
	c.learn(err)
	if server, ok := err.(*Error); ok && (!x.maybeRepeated || server.outcome() == outcomeUnknown) {
		server.attempts = attempts
		return server
	}
	out := outcomeOf(err)
	if x.maybeRepeated {
		out = outcomeUnknown
	}
	return &CallError{Command: x.name, Attempts: attempts, StatusCode: x.resp.StatusCode, Err: err, outcome: out}
}

// interrupted is err where the context ended in the pause after it.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err // it has a deadline that the pause would have passed
	}
	both := &interruptedError{contextError(ctx, nil), err}
	if isNotSent(err) {
		return NotSent(both)
	}
	return both
}

// interruptedError is a context that ended in the pause after an attempt.
type interruptedError struct{ ended, last error }

func (e *interruptedError) Error() string   { return e.ended.Error() + ", after: " + wordsOf(e.last) }
func (e *interruptedError) Unwrap() []error { return []error{e.ended, e.last} }

// attempt sends the request once and decodes the answer.
func (c *Client) attempt(ctx context.Context, x *exchange, n int) error {
	x.resp = Response{}
	if err := ctx.Err(); err != nil {
		return NotSent(contextError(ctx, nil))
	}
	var start time.Time
	if c.observer != nil {
		start = time.Now()
	}
	mark := c.prepare(x)
	err := c.send(ctx, x)
	if err == nil {
		if !c.noSyncToken {
			c.tokens.store(x.resp.syncToken, mark, x.traits&traitRead != 0)
		}
		err = c.decode(x, &x.resp)
	}
	if c.observer != nil {
		c.observer(ctx, Event{
			Command: x.name, Commands: x.commands, Attempt: n, StatusCode: x.resp.StatusCode,
			Duration: time.Since(start), BytesOut: len(x.body), BytesIn: len(x.resp.Body), Err: err,
		})
	}
	return err
}

// send gives the request to the transport, for no longer than the timeout.
func (c *Client) send(ctx context.Context, x *exchange) error {
	tryCtx := ctx
	if c.timeout > 0 {
		var cancel context.CancelFunc
		tryCtx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	if err := c.transport.RoundTrip(tryCtx, &x.req, &x.resp); err != nil {
		return c.networkError(ctx, tryCtx, quiet(err, c.token, x.body))
	}
	return nil
}

// prepare writes the request anew for each attempt: the sync token may have
// changed. It returns the token's mark.
func (c *Client) prepare(x *exchange) (mark *string) {
	h := append(x.headers[:0], Header{"Content-Type", "application/json"}, Header{"Authorization", c.bearer})
	if !c.noSyncToken {
		var token string
		token, mark = c.tokens.load()
		h = append(h, Header{"Upstash-Sync-Token", token})
	}
	switch {
	case x.resp2:
		h = append(h, Header{"Upstash-Response-Format", "resp2"})
	case x.base64:
		h = append(h, Header{"Upstash-Encoding", "base64"})
	}
	url := c.root
	if x.path != "/" {
		url = c.endpoint.base + x.path
	}
	x.req = Request{URL: url, Header: h, Body: x.body, MaxResponse: c.maxResponse}
	return mark
}

// networkError says which limit ended the attempt, where one did.
func (c *Client) networkError(ctx, tryCtx context.Context, err error) error {
	sent := !isNotSent(err)
	if ctx.Err() != nil {
		err = contextError(ctx, err)
	} else if tryCtx.Err() != nil {
		err = fmt.Errorf("no answer within %v (WithTimeout): %w", c.timeout, context.DeadlineExceeded)
	}
	if !sent {
		return NotSent(err)
	}
	return err
}
