//go:build !wasm

package upstash

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/valyala/fasthttp"
)

// fasthttpTransport is the native default. fasthttp writes and parses the
// HTTP; the connections are kept here, because its own pool cannot give up a
// dial, and repeats requests, for reasons of its own. Here every call runs on
// its caller's goroutine and touches its buffers only until it returns.
type fasthttpTransport struct {
	dialer dialer
	idle   connPool
}

func newDefaultTransport(e endpoint) Transport {
	return &fasthttpTransport{dialer: newDialer(e)}
}

// Close closes the idle connections. Calls under way end undisturbed.
func (t *fasthttpTransport) Close() error {
	t.idle.close()
	return nil
}

// RoundTrip sends req over an idle connection that is certainly alive, or a
// new one.
func (t *fasthttpTransport) RoundTrip(ctx context.Context, req *Request, resp *Response) error {
	c := t.idle.get(time.Now())
	if c == nil {
		var err error
		if c, err = t.dialer.dial(ctx); err != nil {
			return NotSent(err)
		}
	}
	// A past deadline is the one thing that wakes a blocked read or write.
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	reusable, err := c.exchange(req, resp)
	if !stop() {
		reusable = false // the deadline may strike at any time from now on
	}
	if !reusable {
		_ = c.Close()
	} else {
		t.idle.put(c, time.Now())
	}
	return err
}

// userAgent is sent because firewalls are wary of clients without a name.
const userAgent = "upbloom"

// exchange writes the request and reads the response.
func (c *conn) exchange(req *Request, resp *Response) (reusable bool, err error) {
	out := fasthttp.AcquireRequest()
	defer fasthttp.ReleaseRequest(out)
	out.Header.SetMethod(fasthttp.MethodPost)
	out.Header.DisableNormalizing()
	out.Header.SetNoDefaultContentType(true)
	out.Header.SetUserAgent(userAgent)
	out.SetRequestURI(req.URL)
	for _, h := range req.Header {
		out.Header.Set(h.Name, h.Value)
	}
	out.SetBodyRaw(req.Body)
	err = out.Write(c.w)
	if err == nil {
		err = c.w.Flush()
	}
	if err == nil {
		return c.read(req.MaxResponse, resp)
	}
	// A server that refuses a request for its size answers and hangs up before
	// it took the whole.
	if _, early := c.read(req.MaxResponse, resp); early == nil {
		return false, nil
	}
	// TCP took less than the whole request, and less than the promised
	// Content-Length cannot be executed.
	return false, NotSent(err)
}

// maxInterim is how many answers of status 1xx, which nobody asked for, may
// come before the one that counts.
const maxInterim = 5

func (c *conn) read(limit int, resp *Response) (reusable bool, err error) {
	in := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(in)
	err = in.ReadLimitBody(c.r, limit)
	for n := 0; err == nil && in.StatusCode() < 200 && n < maxInterim; n++ {
		in.Reset()
		err = in.ReadLimitBody(c.r, limit)
	}
	if err != nil {
		if errors.Is(err, fasthttp.ErrBodyTooLarge) {
			resp.StatusCode = in.StatusCode()
		}
		return false, readError(err)
	}
	resp.StatusCode = in.StatusCode()
	for name, value := range in.Header.All() {
		if resp.WantsHeader(name) {
			resp.SetHeader(string(name), string(value))
		}
	}
	resp.Body = append(resp.Body, in.Body()...)
	return !in.ConnectionClose() && c.r.Buffered() == 0, nil
}

var (
	errNotHTTP = errors.New("the answer is not HTTP/1.1, or its header is longer than 16 KiB")
	errHungUp  = fmt.Errorf("the connection was closed before the whole answer came: %w", io.ErrUnexpectedEOF)
)

// readError keeps fasthttp's texts out: they quote what was read.
func readError(err error) error {
	var network net.Error
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return ErrResponseTooLarge
	case errors.As(err, &network):
		return network
	case errors.Is(err, fasthttp.ErrTimeout):
		return os.ErrDeadlineExceeded
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errHungUp
	}
	return errNotHTTP
}

// The buffers of a connection. A response's header must fit the reader's.
const (
	readBuffer  = 16 << 10
	writeBuffer = 8 << 10
)

func newBuffers(c *conn) {
	c.r = bufio.NewReaderSize(c.Conn, readBuffer)
	c.w = bufio.NewWriterSize(c.Conn, writeBuffer)
}
