//go:build !wasm

package upstash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/upstash/internal/conn"
)

// fasthttpTransport is the native default: package fasthttp writes requests and
// parses answers, over a pool of our own. It sends each request once. Every call
// runs on its caller's goroutine, except that a second one reads the answer to a
// large request. A call touches its buffers only until it returns.
type fasthttpTransport struct {
	dialer *conn.Dialer
	pool   *conn.Pool
}

func newDefaultTransport(e endpoint, maxConns int) Transport {
	d := conn.NewDialer(e.host, e.port, e.tls)
	return &fasthttpTransport{d, conn.NewPool(maxConns, d.Dial)}
}

// Close closes the idle connections. Calls under way end undisturbed.
func (t *fasthttpTransport) Close() error {
	t.pool.Close()
	return nil
}

// RoundTrip sends req over an idle connection, after a check that it is alive,
// or a new one.
func (t *fasthttpTransport) RoundTrip(ctx context.Context, req *Request, resp *Response) error {
	return t.roundTripWithin(ctx, time.Now(), 0, req, resp)
}

// roundTripWithin is RoundTrip with a limit from now on, 0 for none. The
// connection itself watches the limit: a context for it would cost four
// allocations and a timer. It needs one only to wait for a connection.
func (t *fasthttpTransport) roundTripWithin(ctx context.Context, now time.Time, limit time.Duration,
	req *Request, resp *Response,
) error {
	var deadline time.Time
	if limit > 0 {
		deadline = now.Add(limit)
	}
	c, err := t.connection(ctx, now, deadline)
	if err != nil {
		return NotSent(err)
	}
	defer t.pool.Put(c)
	keepAlive, err := roundTrip(ctx, c, req, resp)
	c.KeepAlive = c.Unwatch() && keepAlive && err == nil
	if err != nil && c.Vanished(ctx, err) {
		t.pool.CloseUpTo(c) // the next attempt need not meet them one by one
	}
	return err
}

// connection returns a connection whose reads and writes end at the deadline.
func (t *fasthttpTransport) connection(ctx context.Context, now, deadline time.Time) (*conn.Conn, error) {
	if c := t.pool.Idle(now, deadline); c != nil {
		return c, nil
	}
	if !deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	c, err := t.pool.Get(ctx)
	if err == nil {
		c.Limit(deadline)
	}
	return c, err
}

// exchange is the memory of one request and its answer.
type exchange struct {
	req  fasthttp.Request
	resp fasthttp.Response
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// smallBody is the length of a body, in bytes, that fits into the buffers of an
// idle socket: writing it never waits for the peer.
const smallBody = 8 << 10

// roundTrip writes the request and reads the response, until ctx ends. The
// caller calls c.Unwatch.
func roundTrip(ctx context.Context, c *conn.Conn, req *Request, resp *Response) (keepAlive bool, err error) {
	x := exchanges.Get().(*exchange)
	defer x.release()
	x.set(req)
	small := len(req.Body) <= smallBody
	c.Begin(ctx, small)
	if !small {
		return x.roundTripLarge(c, req, resp)
	}
	if err = x.req.Write(c.W); err == nil {
		err = c.W.Flush()
	}
	keepAlive, readErr := x.read(c, req.MaxResponse, resp)
	if err == nil {
		err = c.WriteError()
	}
	if err != nil {
		return false, cutShort(err, readErr, resp)
	}
	return keepAlive, readErr
}

// release keeps the memory for another exchange, without the body and the token.
func (x *exchange) release() {
	x.req.Reset()
	x.resp.Reset()
	exchanges.Put(x)
}

// userAgent is sent because some firewalls refuse clients without a name.
const userAgent = "upbloom"

// set makes the request. No text in it can have a line break: the URL, the token,
// the path of a RawCmd and the sync token were checked when they came in. With
// both host and path set, fasthttp parses no URL and sends the path as it is.
func (x *exchange) set(req *Request) {
	host, path := hostAndPath(req.URL)
	h := &x.req.Header
	h.DisableNormalizing()
	h.SetMethod(fasthttp.MethodPost)
	h.SetHost(host)
	h.SetRequestURI(path)
	h.SetUserAgent(userAgent)
	for _, field := range req.Header {
		h.Set(field.Name, field.Value)
	}
	x.req.SetBodyRaw(req.Body)
}

// roundTripLarge reads while it writes. A server or a proxy may refuse a
// request before it has taken the whole, for its size or another reason, and
// then read no more of it. A success so early is the answer to another request.
func (x *exchange) roundTripLarge(c *conn.Conn, req *Request, resp *Response) (keepAlive bool, err error) {
	type answer struct {
		keepAlive bool
		err       error
	}
	var lastByte, written atomic.Bool
	answered := make(chan answer, 1)
	go func() {
		keep, err := x.read(c, req.MaxResponse, resp)
		if err == nil && !isRefusal(resp) && !lastByte.Load() {
			*resp, keep, err = Response{}, false, errEarly
		}
		if !written.Load() && (err != nil || isRefusal(resp)) {
			c.InterruptWrites()
			keep = false
		}
		answered <- answer{keep, err}
	}()
	err = x.writeLarge(c, req.Body, &lastByte)
	written.Store(true)
	a := <-answered
	if err == nil {
		return a.keepAlive, a.err
	}
	return false, cutShort(err, a.err, resp)
}

// errEarly is the error of an attempt that met the answer to another request.
var errEarly = errors.New("an answer came before the request was whole")

// isRefusal reports whether resp can answer a request of which the server has
// only a part.
func isRefusal(resp *Response) bool { return resp.StatusCode >= 300 }

// cutShort returns the error of a request that TCP did not take whole. The
// server got less than its Content-Length promised, so it cannot have run it.
// The error is nil if the server answered with a refusal.
func cutShort(writeErr, readErr error, resp *Response) error {
	switch {
	case readErr == nil && isRefusal(resp):
		return nil
	case readErr == nil:
	case errors.Is(writeErr, os.ErrDeadlineExceeded), conn.Permanent(readErr):
		// The reader ended the writing, or knows why the server did.
		writeErr = readErr
	}
	*resp = Response{}
	return NotSent(writeErr)
}

// writeLarge writes a request whose body has at least one byte. It sets lastByte
// before it sends the last byte.
func (x *exchange) writeLarge(c *conn.Conn, body []byte, lastByte *atomic.Bool) error {
	x.req.Header.SetContentLength(len(body))
	if err := x.req.Header.Write(c.W); err != nil {
		return err
	}
	last := len(body) - 1
	if _, err := c.W.Write(body[:last]); err != nil {
		return err
	}
	if err := c.W.Flush(); err != nil {
		return err
	}
	lastByte.Store(true)
	if err := c.W.WriteByte(body[last]); err != nil {
		return err
	}
	return c.W.Flush()
}

func hostAndPath(url string) (host, path string) {
	_, rest, _ := strings.Cut(url, "://")
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return rest[:i], rest[i:]
	}
	return rest, "/"
}

// maxInterim is how many answers of status 1xx may come before the one that
// counts.
const maxInterim = 5

var errInterim = errors.New("answers of status 1xx came in place of the one that counts")

// read reads the response. After an error, resp has the status if it came, and
// no body.
func (x *exchange) read(c *conn.Conn, limit int, resp *Response) (keepAlive bool, err error) {
	if err := x.readHead(c); err != nil {
		if err == errHungUp && c.R.Buffered() == 0 {
			err = errNoAnswer
		}
		return false, err
	}
	h := &x.resp.Header
	resp.StatusCode = h.StatusCode()
	if token := h.Peek(headerSyncToken); string(token) == resp.sentToken {
		resp.syncToken = resp.sentToken // the same again: it needs no memory
	} else if token != nil {
		resp.syncToken = string(token)
	}
	resp.retryAfter = string(h.Peek(headerRetryAfter))
	body, err := x.appendBody(c, resp.Body, limit)
	if err != nil {
		return false, err
	}
	resp.Body = body
	return !h.ConnectionClose(), nil
}

// readHead reads the header of the answer that counts.
func (x *exchange) readHead(c *conn.Conn) error {
	x.resp.StreamBody = true // else fasthttp would read the body, without our limits
	for range maxInterim + 1 {
		class, err := conn.AwaitHead(c.R)
		switch {
		case err == conn.ErrLongHead:
			return err
		case err == nil && class == '1':
			err = x.resp.Header.Read(c.R)
		case err == nil:
			err = x.resp.ReadLimitBody(c.R, 0)
		}
		if err != nil {
			return answerError(c, err, conn.BadHead)
		}
		if class != '1' {
			return nil
		}
		if x.resp.StatusCode() == fasthttp.StatusSwitchingProtocols {
			break
		}
	}
	return errInterim
}

// maxBeside is how many bytes may come beside one read of a body's data: what the
// buffer has room for, and as much for the extension of a chunk.
const maxBeside = 2 * conn.ReadBuffer

// atOnce is the room, in bytes, for a body before it has come.
const atOnce = 64 << 10

// appendBody appends the body to dst, up to the limit. Memory follows the bytes
// as they come, not their announcement.
func (x *exchange) appendBody(c *conn.Conn, dst []byte, limit int) ([]byte, error) {
	body := x.resp.BodyStream()
	if body == nil { // as of a 204
		return dst, nil
	}
	n := x.resp.Header.ContentLength()
	if n > limit {
		return nil, ErrResponseTooLarge
	}
	start := len(dst)
	for dst = slices.Grow(dst, min(max(n, 0), atOnce)); ; {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, max(len(dst), 512))
		}
		c.Expect(cap(dst) - len(dst) + maxBeside)
		got, err := body.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+got]
		switch {
		case len(dst)-start > limit:
			return nil, ErrResponseTooLarge
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return nil, answerError(c, err, conn.BadChunks)
		}
	}
}

var errHungUp = fmt.Errorf("the connection was closed before the whole answer came: %w",
	io.ErrUnexpectedEOF)

// answerError returns why the connection broke, or else what is odd in a part of
// the answer. It has nothing of fasthttp's own errors, because they quote it.
func answerError(c *conn.Conn, err error, part conn.NotHTTP) error {
	var refused conn.NotHTTP // by AwaitHead, or by Expect
	var long *fasthttp.ErrSmallBuffer
	cause := c.ReadError()
	switch {
	case errors.As(err, &refused), errors.As(cause, &refused):
		return refused
	case errors.Is(cause, io.EOF):
		return errHungUp
	case cause == nil && errors.As(err, &long):
		return conn.ErrLongHead
	case cause == nil && errors.Is(err, fasthttp.ErrDuplicateContentLength):
		return conn.TwoLengths
	case cause == nil:
		return part
	}
	return fmt.Errorf("the connection broke before the whole answer came: %w", cause)
}

// withTimeout is context.WithTimeout, except on js.
func withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, door.ErrLimit)
}
