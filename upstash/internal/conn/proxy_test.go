//go:build !wasm

package conn

import (
	"context"
	"net"
	"net/url"
	"strings"
	"testing"
)

// dialing returns a dialer whose sockets are the near ends of pipes. serve gets
// the far ends.
func dialing(t *testing.T, host string, secure bool, serve func(net.Conn)) *Dialer {
	t.Helper()
	d := NewDialer(host, "443", secure)
	d.Open = func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			serve(far)
			_ = far.Close()
		}()
		t.Cleanup(func() {
			_ = near.Close()
			<-done
		})
		return near, nil
	}
	return d
}

// TestUnusableProxyIsNoWayAroundIt: the error does not quote the setting.
func TestUnusableProxyIsNoWayAroundIt(t *testing.T) {
	for _, setting := range []string{
		"http://user:hunter%ss@proxy.test:8080", "http://user:hunter#2@proxy.test:8080",
		"http://user:12#hunter@proxy.test:8080", "http://user:hunter/2@proxy.test:8080",
		"http://user:12/hunter@proxy.test:8080", "http://user:hunter?2@proxy.test:8080",
		"http://user:12?hunter@proxy.test:8080", "http://user:hunter 2@proxy.test:8080",
		"user:hunter%ss@proxy.test:8080", "http://user:hunter@", "http://user:hunter@:8080",
		"gopher://user:hunter@proxy.test:70", "http://user:hunter@proxy.test:x", "://hunter",
	} {
		for _, scheme := range []string{"https", "http"} {
			setProxy(t, setting, "")
			p, err := ProxyFor(&url.URL{Scheme: scheme, Host: "db.test:443"})
			if p != nil || err == nil || !strings.Contains(err.Error(), "HTTPS_PROXY") ||
				strings.Contains(err.Error(), "hunter") || !Permanent(err) {
				t.Errorf("%s: got %v, %v", setting, p, err)
			}
		}
	}
}

// setProxy sets the environment's proxy for both schemes.
func setProxy(t *testing.T, setting, except string) {
	t.Helper()
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		t.Setenv(name, setting)
	}
	t.Setenv("NO_PROXY", except)
	t.Setenv("no_proxy", except)
}

func TestWhoseProxy(t *testing.T) {
	for _, tt := range []struct {
		setting, noProxy, host string
		want                   string // "" for none
	}{
		{"http://proxy.test:1", "", "db.test", "http://proxy.test:1"},
		{"proxy.test:1", "", "db.test", "http://proxy.test:1"},
		{"http://user:a%23b@proxy.test", "", "db.test", "http://user:a%23b@proxy.test"},
		{"socks5h://proxy.test/", "", "db.test", "socks5h://proxy.test/"},
		{"http://proxy.test:1", "other.test,.test", "db.test", ""},
		{"http://proxy.test:1", "other.test", "db.test", "http://proxy.test:1"},
		{"http://bad%ss@x", "db.test", "db.test", ""},
		{"http://bad%ss@x", "", "127.0.0.1", ""},
		{"", "", "db.test", ""},
	} {
		setProxy(t, tt.setting, tt.noProxy)
		p, err := ProxyFor(&url.URL{Scheme: "https", Host: tt.host + ":443"})
		got := ""
		if p != nil {
			got = p.String()
		}
		if got != tt.want || err != nil {
			t.Errorf("%+v: got %q, %v", tt, got, err)
		}
	}
}

// TestProxyOfNode: fetch would go around the proxy of Node's environment, and the token
// with it.
func TestProxyOfNode(t *testing.T) {
	for _, tt := range []struct {
		scheme, secure, plain, except, uses string
		want                                bool
	}{
		{"https", "proxy.test", "", "", "", true},
		{"http", "", "proxy.test", "", "", true},
		{"https", "", "proxy.test", "", "", false},
		{"https", "proxy.test", "", "other.test, .db.example.test,,", "", true},
		{"https", "proxy.test", "", "other.test, .Example.test", "", false},
		{"https", "proxy.test", "", "db.example.test", "", false},
		{"https", "proxy.test", "", "*", "", false},
		{"https", "proxy.test", "", "", "1", false},
	} {
		for _, named := range []func(string) string{strings.ToUpper, strings.ToLower} {
			setProxy(t, "", "")
			t.Setenv(named("HTTPS_PROXY"), tt.secure)
			t.Setenv(named("HTTP_PROXY"), tt.plain)
			t.Setenv(named("NO_PROXY"), tt.except)
			t.Setenv("NODE_USE_ENV_PROXY", tt.uses)
			if got := proxyOfNode("db.example.test", tt.scheme == "https"); got != tt.want {
				t.Errorf("%+v, as %s: got %v", tt, named("proxy"), got)
			}
		}
	}
}
