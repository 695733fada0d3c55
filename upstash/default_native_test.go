//go:build !wasm

package upstash

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// setProxy sets the environment's proxies.
func setProxy(t *testing.T, secure, plain, except string) {
	t.Helper()
	for name, value := range map[string]string{"HTTPS_PROXY": secure, "HTTP_PROXY": plain, "NO_PROXY": except} {
		t.Setenv(name, value)
		t.Setenv(strings.ToLower(name), value)
	}
}

// TestProxyOfTheEnvironment: the native transport uses no proxy, and must not go
// around one. A loopback host never has a proxy, however it is written: over
// http:// the token would go there in clear text.
func TestProxyOfTheEnvironment(t *testing.T) {
	const proxy, bad = "http://user:hunter@proxy.test:8080", "http://user:hunter%ss@proxy.test:8080"
	for _, tt := range []struct {
		name, secure, plain, except, url string
		want                             error
	}{
		{"https", proxy, "", "", testURL, ErrProxy},
		{"http", "", proxy, "", "http://db.example.test", ErrProxy},
		{"SOCKS", "socks5://proxy.test", "", "", testURL, ErrProxy},
		{"without scheme", "proxy.test:8080", "", "", testURL, ErrProxy},
		{"cannot be parsed", bad, "", "", testURL, ErrProxy},
		{"unknown scheme", "gopher://proxy.test", "", "", testURL, ErrProxy},
		{"of http only", "", proxy, "", testURL, nil},
		{"of https only", proxy, "", "", "http://db.example.test", nil},
		{"excepted", proxy, "", "other.test, .example.test", testURL, nil},
		{"bad and excepted", bad, "", "db.example.test", testURL, nil},
		{"another host excepted", proxy, "", "other.test", testURL, ErrProxy},
		{"all excepted", proxy, "", "*", testURL, nil},
		{"none", "", "", "", testURL, nil},
		{"localhost", proxy, bad, "", "http://LocalHost:1", nil},
		{"127.0.0.1", proxy, bad, "", "http://127.0.0.1:1", nil},
		{"127.9.9.9", proxy, bad, "", "https://127.9.9.9", nil},
		{"::1", proxy, bad, "", "http://[::1]:1", nil},
	} {
		setProxy(t, tt.secure, tt.plain, tt.except)
		c, err := New(tt.url, testToken, WithInsecureHTTP())
		if err != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
		if err == nil {
			_ = c.Close()
		}
		c, err = New(tt.url, testToken, WithInsecureHTTP(), WithTransport(&fakeTransport{}))
		if err != nil {
			t.Errorf("%s: with a transport of its own: %v", tt.name, err)
		} else {
			_ = c.Close()
		}
	}
	if text := ErrProxy.Error(); !strings.Contains(text, "WithTransport(httptransport.New(nil))") || !SafeToRetry(ErrProxy) {
		t.Errorf("%s: safe to retry %v", text, SafeToRetry(ErrProxy))
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
	for url, right := range map[string]bool{"https://example.com": true, testURL: false} {
		c := newTLSClient(t, url, s, WithRetry(0))
		c.transport.(*fasthttpTransport).dialer.Open = func(context.Context, string, string) (net.Conn, error) {
			return net.Dial("tcp", s.Listener.Addr().String())
		}
		_, err := c.Do(t.Context(), Cmd("PING"))
		if right != (err == nil) || !right && !SafeToRetry(err) {
			t.Errorf("%s: %v", url, err)
		}
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
