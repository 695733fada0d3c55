package upstashtest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

// connections counts the open connections. Close waits until the goroutine of
// each has ended. The zero value is ready.
type connections struct{ sync.WaitGroup }

// track is an http.Server's ConnState hook. Of a connection that a fault takes
// from the server, the fault reports the end.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.Add(1)
	case http.StateIdle:
		handle(conn, false)
	case http.StateClosed:
		c.Done()
	}
}

// certificate is as in net/http/httptest, for the loopback addresses.
type certificate struct {
	pairs []tls.Certificate
	pool  *x509.CertPool
}

func newCertificate() *certificate {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return &certificate{s.TLS.Certificates, pool}
}

// wrap makes l speak TLS. It does not offer HTTP/2: a fault needs its
// connection for itself.
func (c *certificate) wrap(l net.Listener) net.Listener {
	return tls.NewListener(l, &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: c.pairs,
		NextProtos:   []string{"http/1.1"},
	})
}

// plainConn is a connection below TLS, if that is spoken. It answers in JSON what
// no handler sees.
type plainConn struct {
	net.Conn
	handled atomic.Bool   // a handler has the request: what is written is its answer
	held    *bytes.Buffer // collects what is written; nil if nothing is held back
}

func (c *plainConn) Write(p []byte) (int, error) {
	if head, reason, ok := bytes.Cut(p, []byte(refusedByHTTP)); ok && !c.handled.Load() {
		return len(p), c.refuse(head, reason)
	}
	if c.held != nil {
		return c.held.Write(p)
	}
	return c.Conn.Write(p)
}

// connKey is the key of a connection in the context of its requests.
type connKey struct{}

// handle notes that a handler has the request of a connection, or that its
// answer is complete. It does nothing under TLS.
func handle(conn any, has bool) {
	if c, ok := conn.(*plainConn); ok {
		c.handled.Store(has)
	}
}

// refusedByHTTP stands between the status and the reason when net/http itself
// refuses a request, such as one for /get/%zz or with a header of 2 MB.
const refusedByHTTP = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// refuse sends such an answer in JSON. It has no effect under TLS: there c
// carries encrypted bytes, and net/http needs the *tls.Conn itself, not a
// connection around it.
func (c *plainConn) refuse(head, reason []byte) error {
	body := wire.Encoding{}.Failure("ERR the request is no valid HTTP: " + string(reason))
	_, err := fmt.Fprintf(c.Conn, "%s\r\nContent-Type: %s\r\nContent-Length: %d\r\n"+
		"Access-Control-Allow-Origin: *\r\nConnection: close\r\n\r\n%s", head, wire.TypeJSON, len(body), body)
	return err
}

// holdBack makes a connection of this server collect its writes. release sends
// them together.
func holdBack(conn net.Conn) (release func()) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	c := conn.(*plainConn)
	c.held = new(bytes.Buffer)
	return func() {
		_, _ = c.Conn.Write(c.held.Bytes())
		c.held = nil
	}
}

// plainListener makes a plainConn of each connection.
type plainListener struct{ net.Listener }

func (l plainListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &plainConn{Conn: conn}, nil
}
