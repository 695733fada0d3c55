//go:build !wasm

package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
)

// TestDialToATalker: without TLS, what a server sends before the request is no
// answer, and a connection that it has closed cannot carry one. No request was
// sent on either.
func TestDialToATalker(t *testing.T) {
	for name, tt := range map[string]struct {
		talk func(net.Conn)
		want error
	}{
		"silence": {func(net.Conn) {}, nil},
		"an answer": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{\"result\":1}")
		}, errEarly},
		"a byte":      {func(c net.Conn) { _, _ = io.WriteString(c, "+") }, errEarly},
		"a close":     {func(c net.Conn) { _ = c.Close() }, errClosed},
		"a last byte": {func(c net.Conn) { _, _ = io.WriteString(c, "-"); _ = c.Close() }, errEarly},
	} {
		d := NewDialer("db.test", "80", false)
		var near *Conn
		d.Open = func(context.Context, string, string) (net.Conn, error) {
			c, far := pair(t)
			near = c
			if tt.talk(far); tt.want != nil {
				arrived(t, c)
			}
			return c.socket.Conn, nil
		}
		c, err := d.Dial(t.Context())
		if !errors.Is(err, tt.want) || (c == nil) != (tt.want != nil) || closed(near) != (tt.want != nil) {
			t.Errorf("%s: %v, %v, want %v and a closed connection", name, c, err, tt.want)
		}
	}
}

// TestUnaskedCost: the look is one attempt to read, and none with TLS.
func TestUnaskedCost(t *testing.T) {
	for tries, layers := range map[int]int{1: 0, 0: 1} {
		c, _ := layered(t, layers, tls.VersionTLS13)
		raw := &counted{RawConn: c.socket.raw}
		c.socket.raw = raw
		if err := c.checkSilent(); err != nil || raw.tries != tries {
			t.Errorf("%d layers of TLS: %v, %d tries, want %d", layers, err, raw.tries, tries)
		}
	}
}
