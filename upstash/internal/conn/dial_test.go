//go:build !wasm

package conn

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
)

// talkative counts the writes and closes of a socket.
type talkative struct {
	net.Conn
	writes, closes int
}

func (s *talkative) Write(p []byte) (int, error) {
	s.writes++
	return s.Conn.Write(p)
}

func (s *talkative) Close() error {
	s.closes++
	return s.Conn.Close()
}

// TestCloseSaysNothing: TLS's close_notify would block if the peer does not
// read.
func TestCloseSaysNothing(t *testing.T) {
	for _, l := range layerings {
		c, _ := layered(t, l.layers, l.version)
		socket := &talkative{Conn: c.socket.Conn}
		c.socket.Conn = socket
		if c.Close(); socket.writes != 0 || socket.closes != 1 {
			t.Errorf("%s: %d writes, %d closes", l.name, socket.writes, socket.closes)
		}
	}
}

func TestNoSuchHost(t *testing.T) {
	d := NewDialer("db.test", "443", true)
	cause := &net.DNSError{Err: "no such host", Name: "db.test", IsNotFound: true}
	d.Lookup = func(context.Context, string, string) ([]netip.Addr, error) { return nil, cause }
	_, err := d.Dial(t.Context())
	if q := Question(err); !errors.Is(err, cause) || q != NoHost {
		t.Errorf("the name of a database: got %v, question %q, want %q", err, q, NoHost)
	}
	t.Setenv("HTTPS_PROXY", "http://proxy.test:1")
	lookup := d.Lookup
	d = NewDialer("db.test", "443", true)
	d.Lookup = lookup
	_, err = d.Dial(t.Context())
	const proxy = "is HTTPS_PROXY right?"
	if q := Question(err); !errors.Is(err, cause) || q != proxy {
		t.Errorf("the name of a proxy: got %v, question %q, want %q", err, q, proxy)
	}
}

// TestDialEndsWithItsContext, in each step for which a dial may wait.
func TestDialEndsWithItsContext(t *testing.T) {
	for name, proxy := range map[string]string{
		"TLS": "", "CONNECT": "http://proxy.test", "SOCKS": "socks5://proxy.test",
		"TLS to a proxy": "https://proxy.test",
	} {
		t.Setenv("HTTPS_PROXY", proxy)
		ctx, cancel := context.WithCancel(t.Context())
		d := dialing(t, "db.test", true, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1))
			cancel()
			_, _ = io.Copy(io.Discard, c) // until the other end closes
		})
		if _, err := d.Dial(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
		cancel()
	}
}
