//go:build unix

package conn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// talkative counts what is written to a socket, and knows that it was closed.
type talkative struct {
	net.Conn
	writes, closes int
}

func (s *talkative) Write(p []byte) (int, error) {
	s.writes++
	return s.Conn.Write(p)
}

func (s *talkative) Close() error {
	s.closes++
	return s.Conn.Close()
}

// TestCloseSaysNothing: what TLS would write at the end blocks if the peer does
// not read.
func TestCloseSaysNothing(t *testing.T) {
	for _, l := range layerings {
		c, _ := layered(t, l.layers, l.version)
		socket := &talkative{Conn: c.socket.Conn}
		c.socket.Conn = socket
		if c.Close(); socket.writes != 0 || socket.closes != 1 {
			t.Errorf("%s: %d writes, %d closes", l.name, socket.writes, socket.closes)
		}
	}
}

func TestNoSuchHost(t *testing.T) {
	d := NewDialer("db.test", "443", true)
	cause := &net.DNSError{Err: "no such host", Name: "db.test", IsNotFound: true}
	d.Lookup = func(context.Context, string, string) ([]netip.Addr, error) { return nil, cause }
	_, err := d.Dial(t.Context())
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), "is the URL right, does the database still exist?") {
		t.Errorf("got %v", err)
	}
	t.Setenv("HTTPS_PROXY", "http://proxy.test:1")
	lookup := d.Lookup
	d = NewDialer("db.test", "443", true)
	d.Lookup = lookup
	_, err = d.Dial(t.Context())
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), "HTTPS_PROXY") || strings.Contains(err.Error(), "database") {
		t.Errorf("the name of a proxy: got %v", err)
	}
}

func TestPermanent(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&net.DNSError{IsNotFound: true}, true},
		{&net.DNSError{IsTimeout: true}, false},
		{&net.DNSError{IsTemporary: true}, false},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, true},
		{errBadProxy, true},
		{errProxyAuth, true},
		{errRefused, false},
		{context.DeadlineExceeded, false},
	} {
		if got := Permanent(fmt.Errorf("wrapped: %w", tt.err)); got != tt.want {
			t.Errorf("%v: %v", tt.err, got)
		}
	}
}
