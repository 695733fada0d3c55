//go:build !wasm

package conn

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// TestQuestion: the commonest mistakes on a laptop have errors with a question.
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
