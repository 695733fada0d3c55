//go:build unix

package conn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
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

// TestQuestion: the errors of what is most often wrong on a laptop lead to it.
func TestQuestion(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errRefused}
	for _, tt := range []struct{ name, proxy, want string }{
		{"nothing listens", "", "is the URL right, does the server run?"},
		{"no proxy listens", "http://proxy.test:1", "is HTTPS_PROXY right, does the proxy run?"},
	} {
		t.Setenv("HTTPS_PROXY", tt.proxy)
		d := dialing(t, "db.test", true, nil)
		d.Open = func(context.Context, string, string) (net.Conn, error) { return nil, refused }
		_, err := d.Dial(t.Context())
		if q := Question(err); !errors.Is(err, refused) || q != tt.want {
			t.Errorf("%s: got %v, question %q, want %q", tt.name, err, q, tt.want)
		}
	}
	t.Setenv("HTTPS_PROXY", "")
	d := dialing(t, "db.test", true, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 16<<10))
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
	})
	_, err := d.Dial(t.Context())
	if q := Question(err); err == nil || !strings.Contains(q, "is it http://?") {
		t.Errorf("no TLS: got %v, question %q", err, q)
	}
	// How net/http wraps the errors of a proxy.
	for want, err := range map[string]error{
		"is HTTPS_PROXY right, does the proxy run?": &net.OpError{Op: "proxyconnect", Net: "tcp", Err: refused},
		"is HTTPS_PROXY right?": &net.OpError{
			Op: "proxyconnect", Net: "tcp", Err: &net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}},
		},
		"": &net.OpError{Op: "socks connect", Net: "tcp", Err: errors.New("host unreachable")},
	} {
		if q := Question(err); q != want {
			t.Errorf("%v: question %q, want %q", err, q, want)
		}
	}
}

func TestPermanent(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&net.DNSError{IsNotFound: true}, true},
		{&net.DNSError{IsTimeout: true}, false},
		{&net.DNSError{IsTemporary: true}, false},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, true},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(116)}, true}, // certificate required
		{&net.OpError{Op: "remote error", Err: tls.AlertError(80)}, false}, // internal error
		{&net.OpError{Op: "local error", Err: tls.AlertError(116)}, false},
		{&net.OpError{Op: "remote error", Err: errRefused}, false},
		{errBadProxy, true},
		{errProxyAuth, true},
		{errRefused, false},
		{context.DeadlineExceeded, false},
	} {
		if got := Permanent(fmt.Errorf("wrapped: %w", tt.err)); got != tt.want {
			t.Errorf("Permanent(%v) = %v, want %v", tt.err, got, tt.want)
		}
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
