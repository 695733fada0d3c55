//go:build !wasm

package upstash

import (
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
