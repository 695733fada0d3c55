//go:build !wasm

package httptransport_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
)

// TestUnusableProxyIsNoWayAroundIt: if a proxy's password is not escaped, the
// requests must not bypass the proxy.
func TestUnusableProxyIsNoWayAroundIt(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://user:hunter%ss@proxy.test:8080")
	tr := httptransport.New(nil)
	defer tr.Close()
	c, err := upstash.New("https://db.example.test", "token", upstash.WithTransport(tr))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Do(t.Context(), upstash.Cmd("INCR", "k"))
	var call *upstash.CallError
	if !errors.As(err, &call) || call.Attempts != 1 || !upstash.SafeToRetry(err) ||
		!strings.Contains(err.Error(), "HTTPS_PROXY") || strings.Contains(err.Error(), "hunter") {
		t.Errorf("got %v", err)
	}
}

// TestProxyRefusesTheTunnel: the error is that of the native default. A missing
// password ends the call, because another attempt would miss it too.
func TestProxyRefusesTheTunnel(t *testing.T) {
	for _, tt := range []struct {
		user     string
		status   int
		want     string
		attempts int
	}{
		{"", 407, "proxy: the proxy wants a user and password (status 407): set HTTPS_PROXY to", 1},
		{"user:hunter@", 407, "proxy: the proxy refused the user and password of its URL (status 407)", 1},
		{"user:hunter@", 403, "proxy: CONNECT was answered with status 403", 2},
	} {
		p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
		}))
		t.Setenv("HTTPS_PROXY", strings.Replace(p.URL, "http://", "http://"+tt.user, 1))
		t.Setenv("https_proxy", "")
		tr := httptransport.New(nil)
		c, err := upstash.New("https://db.example.test", "token",
			upstash.WithTransport(tr), upstash.WithRetry(1))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Do(t.Context(), upstash.Cmd("INCR", "k"))
		var call *upstash.CallError
		if !errors.As(err, &call) || call.Attempts != tt.attempts || !upstash.SafeToRetry(err) ||
			!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%+v: got %v", tt, err)
		}
		_ = tr.Close()
		p.Close()
	}
}
