//go:build !wasm

package httptransport_test

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/internal/dialctx"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
)

// testProxy is a proxy on the loopback interface that knows a made-up name,
// because a loopback host has no proxy.
type testProxy struct {
	known   string // host and port
	addr    string // where it is
	tunnels atomic.Int64
	auth    atomic.Value // the last Proxy-Authorization
}

func (p *testProxy) connect(c net.Conn) {
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	p.auth.Store(req.Header.Get("Proxy-Authorization"))
	if req.Method != http.MethodConnect || req.Host != p.known {
		_, _ = io.WriteString(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
		return
	}
	p.tunnel(c, "HTTP/1.1 200 Connection established\r\n\r\n")
}

// socks5 speaks as much of RFC 1928 as a CONNECT to a name needs.
func (p *testProxy) socks5(c net.Conn) {
	b := make([]byte, 256)
	if _, err := io.ReadFull(c, b[:2]); err != nil {
		return
	}
	_, _ = io.ReadFull(c, b[:b[1]]) // methods
	_, _ = c.Write([]byte{5, 0})    // no authentication
	if _, err := io.ReadFull(c, b[:5]); err != nil || b[3] != 3 {
		return
	}
	n := int(b[4])
	if _, err := io.ReadFull(c, b[:n+2]); err != nil {
		return
	}
	if string(b[:n])+":443" == p.known {
		p.tunnel(c, "\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
	}
}

// tunnel joins c and the host, after it has sent established.
func (p *testProxy) tunnel(c net.Conn, established string) {
	far, err := net.Dial("tcp", p.addr)
	if err != nil {
		return
	}
	defer far.Close()
	p.tunnels.Add(1)
	_, _ = io.WriteString(c, established)
	go func() {
		_, _ = io.Copy(far, c)
		_ = far.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(c, far)
}

// over returns a transport of New(nil), and a client over it for a host with
// this proxy.
func over(t *testing.T, proxy string, opts ...upstash.Option) (*httptransport.Transport, *upstash.Client) {
	t.Helper()
	for _, name := range []string{"HTTPS_PROXY", "https_proxy"} {
		t.Setenv(name, proxy)
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		t.Setenv(name, "")
	}
	tr := httptransport.New(nil)
	t.Cleanup(func() { _ = tr.Close() })
	// The name is in the certificate of net/http/httptest.
	c, err := upstash.New("https://example.com", "token", append([]upstash.Option{
		upstash.WithTransport(tr), upstash.WithTimeout(testenv.Patience),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return tr, c
}

// TestProxies: all calls go through one tunnel.
func TestProxies(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"result":1}`)
	}))
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	for scheme, auth := range map[string]string{"http": "user:pass-word", "socks5": ""} {
		p := &testProxy{known: "example.com:443", addr: s.Listener.Addr().String()}
		serve, user := p.connect, auth+"@"
		if scheme == "socks5" {
			serve, user = p.socks5, ""
		}
		tr, c := over(t, scheme+"://"+user+testenv.Serve(t, serve))
		httptransport.Trust(tr, roots)
		for range 3 {
			if _, err := c.Do(t.Context(), upstash.Cmd("PING")); err != nil {
				t.Fatalf("%s: %v", scheme, err)
			}
		}
		if n := p.tunnels.Load(); n != 1 {
			t.Errorf("%s: %d tunnels for 3 calls, want 1", scheme, n)
		}
		want := "Basic " + base64.StdEncoding.EncodeToString([]byte(auth))
		if scheme == "http" && p.auth.Load() != want {
			t.Errorf("Proxy-Authorization %q, want %q", p.auth.Load(), want)
		}
	}
}

// TestUnusableProxyIsNoWayAroundIt: if a proxy's password is not escaped, the
// requests must not bypass the proxy.
func TestUnusableProxyIsNoWayAroundIt(t *testing.T) {
	_, c := over(t, "http://user:hunter%ss@proxy.test:8080")
	_, err := c.Do(t.Context(), upstash.Cmd("INCR", "k"))
	var call *upstash.CallError
	if !errors.As(err, &call) || call.Attempts != 1 || !upstash.SafeToRetry(err) ||
		!strings.Contains(err.Error(), "HTTPS_PROXY") || strings.Contains(err.Error(), "hunter") {
		t.Errorf("got %v", err)
	}
}

// TestProxyFails: the error speaks of the proxy, and shows no password.
func TestProxyFails(t *testing.T) {
	plain := func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }
	const run = "is the proxy's URL in the environment right, does the proxy run?"
	const refused, through = "the proxy answered CONNECT with status 403", "through the environment's proxy: "
	const noTLS = "the proxy answers without TLS: is its URL in the environment http://?"
	smtp := func(c net.Conn) { _, _ = io.WriteString(c, "220 smtp.test\r\n") }
	for name, tt := range map[string]struct {
		scheme, addr, want string
	}{
		"no proxy":         {"http", testenv.ClosedAddr(t), run},
		"no https proxy":   {"https", testenv.ClosedAddr(t), run},
		"no socks5 proxy":  {"socks5", testenv.ClosedAddr(t), run},
		"refuses":          {"http", testenv.Serve(t, new(testProxy).connect), refused},
		"closes":           {"http", testenv.Serve(t, func(net.Conn) {}), through},
		"another protocol": {"http", testenv.Serve(t, smtp), through},
		"without TLS":      {"https", testenv.Serve(t, smtp), noTLS},
		"HTTP for https":   {"https", testenv.Serve(t, plain), noTLS},
		"closes, https":    {"https", testenv.Serve(t, func(net.Conn) {}), run},
	} {
		_, c := over(t, tt.scheme+"://user:pass-word@"+tt.addr, upstash.WithRetry(0))
		_, err := c.Do(t.Context(), upstash.Cmd("INCR", "k"))
		if err == nil || !upstash.SafeToRetry(err) || !strings.Contains(err.Error(), tt.want) ||
			!strings.Contains(err.Error(), through) || strings.Contains(err.Error(), "pass-word") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestSilentProxies: a dial through a proxy that takes a connection and says
// nothing ends with its attempt, and the error says so. Nobody closes the transport
// before.
func TestSilentProxies(t *testing.T) {
	const through = "through the environment's proxy: "
	for scheme, want := range map[string]string{
		"http": through, "https": through + "the proxy did not complete the TLS handshake", "socks5": through,
	} {
		synctest.Test(t, func(t *testing.T) {
			var open atomic.Int64
			_, c := over(t, scheme+"://proxy.test:1", upstash.WithRetry(0), upstash.WithTimeout(time.Second))
			_, err := c.Do(dialctx.With(t.Context(), func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				open.Add(1)
				go func() {
					_, _ = io.Copy(io.Discard, far)
					open.Add(-1)
				}()
				return near, nil
			}), upstash.Cmd("INCR", "k"))
			if !upstash.SafeToRetry(err) || !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%s: got %v, want %q", scheme, err, want)
			}
			if time.Sleep(time.Second); open.Load() != 0 {
				t.Errorf("%s: a dial goes on", scheme)
			}
		})
	}
}
