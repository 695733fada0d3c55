//go:build unix

package conn

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
)

// resetting is a socket whose reads find that the peer reset it.
type resetting struct{ net.Conn }

func (resetting) Read([]byte) (int, error) {
	return 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

// TestWhoBrokeTheConnection: if a connection breaks while it is made, the error
// says who broke it and when, and asks what is wrong most often then.
func TestWhoBrokeTheConnection(t *testing.T) {
	const ask = "is the URL right, does a firewall allow this host?"
	hello := func(c net.Conn) { _, _ = c.Read(make([]byte, 16<<10)) }
	part := func(c net.Conn) {
		hello(c)
		_, _ = c.Write([]byte{22, 3, 3, 0, 90, 2}) // of a ServerHello
	}
	for name, serve := range map[string]func(net.Conn){"TLS": hello, "TLS, part": part} {
		_, err := dialing(t, "db.test", true, serve).Dial(t.Context())
		closed := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		said := "the server closed the connection in the TLS handshake: "
		if !closed || !strings.HasPrefix(err.Error(), said) || Permanent(err) || Question(err) != ask {
			t.Errorf("%s, closed: got %v, permanent %v, question %q", name, err, Permanent(err), Question(err))
		}
		d := dialing(t, "db.test", true, serve)
		open := d.Open
		d.Open = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := open(ctx, network, addr)
			return resetting{c}, err
		}
		_, err = d.Dial(t.Context())
		said = "the connection broke in the TLS handshake: "
		if !errors.Is(err, syscall.ECONNRESET) || !strings.HasPrefix(err.Error(), said) || Question(err) != ask {
			t.Errorf("%s, reset: got %v, question %q", name, err, Question(err))
		}
	}
}
