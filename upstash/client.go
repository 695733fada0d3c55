package upstash

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
)

// Client sends commands to one database over its REST API. Make one with [New]
// or [FromEnv] and share it: it is safe for concurrent use and keeps
// connections alive. The zero value is not usable, and a Client must not be
// copied. Printing it shows the URL and never the token.
type Client struct {
	sender

	owned  bool // New made the transport, and Close closes it
	closed atomic.Bool

	serverClock serverClock
}

// New makes a client for the database at url, e.g.
// "https://eu1-name-12345.upstash.io", with its REST token. It checks both and
// does no I/O. Its error says what is wrong and wraps [ErrArgument]. http:// is
// accepted for localhost and loopback addresses only, unless [WithInsecureHTTP]
// allows more. If a proxy before the database wants a path, the URL may have
// one, e.g. "https://proxy.example.com/redis"; at a host of upstash.io it is an
// error. Such a proxy must not repeat a POST by itself: the command would run
// twice, and the client cannot see it.
func New(url, token string, opts ...Option) (*Client, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	e, err := parseEndpoint(url, s.allowHTTP)
	if err != nil {
		return nil, err
	}
	if err := checkToken(token); err != nil {
		return nil, err
	}
	c := &Client{sender: sender{
		settings: s, endpoint: e, root: e.base + "/", auth: hide(auth{token, "Bearer " + token}),
		transport: s.transport,
	}, serverClock: serverClock{turn: make(chan struct{}, 1)}}
	c.budget.limit(s.retryBudget)
	if c.transport == nil {
		c.transport, c.owned = newDefaultTransport(e, s.maxConns), true
	}
	c.within, _ = c.transport.(limiter)
	return c, nil
}

// FromEnv makes a client from UPSTASH_REDIS_REST_URL and
// UPSTASH_REDIS_REST_TOKEN, or, if both are empty, from KV_REST_API_URL and
// KV_REST_API_TOKEN. If one of a pair is empty, the error is [ErrArgument]. It
// reads no other variable: a read-only token goes into one of these, or to [New].
func FromEnv(opts ...Option) (*Client, error) {
	url, token := os.Getenv("UPSTASH_REDIS_REST_URL"), os.Getenv("UPSTASH_REDIS_REST_TOKEN")
	names := [2]string{"UPSTASH_REDIS_REST_URL", "UPSTASH_REDIS_REST_TOKEN"}
	if url == "" && token == "" {
		url, token = os.Getenv("KV_REST_API_URL"), os.Getenv("KV_REST_API_TOKEN")
		if url != "" || token != "" {
			names = [2]string{"KV_REST_API_URL", "KV_REST_API_TOKEN"}
		}
	}
	if url != "" && token != "" {
		return New(url, token, opts...)
	}
	why := fmt.Sprintf("set %s and %s", names[0], names[1])
	switch {
	case token != "":
		why = fmt.Sprintf("%s is empty, and %s is set: set both", names[0], names[1])
	case url != "":
		why = fmt.Sprintf("%s is empty, and %s is set: set both", names[1], names[0])
	}
	return nil, fmt.Errorf("%w: %s (the console shows both under REST API)", ErrArgument, why)
}

// Do sends one command in one request. It returns a [*Error] if the server
// answered with an error, a [*CallError] if there is no answer, and
// [ErrArgument] or [ErrClosed] if nothing could be sent.
func (c *Client) Do(ctx context.Context, cmd Command) (Reply, error) {
	if err := c.check(cmd); err != nil {
		return Reply{}, err
	}
	x := calls.Get().(*call) // zero, and filled in place: it is large
	x.name, x.commands, x.traits, x.path = cmd.name, 1, cmd.traits, "/"
	x.body, x.words = cmd.body(), cmd.body()
	x.resp2, x.timeout, x.kept = cmd.binary, cmd.timeout, new(kept)
	if cmd.script != nil {
		x.script, x.short = cmd.script, x.body
		x.inForm(c.scripts.form(cmd))
	}
	if cmd.raw != nil {
		x.raw, x.body = (*cmd.raw).v.path, (*cmd.raw).v.body
	}
	k, err := x.kept, c.run(ctx, x)
	if c.within != nil { // this transport touches nothing of a call that has ended
		*x = call{}
		calls.Put(x)
	}
	if err != nil {
		return Reply{}, err
	}
	return newReply(&k.hidden), nil
}

// ReadOnly reports whether the client was made with [WithReadOnly].
func (c *Client) ReadOnly() bool { return c.readOnly }

// Observed reports whether the client has an observer of attempts or calls.
// Without one, a caller need not make a label.
func (c *Client) Observed() bool { return c.observer != nil || c.callObserver != nil }

// Close closes idle connections. Later calls return [ErrClosed]; calls in
// progress end as they would have. Close leaves the transport of
// [WithTransport] alone. A second Close does nothing.
func (c *Client) Close() error {
	if c.closed.Swap(true) || !c.owned {
		return nil
	}
	if t, ok := c.transport.(interface{ Close() error }); ok {
		return t.Close()
	}
	return nil
}

// check returns the errors known before anything is sent.
func (c *Client) check(cmd Command) error {
	switch {
	case cmd.err != nil:
		return cmd.err
	case cmd.json == nil:
		return argumentError("Command", "the zero value cannot be sent: make one with Cmd")
	case c.readOnly && cmd.traits&traitRead == 0:
		return &CallError{Command: cmd.name, Err: ErrReadOnly, outcome: outcomeNotSent}
	case c.closed.Load():
		return ErrClosed
	}
	return nil
}

// String returns the URL.
func (c *Client) String() string { return "upstash.Client(" + c.endpoint.base + ")" }

// Format writes the URL for every verb: %+v and %#v show no token.
func (c *Client) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, c.String()) }

// MarshalText returns the URL, for log/slog and JSON.
func (c *Client) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
