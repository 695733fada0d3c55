//go:build !wasm

package upstash

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/internal/dialctx"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/internal/conn"
)

// TestNoReuseAfterAnInterruption: the context ends as the answer arrives, so the
// connection may be interrupted at any later time.
func TestNoReuseAfterAnInterruption(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	socket := &scriptedConn{answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", deadline: make(chan struct{}, 1)}
	socket.beforeAnswer = func(c *scriptedConn) {
		cancel()
		<-c.deadline
	}
	tr := transportOver(t, 1, func() net.Conn { return socket })
	var resp Response
	err := tr.RoundTrip(ctx, &Request{URL: "http://localhost/", Body: []byte("[]"), MaxResponse: 10}, &resp)
	if err != nil || string(resp.Body) != "{}" || !socket.closed {
		t.Errorf("got %q, %v, closed %v, want {} and the end of the connection", resp.Body, err, socket.closed)
	}
}

// brokenConn fails to write. Reading it returns what the peer said before that.
type brokenConn struct {
	scriptedConn
	said error
}

func (c *brokenConn) Write([]byte) (int, error) { return 0, syscall.EPIPE }
func (c *brokenConn) Read([]byte) (int, error)  { return 0, c.said }

// TestAlertBeforeTheReset: a server may end TLS and hang up before the request
// is written. Its alert says more than the broken pipe: another attempt would
// end the same way.
func TestAlertBeforeTheReset(t *testing.T) {
	alert := &net.OpError{Op: "remote error", Err: tls.AlertError(116)} // certificate required
	for _, size := range []int{10, 10 * smallBody} {
		for said, permanent := range map[error]bool{alert: true, io.EOF: false} {
			tr := transportOver(t, 1, func() net.Conn { return &brokenConn{said: said} })
			req := &Request{URL: "http://localhost/", Body: make([]byte, size), MaxResponse: 10}
			err := tr.RoundTrip(t.Context(), req, new(Response))
			if !isNotSent(err) || conn.Permanent(err) != permanent || errors.Is(err, said) != permanent {
				t.Errorf("%d bytes, %v: got %v, permanent %v", size, said, err, conn.Permanent(err))
			}
		}
	}
}

// scriptedConn answers the first read with its contents.
type scriptedConn struct {
	answer       string
	beforeAnswer func(c *scriptedConn)
	deadline     chan struct{} // gets a value when a deadline is set
	closed       bool
}

func (c *scriptedConn) Write(p []byte) (int, error) { return len(p), nil }

func (c *scriptedConn) Read(p []byte) (int, error) {
	if c.beforeAnswer != nil {
		c.beforeAnswer(c)
	}
	n := copy(p, c.answer)
	if c.answer = c.answer[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (c *scriptedConn) Close() error {
	c.closed = true
	return nil
}

func (c *scriptedConn) SetDeadline(time.Time) error {
	c.deadline <- struct{}{}
	return nil
}

func (c *scriptedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *scriptedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *scriptedConn) SetReadDeadline(time.Time) error  { return nil }
func (c *scriptedConn) SetWriteDeadline(time.Time) error { return nil }

// transportOver makes a transport over sockets of dial.
func transportOver(t *testing.T, limit int, dial func() net.Conn) *fasthttpTransport {
	t.Helper()
	tr := &fasthttpTransport{pool: conn.NewPool(limit, func(context.Context) (*conn.Conn, error) {
		return conn.New(dial()), nil
	})}
	t.Cleanup(func() { _ = tr.Close() })
	return tr
}

// TestNoConnectionIsFree: callers without end open as many connections as
// WithMaxConns says. After a wait in vain, the error says what the call waited for,
// and that it did not run.
func TestNoConnectionIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 5
		var dials atomic.Int64
		ctx := dialctx.With(t.Context(), func(context.Context, string, string) (net.Conn, error) {
			near, _ := net.Pipe() // nobody answers
			dials.Add(1)
			return near, nil
		})
		c := newClient(t, "http://localhost", WithMaxConns(limit), WithTimeout(time.Minute), WithRetry(0))
		for range 10 * limit {
			go func() { _, _ = c.Do(ctx, Cmd("INCR", "k")) }()
		}
		synctest.Wait() // until all connections are in use
		soon, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, byContext := c.Do(soon, Cmd("INCR", "k"))
		hasty := newClient(t, "http://localhost", WithTransport(c.transport), WithTimeout(time.Second), WithRetry(0))
		_, byTimeout := hasty.Do(ctx, Cmd("INCR", "k"))
		for _, err := range []error{byContext, byTimeout} {
			if !errors.Is(err, context.DeadlineExceeded) || !SafeToRetry(err) ||
				!strings.Contains(err.Error(), "WithMaxConns") {
				t.Errorf("got %v", err)
			}
		}
		if dials.Load() != limit {
			t.Errorf("%d connections, want %d", dials.Load(), limit)
		}
		time.Sleep(time.Hour) // until all calls have ended
	})
}

// TestAnObserverHoldsNoConnection: while an observer runs, the only connection
// is free for a call, also if the observer never returns to its own call.
func TestAnObserverHoldsNoConnection(t *testing.T) {
	s := serve(t, answerOne, func(net.Conn) {})
	var c *Client
	call := func(ctx context.Context) error {
		_, err := c.Do(ctx, Cmd("INCR", "k"))
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	ends := map[string]func() error{
		"calls":              func() error { return call(ctx) },
		"panics":             func() error { panic("observer") },
		"ends its goroutine": func() error { runtime.Goexit(); return nil },
	}
	type label struct{}
	c = newClient(t, s.URL, WithMaxConns(1), WithTimeout(0), WithObserver(func(ctx context.Context, _ Event) {
		if name, ok := ctx.Value(label{}).(string); ok {
			if err := ends[name](); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}))
	for name := range ends {
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			_ = call(context.WithValue(ctx, label{}, name))
		}()
		<-done
		if err := call(ctx); err != nil {
			t.Errorf("after an observer that %s: %v", name, err)
		}
	}
}

// TestPermanentErrorsAreNotRepeated: the next attempt would end the same way, and
// after a long header it would run the command again.
func TestPermanentErrorsAreNotRepeated(t *testing.T) {
	for _, permanent := range []error{NotSent(&net.DNSError{IsNotFound: true}), conn.ErrLongHead} {
		c, f := newFake(t, []answer{{err: permanent}})
		_, err := c.Do(t.Context(), Cmd("PING"))
		var call *CallError
		if !errors.As(err, &call) || call.Attempts != 1 || f.count() != 1 || !SafeToRetry(err) {
			t.Errorf("got %v after %d attempts, SafeToRetry %v, want one", err, f.count(), SafeToRetry(err))
		}
	}
}

// BenchmarkReadAnswer reads the answer to an Add, with a server's usual fields.
func BenchmarkReadAnswer(b *testing.B) {
	answer := []byte("HTTP/1.1 200 OK\r\nServer: fasthttp\r\nDate: Sun, 22 Nov 2026 13:40:00 GMT\r\n" +
		"Content-Type: application/json\r\nUpstash-Sync-Token: ab=1,cd=2\r\nContent-Length: 46\r\n\r\n" +
		`{"result":[0,4503599627370503,null,0,1,1,0,1]}`)
	var from bytes.Reader
	c, x, room := connFrom(&from), new(exchange), make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		from.Reset(answer)
		resp := Response{Body: room, sentToken: "ab=1,cd=2"}
		if _, err := x.read(c, 1<<20, &resp); err != nil || len(resp.Body) != 46 {
			b.Fatalf("%d bytes, %v, want 46", len(resp.Body), err)
		}
		x.resp.Reset()
	}
}
