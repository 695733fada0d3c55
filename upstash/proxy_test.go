//go:build !wasm

package upstash

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// testProxy is a proxy on the loopback interface that knows made-up names,
// because the environment's proxy is never used for loopback hosts.
type testProxy struct {
	url     string
	hosts   map[string]string
	tunnels atomic.Int64
	auth    atomic.Value // the last Proxy-Authorization
}

func connectProxy(t *testing.T, hosts map[string]string) *testProxy {
	t.Helper()
	p := &testProxy{hosts: hosts}
	p.url = "http://" + testenv.Serve(t, p.connect)
	return p
}

func (p *testProxy) connect(c net.Conn) {
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	p.auth.Store(req.Header.Get("Proxy-Authorization"))
	if req.Method != http.MethodConnect || p.hosts[req.Host] == "" {
		_, _ = io.WriteString(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
		return
	}
	p.tunnel(c, req.Host, "HTTP/1.1 200 Connection established\r\n\r\n")
}

// tunnel joins c and the host, after it has sent established.
func (p *testProxy) tunnel(c net.Conn, host, established string) {
	far, err := net.Dial("tcp", p.hosts[host])
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
	p.tunnel(c, string(b[:n])+":443", "\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
}

const proxiedURL = "https://example.com" // a name in the test's certificate

// wantOneTunnel makes three calls, which must all go through one tunnel of p.
func wantOneTunnel(t *testing.T, p *testProxy, c *Client) {
	t.Helper()
	for range 3 {
		if _, err := c.Do(t.Context(), Cmd("PING")); err != nil {
			t.Fatal(err)
		}
	}
	if n := p.tunnels.Load(); n != 1 {
		t.Errorf("%d tunnels for 3 calls, want 1", n)
	}
}

func TestHTTPSProxy(t *testing.T) {
	s := tlsServer(t, nil)
	p := connectProxy(t, map[string]string{"example.com:443": s.Listener.Addr().String()})
	t.Setenv("HTTPS_PROXY", strings.Replace(p.url, "http://", "http://user:pass-word@", 1))
	wantOneTunnel(t, p, newTLSClient(t, proxiedURL, s))
	if want := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:pass-word")); p.auth.Load() != want {
		t.Errorf("Proxy-Authorization %q, want %q", p.auth.Load(), want)
	}
}

// A proxy that is itself reached over TLS. This is TLS within TLS.
func TestProxyOverTLS(t *testing.T) {
	s := tlsServer(t, nil)
	p := &testProxy{hosts: map[string]string{"example.com:443": s.Listener.Addr().String()}}
	config := &tls.Config{Certificates: s.TLS.Certificates}
	addr := testenv.Serve(t, func(c net.Conn) { p.connect(tls.Server(c, config)) })
	t.Setenv("HTTPS_PROXY", "https://"+addr)
	wantOneTunnel(t, p, newTLSClient(t, proxiedURL, s))
}

func TestHTTPSProxyRefuses(t *testing.T) {
	p := connectProxy(t, nil)
	t.Setenv("HTTPS_PROXY", strings.Replace(p.url, "http://", "http://user:pass-word@", 1))
	_, err := newClient(t, proxiedURL, WithRetry(0)).Do(t.Context(), Cmd("INCR", "k"))
	var call *CallError
	if !errors.As(err, &call) || !SafeToRetry(err) || !strings.Contains(err.Error(), "403") {
		t.Errorf("got %v", err)
	}
	if err != nil && strings.Contains(err.Error(), "pass-word") {
		t.Errorf("the error shows the proxy's password: %v", err)
	}
}

func TestProxyIsUnreachable(t *testing.T) {
	for _, scheme := range []string{"http", "https", "socks5"} {
		t.Setenv("HTTPS_PROXY", scheme+"://user:pass-word@"+testenv.ClosedAddr(t))
		_, err := newClient(t, proxiedURL, WithRetry(0)).Do(t.Context(), Cmd("INCR", "k"))
		if err == nil || !SafeToRetry(err) || !strings.Contains(err.Error(), "proxy") ||
			strings.Contains(err.Error(), "pass-word") {
			t.Errorf("%s: got %v", scheme, err)
		}
	}
	t.Setenv("HTTPS_PROXY", "gopher://user:pass-word@127.0.0.1:70")
	_, err := newClient(t, proxiedURL, WithRetry(0)).Do(t.Context(), Cmd("INCR", "k"))
	if err == nil || !strings.Contains(err.Error(), "HTTPS_PROXY") ||
		strings.Contains(err.Error(), "pass-word") {
		t.Errorf("unknown scheme: got %v", err)
	}
}

func TestSOCKSProxy(t *testing.T) {
	s := tlsServer(t, nil)
	p := &testProxy{hosts: map[string]string{"example.com:443": s.Listener.Addr().String()}}
	t.Setenv("HTTPS_PROXY", "socks5://"+testenv.Serve(t, p.socks5))
	wantOneTunnel(t, p, newTLSClient(t, proxiedURL, s))
}

// TestLoopbackInAnyLetterCase: http:// is allowed for loopback hosts, which
// must get no proxy, however they are spelled. The token would go there in
// clear text.
func TestLoopbackInAnyLetterCase(t *testing.T) {
	p := connectProxy(t, nil)
	t.Setenv("HTTP_PROXY", p.url)
	for _, host := range []string{"Localhost", "LOCALHOST", "localhost", "127.0.0.1"} {
		tr := DefaultTransport(t, "http://"+host+":1")
		_ = tr.RoundTrip(t.Context(), &Request{URL: "http://localhost:1/", MaxResponse: 1}, new(Response))
		if n := p.tunnels.Load(); n != 0 {
			t.Errorf("%s: the proxy was used", host)
		}
		c := newClient(t, "http://"+host+":1")
		if want := "http://" + strings.ToLower(host) + ":1"; c.endpoint.base != want {
			t.Errorf("requests go to %s, want %s", c.endpoint.base, want)
		}
	}
}

// serve starts a server that calls opened with each new connection.
func serve(t *testing.T, h http.HandlerFunc, opened func(net.Conn)) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened(c)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func answerOne(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"result":1}`) }

// dial opens a socket to a server.
func dial(t *testing.T, s *httptest.Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Error(err)
	}
	return c
}

// tlsServer answers every request with 1, if its TLS is accepted.
func tlsServer(t *testing.T, set func(*tls.Config)) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(answerOne))
	s.TLS = &tls.Config{}
	if set != nil {
		set(s.TLS)
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func TestTLS(t *testing.T) {
	for _, tt := range []struct {
		name     string
		untrust  bool
		versions [2]uint16 // least and greatest of the server
		ok       bool
	}{
		{name: "1.3", versions: [2]uint16{tls.VersionTLS13, tls.VersionTLS13}, ok: true},
		{name: "1.2", versions: [2]uint16{tls.VersionTLS10, tls.VersionTLS12}, ok: true},
		{name: "1.1", versions: [2]uint16{tls.VersionTLS10, tls.VersionTLS11}},
		{name: "1.0", versions: [2]uint16{tls.VersionTLS10, tls.VersionTLS10}},
		{name: "unknown authority", untrust: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tlsServer(t, func(c *tls.Config) {
				c.MinVersion, c.MaxVersion = tt.versions[0], tt.versions[1]
			})
			c := newClient(t, s.URL, WithRetry(0))
			if !tt.untrust {
				trust(t, c, s)
			}
			_, err := c.Do(t.Context(), Cmd("INCR", "k"))
			if tt.ok != (err == nil) || !tt.ok && !SafeToRetry(err) {
				t.Errorf("got %v, SafeToRetry %v", err, SafeToRetry(err))
			}
			if tt.untrust && !strings.Contains(fmt.Sprint(err), "are root certificates installed here?") {
				t.Errorf("an unknown authority: %v", err)
			}
		})
	}
}

func TestTLSChecksTheHostName(t *testing.T) {
	s := tlsServer(t, nil)
	// The certificate of net/http/httptest is for 127.0.0.1, ::1 and
	// example.com.
	t.Setenv("HTTPS_PROXY", connectProxy(t, map[string]string{
		"example.com:443": s.Listener.Addr().String(), "db.example.test:443": s.Listener.Addr().String(),
	}).url)
	_, err := newTLSClient(t, "https://example.com", s, WithRetry(0)).Do(t.Context(), Cmd("PING"))
	if err != nil {
		t.Errorf("the right name: %v", err)
	}
	_, err = newTLSClient(t, testURL, s, WithRetry(0)).Do(t.Context(), Cmd("PING"))
	if err == nil || !SafeToRetry(err) {
		t.Errorf("a certificate of another name: %v, want an error, safe to retry", err)
	}
}

// newClient makes a client over the default transport.
func newClient(t *testing.T, url string, opts ...Option) *Client {
	t.Helper()
	c, err := New(url, testToken, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

// newTLSClient makes a client that accepts the certificate of s.
func newTLSClient(t *testing.T, url string, s *httptest.Server, opts ...Option) *Client {
	t.Helper()
	c := newClient(t, url, opts...)
	trust(t, c, s)
	return c
}
