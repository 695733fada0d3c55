//go:build !wasm

package conn

import (
	"context"
	"io"
	"net"
	"os"
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

// TestUnusableProxyIsNoWayAroundIt: nothing is dialled, and the error does not
// quote the setting.
func TestUnusableProxyIsNoWayAroundIt(t *testing.T) {
	for _, setting := range []string{
		"http://user:hunter%ss@proxy.test:8080", "http://user:hunter#2@proxy.test:8080",
		"http://user:12#hunter@proxy.test:8080", "http://user:hunter/2@proxy.test:8080",
		"http://user:12/hunter@proxy.test:8080", "http://user:hunter?2@proxy.test:8080",
		"http://user:12?hunter@proxy.test:8080", "http://user:hunter 2@proxy.test:8080",
		"user:hunter%ss@proxy.test:8080", "http://user:hunter@", "http://user:hunter@:8080",
		"gopher://user:hunter@proxy.test:70", "http://user:hunter@proxy.test:x", "://hunter",
	} {
		for secure, variable := range map[bool]string{true: "set HTTPS_PROXY to", false: "set HTTP_PROXY to"} {
			t.Setenv("HTTPS_PROXY", setting)
			t.Setenv("HTTP_PROXY", setting)
			d := NewDialer("db.test", "443", secure)
			d.Open = func(_ context.Context, _, addr string) (net.Conn, error) {
				t.Errorf("%s: dialled %s", setting, addr)
				return nil, context.Canceled
			}
			_, err := d.Dial(t.Context())
			if err == nil || !strings.Contains(err.Error(), variable) ||
				strings.Contains(err.Error(), "hunter") || !Permanent(err) {
				t.Errorf("%s: got %v", setting, err)
			}
		}
	}
}

func TestWhoseProxy(t *testing.T) {
	for _, tt := range []struct {
		setting, noProxy, host string
		want                   string // "" to dial straight
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
		t.Setenv("HTTPS_PROXY", tt.setting)
		t.Setenv("NO_PROXY", tt.noProxy)
		d := NewDialer(tt.host, "443", true)
		got := ""
		if d.proxy != nil {
			got = d.proxy.String()
		}
		if got != tt.want || d.proxyErr != nil {
			t.Errorf("%+v: got %q, %v", tt, got, d.proxyErr)
		}
	}
}

// TestNamesTheVariable: an error names the variable that has the proxy, and not
// one that has no effect.
func TestNamesTheVariable(t *testing.T) {
	const set = "http://user:hunter@proxy.test:1"
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errRefused}
	for _, tt := range []struct {
		https, http, small string // HTTPS_PROXY, HTTP_PROXY and http_proxy
		secure             bool
		want, ofHTTP       string // ofHTTP if net/http dialled
	}{
		{"", set, "", false, "HTTP_PROXY", "HTTP_PROXY"},
		{set, set, "", false, "HTTP_PROXY", "HTTPS_PROXY"},
		{set, set, "", true, "HTTPS_PROXY", "HTTPS_PROXY"},
		{set, "", "", true, "HTTPS_PROXY", "HTTPS_PROXY"},
		{"", "", set, false, "http_proxy", "http_proxy"},
		{"", "http://other.test", set, false, "http_proxy", "http_proxy"},
	} {
		for name, value := range map[string]string{
			"HTTPS_PROXY": tt.https, "https_proxy": "", "HTTP_PROXY": tt.http, "http_proxy": tt.small,
		} {
			t.Setenv(name, value)
		}
		if os.Getenv("http_proxy") != tt.small || os.Getenv("HTTP_PROXY") != tt.http {
			continue // on Windows they are one
		}
		d := dialing(t, "db.test", tt.secure, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1000))
			_, _ = io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
		})
		_, err := d.Dial(t.Context())
		if err == nil || !strings.Contains(err.Error(), "check them in "+tt.want+", ") || !Permanent(err) {
			t.Errorf("%+v: 407: got %v", tt, err)
		}
		d.Open = func(context.Context, string, string) (net.Conn, error) { return nil, refused }
		_, err = d.Dial(t.Context())
		if q := Question(err); q != "is "+tt.want+" right, does the proxy run?" {
			t.Errorf("%+v: refused: %v, question %q", tt, err, q)
		}
		ofHTTP := Question(&net.OpError{Op: "proxyconnect", Net: "tcp", Err: refused})
		if ofHTTP != "is "+tt.ofHTTP+" right, does the proxy run?" {
			t.Errorf("%+v: of net/http: question %q", tt, ofHTTP)
		}
	}
}

// TestAnswerToConnect has proxies accept, refuse, or answer too much.
func TestAnswerToConnect(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://user:hunter@proxy.test:8080")
	filler := func(n int) string {
		return strings.Repeat("X-Filler: "+strings.Repeat("x", 88)+"\r\n", n/100)
	}
	for _, tt := range []struct {
		name, answer, want string // want is "" for success
		permanent          bool
	}{
		{"established", "HTTP/1.1 200 Connection established\r\n\r\n", "", false},
		{"15 KB", "HTTP/1.1 200 OK\r\n" + filler(15_000) + "\r\n", "", false},
		{"17 KB", "HTTP/1.1 200 OK\r\n" + filler(17_000) + "\r\n", "16 KiB", false},
		{"not HTTP", "hunter2\r\n\r\n", "not HTTP/1.1", false},
		{"cut short", "HTTP/1.1 200 OK\r\n", "closed the connection before it answered CONNECT", false},
		{"closed", "", "closed the connection before it answered CONNECT", false},
		{"403", "HTTP/1.1 403 Forbidden\r\n\r\n", "status 403", false},
		{"407", "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "refused the user and password", true},
		{"data at once", "HTTP/1.1 200 OK\r\n\r\nx", "before the tunnel", false},
	} {
		d := dialing(t, "db.test", false, func(c net.Conn) {
			buf := make([]byte, 1000)
			_, _ = c.Read(buf)
			_, _ = io.WriteString(c, tt.answer)
		})
		c, err := d.Dial(t.Context())
		if tt.want == "" {
			if err != nil || !c.clean() {
				t.Errorf("%s: %v, want a clean connection", tt.name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "proxy: ") ||
			strings.Contains(err.Error(), "hunter") || Permanent(err) != tt.permanent {
			t.Errorf("%s: got %v, permanent %v", tt.name, err, Permanent(err))
		}
	}
}

// TestSOCKSProxyDenies has SOCKS5 proxies accept, deny the user and the host,
// and hang up.
func TestSOCKSProxyDenies(t *testing.T) {
	const none, password = "\x05\x00", "\x05\x02"
	const reached = "\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00"
	for _, tt := range []struct {
		name, user string
		answers    []string
		want       string // "" for success
		permanent  bool
	}{
		{"takes all", "", []string{none, reached}, "", false},
		{"takes all", "user:hunter@", []string{none, reached}, "", false},
		{"takes the password", "user:hunter@", []string{password, "\x01\x00", reached}, "", false},
		{"wants a password", "", []string{"\x05\xff"}, "set HTTP_PROXY to socks5://user:", true},
		{"wants Kerberos", "user:hunter@", []string{"\x05\xff"}, "set HTTP_PROXY to one that", true},
		{"other password", "user:hunter@", []string{password, "\x01\x01"}, "check them in HTTP_PROXY", true},
		{
			"denies the host", "user:hunter@",
			[]string{password, "\x01\x00", "\x05\x02\x00\x01"},
			"not allowed by ruleset", false,
		},
		{"denies the host", "", []string{none, "\x05\x02\x00\x01"}, "not allowed by ruleset", false},
		{"hangs up", "user:hunter@", []string{password}, "closed the connection before it answered SOCKS5", false},
		{"is HTTP", "user:hunter@", []string{"HTTP"}, "unexpected protocol version", false},
	} {
		t.Setenv("HTTP_PROXY", "socks5://"+tt.user+"proxy.test:1080")
		d := dialing(t, "db.test", false, func(c net.Conn) {
			buf := make([]byte, 1000)
			for _, answer := range tt.answers {
				_, _ = c.Read(buf)
				_, _ = io.WriteString(c, answer)
			}
			_, _ = c.Read(buf)
		})
		c, err := d.Dial(t.Context())
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			c.Close()
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "proxy: ") ||
			strings.Contains(err.Error(), "hunter") || Permanent(err) != tt.permanent {
			t.Errorf("%s: got %v, permanent %v", tt.name, err, Permanent(err))
		}
	}
}
