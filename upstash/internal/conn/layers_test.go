//go:build !wasm

package conn

import (
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"syscall"
	"testing"
)

// held collects what TLS writes. The test sends it in pieces.
type held struct {
	net.Conn
	hold bool
	out  []byte
}

func (h *held) Write(p []byte) (int, error) {
	if !h.hold {
		return h.Conn.Write(p)
	}
	h.out = append(h.out, p...)
	return len(p), nil
}

// server is the other end of a connection.
type server struct {
	top  net.Conn
	held *held
}

// send writes each text as its own record, and all in one segment, except for
// the last keep bytes.
func (s *server) send(t *testing.T, keep int, texts ...string) {
	t.Helper()
	s.held.hold, s.held.out = true, nil
	for _, text := range texts {
		if _, err := io.WriteString(s.top, text); err != nil {
			t.Fatal(err)
		}
	}
	s.held.hold = false
	if _, err := s.held.Conn.Write(s.held.out[:len(s.held.out)-keep]); err != nil {
		t.Fatal(err)
	}
}

// layered returns both ends of a connection with the given number of layers of
// TLS.
func layered(t testing.TB, layers int, version uint16) (*Conn, *server) {
	t.Helper()
	near, far := pair(t)
	s := &server{held: &held{Conn: far}}
	s.top = s.held
	pool := httptest.NewUnstartedServer(nil)
	pool.StartTLS()
	defer pool.Close()
	for range layers {
		done := make(chan error, 1)
		server := tls.Server(s.top, &tls.Config{Certificates: pool.TLS.Certificates, MaxVersion: version})
		go func() { done <- server.Handshake() }()
		if err := near.addTLS(&tls.Config{InsecureSkipVerify: true}); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		s.top = server
	}
	return near, s
}

var layerings = []struct {
	name    string
	layers  int
	version uint16
}{
	{"plain", 0, 0},
	{"TLS 1.2", 1, tls.VersionTLS12},
	{"TLS 1.3", 1, tls.VersionTLS13},
	{"TLS in TLS", 2, tls.VersionTLS13},
}

// counted counts how often package net asks for a raw read to be tried.
type counted struct {
	syscall.RawConn
	tries int
}

func (c *counted) Read(try func(uintptr) bool) error {
	return c.RawConn.Read(func(fd uintptr) bool {
		c.tries++
		return try(fd)
	})
}
