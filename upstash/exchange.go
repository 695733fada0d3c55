package upstash

import (
	"context"
	"errors"
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

	reply         Reply      // for path "/"
	envelopes     []envelope // for /pipeline and /multi-exec
	maybeRepeated bool
}

// exchange runs attempts until one brings an answer, or none may follow.
func (c *Client) exchange(ctx context.Context, x *exchange) error {
	for attempt := 1; ; attempt++ {
		status, err := c.attempt(ctx, x, attempt)
		if err == nil {
			return nil
		}
		if outcomeOf(err) == outcomeUnknown {
			x.maybeRepeated = true
		}
		again := attempt <= c.retries && ctx.Err() == nil &&
			retryable(err, x.traits&traitRepeatable != 0)
		if !again || !sleep(ctx, c.pause(attempt, err)) {
			return c.final(x, err, status, attempt)
		}
	}
}

// final makes the error that the caller sees. Whether the command may have run
// is judged over all attempts, not over the last alone.
func (c *Client) final(x *exchange, err error, status, attempts int) error {
	c.learn(err)
	var server *Error
	if errors.As(err, &server) && (!x.maybeRepeated || server.outcome() == outcomeUnknown) {
		return server
	}
	out := outcomeOf(err)
	if x.maybeRepeated {
		out = outcomeUnknown
	}
	return &CallError{Command: x.name, Attempts: attempts, StatusCode: status, Err: err, outcome: out}
}

// attempt sends the request once and decodes the answer.
func (c *Client) attempt(ctx context.Context, x *exchange, n int) (status int, err error) {
	var start time.Time
	if c.observer != nil {
		start = time.Now()
	}
	if err := context.Cause(ctx); err != nil {
		return 0, NotSent(contextError(ctx, err))
	}
	tryCtx := ctx
	if c.timeout > 0 {
		var cancel context.CancelFunc
		tryCtx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	token, mark := "", (*string)(nil)
	if !c.noSyncToken {
		token, mark = c.tokens.load()
	}
	var resp Response
	req := c.request(x, token)
	err = c.transport.RoundTrip(tryCtx, &req, &resp)
	if err == nil {
		if !c.noSyncToken {
			c.tokens.store(resp.syncToken, mark, x.traits&traitRead != 0)
		}
		err = c.decode(x, &resp)
	} else {
		err = c.networkError(ctx, tryCtx, err)
	}
	if c.observer != nil {
		c.observer(ctx, Event{
			Command: x.name, Commands: x.commands, Attempt: n, StatusCode: resp.StatusCode,
			Duration: time.Since(start), BytesOut: len(x.body), BytesIn: len(resp.Body), Err: err,
		})
	}
	return resp.StatusCode, err
}

func (c *Client) request(x *exchange, syncToken string) Request {
	h := make([]Header, 0, 4)
	h = append(h, Header{"Content-Type", "application/json"}, Header{"Authorization", c.bearer})
	if !c.noSyncToken {
		h = append(h, Header{"Upstash-Sync-Token", syncToken})
	}
	switch {
	case x.resp2:
		h = append(h, Header{"Upstash-Response-Format", "resp2"})
	case x.base64:
		h = append(h, Header{"Upstash-Encoding", "base64"})
	}
	return Request{URL: c.endpoint.base + x.path, Header: h, Body: x.body, MaxResponse: c.maxResponse}
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

// decode turns a whole response into the exchange's answer or an error.
func (c *Client) decode(x *exchange, resp *Response) error {
	if len(resp.Body) > c.maxResponse {
		return ErrResponseTooLarge
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return c.serverError(x, resp, "redirects are not followed: use the database's own REST URL")
	}
	var errMsg *string
	var err error
	if x.path == "/" {
		errMsg, err = x.decodeOne(resp.Body)
	} else {
		x.envelopes, errMsg, err = decodeEnvelopes(resp.Body)
		if err == nil && errMsg == nil && len(x.envelopes) != x.commands {
			err = fmt.Errorf("%w: %d answers to %d commands", ErrBadResponse, len(x.envelopes), x.commands)
		}
	}
	switch {
	case errMsg != nil:
		return c.serverError(x, resp, *errMsg)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return c.serverError(x, resp, fmt.Sprintf("a body of %d bytes that says no more", len(resp.Body)))
	}
	return err
}

// decodeOne reads the answer to a single command, whichever form it came in:
// a server that ignores the request for RESP2 answers JSON.
func (x *exchange) decodeOne(body []byte) (errMsg *string, err error) {
	if x.resp2 && len(body) > 0 && body[0] != '{' {
		x.reply, err = decodeRESP2(body, x.name)
		var server *Error
		if errors.As(x.reply.err, &server) {
			return &server.Message, nil
		}
		return nil, err
	}
	env, err := decodeEnvelope(body)
	if err != nil || env.errMsg != nil {
		return env.errMsg, err
	}
	x.reply = Reply{name: x.name, value: value{json: env.result}}
	return nil, nil
}

func (c *Client) serverError(x *exchange, resp *Response, message string) *Error {
	return &Error{
		StatusCode: resp.StatusCode, Message: redact(message, c.token, x.body), Command: x.name,
		RetryAfter: parseRetryAfter(resp.retryAfter), script: x.traits&traitScript != 0,
	}
}
