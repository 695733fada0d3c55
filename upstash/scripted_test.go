//go:build !wasm

package upstash

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/upbloom/upbloom/upstash/internal/conn"
)

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
