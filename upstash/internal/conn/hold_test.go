//go:build unix

package conn

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// hold has c hold a request.
func hold(t *testing.T, c *Conn, request string) {
	t.Helper()
	c.Hold()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
}

// exchange has c hold a request and read it again, as the other end echoes it.
func exchange(t *testing.T, c *Conn, s *server, request string) {
	t.Helper()
	go func() {
		got := make([]byte, len(request))
		_, _ = io.ReadFull(s.top, got)
		_, _ = s.top.Write(got)
	}()
	hold(t, c, request)
	if wantRead(t, c, request); c.WriteError() != nil {
		t.Fatalf("the writing ended with %v", c.WriteError())
	}
}

// TestHeldRequest: a held request goes out with the read, in every layer, even
// if it is more than the socket takes at once.
func TestHeldRequest(t *testing.T) {
	for _, l := range layerings {
		t.Run(l.name, func(t *testing.T) {
			c, s := layered(t, l.layers, l.version)
			if err := c.socket.Conn.(*net.TCPConn).SetWriteBuffer(4 << 10); err != nil {
				t.Fatal(err)
			}
			for _, request := range []string{"request", "another", strings.Repeat("long ", 64<<10), "last"} {
				if exchange(t, c, s, request); !c.clean() {
					t.Fatal("not clean after an exchange")
				}
			}
			// A later write does not wait for a read.
			if _, err := io.WriteString(c.top, "unheld"); err != nil {
				t.Fatal(err)
			}
			wantRead(t, s.top, "unheld")
		})
	}
}

// TestHeldRequestSavesARead: no read looks for an answer that cannot be there.
func TestHeldRequestSavesARead(t *testing.T) {
	c, s := layered(t, 0, 0)
	raw := &counted{RawConn: c.socket.raw}
	c.socket.raw = raw
	exchange(t, c, s, "request")
	if raw.tries != 2 {
		t.Errorf("%d tries, want 2: one to send, one to read", raw.tries)
	}
}

// TestHeldRequestAfterTheLimit: nothing goes out, and WriteError says so.
func TestHeldRequestAfterTheLimit(t *testing.T) {
	for _, l := range layerings {
		c, s := layered(t, l.layers, l.version)
		hold(t, c, "request")
		c.Limit(past)
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the read ended with %v", l.name, err)
		}
		if err := c.WriteError(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the writing ended with %v", l.name, err)
		}
		c.Close()
		if got, err := io.ReadAll(s.held.Conn); len(got) > 0 || err != nil {
			t.Errorf("%s: the server got %d bytes, %v", l.name, len(got), err)
		}
	}
}

// TestWatchAHeldRequest: the context is asked after the request has gone out,
// and its end wakes the read.
func TestWatchAHeldRequest(t *testing.T) {
	for _, l := range layerings {
		c, s := layered(t, l.layers, l.version)
		ctx, end := context.WithCancel(t.Context())
		end()
		c.Hold()
		c.Watch(ctx)
		if _, err := io.WriteString(c, "request"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the read ended with %v, want the interruption", l.name, err)
		}
		if err := c.WriteError(); err != nil {
			t.Errorf("%s: the writing ended with %v", l.name, err)
		}
		wantRead(t, s.top, "request")
		if c.Unwatch() {
			t.Errorf("%s: Unwatch says that c can be used again after an interruption", l.name)
		}
	}
}

// TestUnwatch: an exchange that was not interrupted leaves nothing behind.
func TestUnwatch(t *testing.T) {
	for _, l := range layerings {
		c, s := layered(t, l.layers, l.version)
		ctx, end := context.WithCancel(t.Context())
		c.Hold()
		c.Watch(ctx)
		exchange(t, c, s, "request")
		if !c.Unwatch() {
			t.Errorf("%s: Unwatch says that c was interrupted", l.name)
		}
		end()
		exchange(t, c, s, "another")
		if !c.Unwatch() {
			t.Errorf("%s: c was interrupted by the context of an exchange before", l.name)
		}
	}
}

// TestHeldRequestAndAnEarlyAnswer: TLS may have decrypted an answer before the
// request. If a read returns it, the read sends nothing, and WriteError says
// so.
func TestHeldRequestAndAnEarlyAnswer(t *testing.T) {
	for _, l := range layerings[1:] {
		c, s := layered(t, l.layers, l.version)
		s.send(t, 0, "answer, stray")
		wantRead(t, c, "answer")
		hold(t, c, "request")
		if _, err := c.Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		if err := c.WriteError(); err == nil {
			t.Errorf("%s: no error, though the request was not sent", l.name)
		}
		c.Close()
		if got, err := io.ReadAll(s.held.Conn); len(got) > 0 || err != nil {
			t.Errorf("%s: the server got %d bytes, %v", l.name, len(got), err)
		}
	}
}

// TestHeldRequestToNobody: the connection was reset before the request.
func TestHeldRequestToNobody(t *testing.T) {
	c, s := layered(t, 0, 0)
	_ = s.held.Conn.(*net.TCPConn).SetLinger(0)
	_ = s.held.Conn.Close()
	arrived(t, c)
	hold(t, c, "request")
	_, err := c.Read(make([]byte, 1))
	var op *net.OpError
	if err == nil || c.WriteError() == nil || !errors.As(c.WriteError(), &op) || op.Op != "write" {
		t.Errorf("the read ended with %v, the writing with %v", err, c.WriteError())
	}
}

// TestErrorOfARawRead reads like an error of package net.
func TestErrorOfARawRead(t *testing.T) {
	c, s := layered(t, 0, 0)
	go func() {
		_, _ = io.ReadFull(s.top, make([]byte, len("request")))
		_ = s.held.Conn.(*net.TCPConn).SetLinger(0)
		_ = s.held.Conn.Close()
	}()
	hold(t, c, "request")
	_, err := c.Read(make([]byte, 1))
	if err == nil || c.WriteError() != nil || !errors.Is(err, syscall.ECONNRESET) ||
		!strings.HasPrefix(err.Error(), "read tcp 127.0.0.1:") {
		t.Errorf("the read ended with %v, the writing with %v", err, c.WriteError())
	}
}
