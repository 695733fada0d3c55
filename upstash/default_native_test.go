//go:build !wasm

package upstash

import (
	"io"
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
		{"cannot be parsed", bad, "", "", testURL, ErrProxy},
		{"of http only", "", proxy, "", testURL, nil},
		{"of https only", proxy, "", "", "http://db.example.test", nil},
		{"excepted", proxy, "", "other.test, .example.test", testURL, nil},
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

// newClient makes a client over the default transport.
func newClient(tb testing.TB, url string, opts ...Option) *Client {
	tb.Helper()
	c, err := New(url, testToken, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return c
}
