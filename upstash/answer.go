package upstash

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

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
		errMsg, err = c.decodeOne(x, resp.Body)
	} else {
		x.envelopes, errMsg, err = decodeEnvelopes(resp.Body)
		if err == nil && errMsg == nil && len(x.envelopes) != x.commands {
			err = fmt.Errorf("%w: %d answers to %d commands", ErrBadResponse, len(x.envelopes), x.commands)
		}
	}
	switch {
	case errMsg != nil:
		return c.serverError(x, resp, cmp.Or(*errMsg, unexplained(len(resp.Body))))
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return c.serverError(x, resp, unexplained(len(resp.Body)))
	}
	return err
}

// decodeOne reads the answer to a single command, whichever form it came in:
// a server that ignores the request for RESP2 answers JSON.
func (c *Client) decodeOne(x *exchange, body []byte) (errMsg *string, err error) {
	if x.resp2 && len(body) > 0 && body[0] != '{' {
		x.reply, err = decodeRESP2(body, x.name)
		c.redactNested(x, x.reply.value.array)
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

// redactNested treats the errors within a RESP2 array as serverError does one
// by itself.
func (c *Client) redactNested(x *exchange, list []Reply) {
	for _, r := range list {
		if e, ok := r.err.(*Error); ok {
			e.Message, e.script = redact(e.Message, c.token, x.body), x.traits&traitScript != 0
		}
		c.redactNested(x, r.value.array)
	}
}

func (c *Client) serverError(x *exchange, resp *Response, message string) *Error {
	return &Error{
		StatusCode: resp.StatusCode, Message: redact(message, c.token, x.body), Command: x.name,
		RetryAfter: parseRetryAfter(resp.retryAfter, time.Now()), script: x.traits&traitScript != 0,
	}
}

// unexplained stands for the message that the REST API would have sent.
func unexplained(bytes int) string {
	return fmt.Sprintf("no message from the REST API (%d bytes of something else):"+
		" a proxy may have answered; check the URL, or try again later", bytes)
}
