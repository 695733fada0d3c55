//go:build !wasm

package upstash

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/upstash/internal/ascii"
	"github.com/upbloom/upbloom/upstash/internal/conn"
	"github.com/upbloom/upbloom/upstash/internal/http1"
)

// http1Transport is the native default: HTTP/1.1 over the connections of a pool.
// It sends each request once, and reads as strictly as package http1 does. Every
// call runs on its caller's goroutine, except that a second one reads the answer
// to a large request. A call touches its buffers only until it returns.
type http1Transport struct {
	dialer *conn.Dialer
	pool   *conn.Pool
}

func newDefaultTransport(e endpoint, maxConns int) Transport {
	d := conn.NewDialer(e.host, e.port, e.tls)
	return &http1Transport{d, conn.NewPool(maxConns, d.Dial)}
}

// Close closes the idle connections. Calls under way end undisturbed.
func (t *http1Transport) Close() error {
	t.pool.Close()
	return nil
}

// RoundTrip sends req over an idle connection, after a check that it is alive,
// or a new one.
func (t *http1Transport) RoundTrip(ctx context.Context, req *Request, resp *Response) error {
	return t.roundTripWithin(ctx, time.Now(), 0, req, resp)
}

// roundTripWithin is RoundTrip with a limit from now on, 0 for none. The
// connection itself watches the limit: a context for it would cost four
// allocations and a timer. It needs one only to wait for a connection.
func (t *http1Transport) roundTripWithin(ctx context.Context, now time.Time, limit time.Duration,
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
	c.KeepAlive = false
	keepAlive, err := roundTrip(ctx, c, req, resp)
	c.KeepAlive = c.Unwatch() && keepAlive && err == nil
	return err
}

// connection returns a connection whose reads and writes end at the deadline.
func (t *http1Transport) connection(ctx context.Context, now, deadline time.Time) (*conn.Conn, error) {
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

// smallBody is the length of a body, in bytes, that fits into the buffers of an
// idle socket: writing it never waits for the peer.
const smallBody = 8 << 10

// roundTrip writes the request and reads the response, until ctx ends. The
// caller calls c.Unwatch.
func roundTrip(ctx context.Context, c *conn.Conn, req *Request, resp *Response) (keepAlive bool, err error) {
	small := len(req.Body) <= smallBody
	if c.Bound(small); !small {
		c.Watch(ctx)
		return roundTripLarge(c, req, resp)
	}
	c.Hold()
	c.Watch(ctx)
	err = write(c, req)
	keepAlive, readErr := read(c, req.MaxResponse, resp)
	if err == nil {
		err = c.WriteError()
	}
	if err != nil {
		return false, cutShort(err, readErr, resp)
	}
	return keepAlive, readErr
}

// roundTripLarge reads while it writes. A server or a proxy may refuse a
// request before it has taken the whole, for its size or another reason, and
// then read no more of it. A success so early is the answer to another request.
func roundTripLarge(c *conn.Conn, req *Request, resp *Response) (keepAlive bool, err error) {
	type answer struct {
		keepAlive bool
		err       error
	}
	var ending, written atomic.Bool
	answered := make(chan answer, 1)
	go func() {
		keep, err := read(c, req.MaxResponse, resp)
		if err == nil && !isRefusal(resp) && !ending.Load() {
			*resp, keep, err = Response{}, false, errEarly
		}
		if !written.Load() && (err != nil || isRefusal(resp)) {
			c.InterruptWrites()
			keep = false
		}
		answered <- answer{keep, err}
	}()
	err = writeLarge(c, req, &ending)
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
// server cannot execute it, because less came than its Content-Length promised.
// The error is nil if the server answered with a refusal.
func cutShort(writeErr, readErr error, resp *Response) error {
	switch {
	case readErr == nil && isRefusal(resp):
		return nil
	case readErr == nil:
	case errors.Is(writeErr, os.ErrDeadlineExceeded), isPermanent(readErr):
		// The reader ended the writing, or knows why the server did.
		writeErr = readErr
	}
	*resp = Response{}
	return NotSent(writeErr)
}

// userAgent is sent because some firewalls refuse clients without a name.
const userAgent = "upbloom"

func write(c *conn.Conn, req *Request) error {
	writeHead(c.W, req)
	if _, err := c.W.Write(req.Body); err != nil {
		return err
	}
	return c.W.Flush()
}

// writeLarge is write for a body of at least one byte. It sets ending before it
// sends the last byte.
func writeLarge(c *conn.Conn, req *Request, ending *atomic.Bool) error {
	writeHead(c.W, req)
	last := len(req.Body) - 1
	if _, err := c.W.Write(req.Body[:last]); err != nil {
		return err
	}
	if err := c.W.Flush(); err != nil {
		return err
	}
	ending.Store(true)
	if err := c.W.WriteByte(req.Body[last]); err != nil {
		return err
	}
	return c.W.Flush()
}

// writeHead writes all but the body. An error stays in w.
func writeHead(w *bufio.Writer, req *Request) { _, _ = w.Write(appendHead(w.AvailableBuffer(), req)) }

// appendHead appends all but the body. No text in it can have a line break: the
// URL, the token, the path of a RawCmd and the sync token were checked when they
// came in. The path is written as it is.
func appendHead(dst []byte, req *Request) []byte {
	host, path := hostAndPath(req.URL)
	dst = append(append(append(dst, "POST "...), path...), " HTTP/1.1\r\nHost: "...)
	dst = append(append(dst, host...), "\r\nUser-Agent: "+userAgent+"\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(req.Body)), 10)
	for _, h := range req.Header {
		dst = append(append(append(append(dst, "\r\n"...), h.Name...), ": "...), h.Value...)
	}
	return append(dst, "\r\n\r\n"...)
}

func hostAndPath(url string) (host, path string) {
	_, rest, _ := strings.Cut(url, "://")
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return rest[:i], rest[i:]
	}
	return rest, "/"
}

// read reads the response. After an error, resp has the status if it came, and
// no body.
func read(c *conn.Conn, limit int, resp *Response) (keepAlive bool, err error) {
	head, err := http1.ReadHead(c.R, resp.setField)
	if err != nil {
		if err = readError(c, err); err == errHungUp && c.R.Buffered() == 0 {
			err = errNoAnswer
		}
		return false, err
	}
	body, err := head.AppendBody(resp.Body, c.R, limit)
	resp.StatusCode = head.Status
	if err == http1.ErrLongBody {
		return false, ErrResponseTooLarge
	}
	if err != nil {
		return false, readError(c, err)
	}
	resp.Body = body
	return head.KeepAlive, nil
}

// setField is SetHeader for names and values that the transport uses again.
func (r *Response) setField(name, value []byte) {
	switch {
	case ascii.EqualFold(name, headerSyncToken):
		r.setSyncToken(value)
	case ascii.EqualFold(name, headerRetryAfter):
		r.retryAfter = string(value)
	}
}

// setSyncToken keeps the token of an answer. The same token again needs no
// memory.
func (r *Response) setSyncToken(token []byte) {
	if r.syncToken = r.sentToken; string(token) != r.sentToken {
		r.syncToken = string(token)
	}
}

var errHungUp = fmt.Errorf("the connection was closed before the whole answer came: %w",
	io.ErrUnexpectedEOF)

// readError returns what is wrong with an answer, or why the connection broke.
func readError(c *conn.Conn, err error) error {
	if _, ok := err.(http1.Error); ok {
		return err
	}
	cause := c.ReadError()
	switch {
	case cause == nil:
		return err
	case errors.Is(cause, io.EOF):
		return errHungUp
	}
	return fmt.Errorf("the connection broke before the whole answer came: %w", cause)
}

// isPermanent reports whether another attempt would end in err again.
func isPermanent(err error) bool {
	return errors.Is(err, http1.ErrLongHead) || conn.Permanent(err)
}

// errNoAnswer is the error of a connection that was closed before the first byte
// of an answer.
var errNoAnswer = fmt.Errorf("the connection was closed without an answer: %w", io.ErrUnexpectedEOF)

// isUnanswered reports whether err is errNoAnswer, or what net/http returns then.
func isUnanswered(err error) bool { return errors.Is(err, errNoAnswer) || errors.Is(err, io.EOF) }

// question returns what the reader of an error should look into, or "".
func question(err error) string { return conn.Question(err) }
