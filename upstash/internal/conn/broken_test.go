//go:build unix

package conn

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
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
// says who broke it and in which step, and asks what is wrong most often then.
func TestWhoBrokeTheConnection(t *testing.T) {
	const askURL = "is the URL right, does a firewall allow this host?"
	const askProxy = "is HTTPS_PROXY right, does the proxy allow this host?"
	hello := func(c net.Conn) { _, _ = c.Read(make([]byte, 16<<10)) }
	throughProxy := func(c net.Conn) {
		_, _ = http.ReadRequest(bufio.NewReader(c))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		hello(c)
	}
	part := func(c net.Conn) {
		hello(c)
		_, _ = c.Write([]byte{22, 3, 3, 0, 90, 2}) // of a ServerHello
	}
	for name, tt := range map[string]struct {
		proxy     string
		serve     func(net.Conn)
		said, ask string
	}{
		"TLS":       {"", hello, "the server closed the connection in the TLS handshake: ", askURL},
		"TLS, part": {"", part, "the server closed the connection in the TLS handshake: ", askURL},
		"TLS through a proxy": {
			"http://proxy.test", throughProxy,
			"the proxy or the server closed the connection in the TLS handshake: ", askURL,
		},
		"TLS to a proxy": {
			"https://proxy.test", hello, "proxy: it closed the connection in the TLS handshake: ", askProxy,
		},
		"CONNECT": {
			"http://proxy.test", hello, "proxy: it closed the connection before it answered CONNECT: ", askProxy,
		},
		"SOCKS": {
			"socks5://proxy.test", hello, "proxy: it closed the connection before it answered SOCKS5: ", askProxy,
		},
	} {
		t.Setenv("HTTPS_PROXY", tt.proxy)
		_, err := dialing(t, "db.test", true, tt.serve).Dial(t.Context())
		closed := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if !closed || !strings.HasPrefix(err.Error(), tt.said) || Permanent(err) {
			t.Errorf("%s, closed: got %v, permanent %v; want %q", name, err, Permanent(err), tt.said)
		}
		if q := Question(err); q != tt.ask {
			t.Errorf("%s, closed: question %q, want %q", name, q, tt.ask)
		}
		if name == "TLS through a proxy" {
			continue // the first read is that of the proxy's answer
		}
		d := dialing(t, "db.test", true, tt.serve)
		open := d.Open
		d.Open = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := open(ctx, network, addr)
			return resetting{c}, err
		}
		_, err = d.Dial(t.Context())
		_, step, _ := strings.Cut(tt.said, "closed the connection ")
		said := "the connection broke " + step
		if !errors.Is(err, syscall.ECONNRESET) || !strings.Contains(err.Error(), said) {
			t.Errorf("%s, reset: got %v, want %q", name, err, said)
		}
		if q := Question(err); q != tt.ask {
			t.Errorf("%s, reset: question %q, want %q", name, q, tt.ask)
		}
	}
}

// TestProxyAuthentication: a proxy that wants a password is not one that
// refuses the password it got.
func TestProxyAuthentication(t *testing.T) {
	for proxy, want := range map[string]string{
		"http://proxy.test":               "set HTTPS_PROXY to http://user:password@host:port",
		"http://user:hunter@proxy.test":   "refused the user and password",
		"http://user@proxy.test":          "refused the user and password",
		"http://user:%68unter@proxy.test": "check them in HTTPS_PROXY",
	} {
		t.Setenv("HTTPS_PROXY", proxy)
		_, err := dialing(t, "db.test", true, func(c net.Conn) {
			_, _ = http.ReadRequest(bufio.NewReader(c))
			_, _ = io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
		}).Dial(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter") ||
			!Permanent(err) {
			t.Errorf("%s: got %v, permanent %v; want %q", proxy, err, Permanent(err), want)
		}
	}
}
