package upstashtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

// connections holds the open connections. Close waits until the goroutine of
// each has ended. The zero value is ready.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
	idle chan struct{} // closed when open becomes empty; nil if nothing waits
}

// track is an http.Server's ConnState hook.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if c.open == nil {
			c.open = make(map[net.Conn]struct{})
		}
		c.open[conn] = struct{}{}
	case http.StateIdle:
		handle(conn, false)
	case http.StateClosed:
		delete(c.open, conn)
		if len(c.open) == 0 && c.idle != nil {
			close(c.idle)
			c.idle = nil
		}
	}
}

// wait returns when no connection is open. No new one may be opened meanwhile.
func (c *connections) wait() {
	c.mu.Lock()
	if len(c.open) == 0 {
		c.mu.Unlock()
		return
	}
	c.idle = make(chan struct{})
	idle := c.idle
	c.mu.Unlock()
	<-idle
}

// certificate is that of net/http/httptest, for the loopback addresses.
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

// bundle is a connection that can hold writes back and send them together, and
// that answers in JSON what no handler sees.
type bundle struct {
	net.Conn

	mu      sync.Mutex
	handled bool // a handler has the request: what is written is its answer
	holding bool
	held    []byte
}

func (b *bundle) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if head, reason, ok := bytes.Cut(p, []byte(refusedByHTTP)); ok && !b.handled {
		return len(p), b.refuse(head, reason)
	}
	if b.holding {
		b.held = append(b.held, p...)
		return len(p), nil
	}
	return b.Conn.Write(p)
}

// bundleKey is the key of a connection's bundle in the context of its requests.
type bundleKey struct{}

func withBundle(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, bundleKey{}, conn)
}

// handle notes that a handler has the request of a connection, or that its
// answer is complete. It does nothing under TLS.
func handle(conn any, has bool) {
	if b, ok := conn.(*bundle); ok {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.handled = has
	}
}

// refusedByHTTP stands between the status and the reason when net/http itself
// refuses a request, such as one for /get/%zz or with a header of 2 MB.
const refusedByHTTP = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// refuse sends such an answer in JSON. It has no effect under TLS: there b
// carries encrypted bytes, and net/http needs the *tls.Conn itself, not a
// connection around it.
func (b *bundle) refuse(head, reason []byte) error {
	body := wire.Encoding{}.Failure("ERR the request is no valid HTTP: " + string(reason))
	_, err := fmt.Fprintf(b.Conn, "%s\r\nContent-Type: %s\r\nContent-Length: %d\r\n"+
		"Access-Control-Allow-Origin: *\r\nConnection: close\r\n\r\n%s", head, wire.TypeJSON, len(body), body)
	return err
}

// holdBack makes a connection of this server collect its writes. release sends
// them.
func holdBack(conn net.Conn) (release func()) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	b := conn.(*bundle)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holding = true
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.holding = false
		_, _ = b.Conn.Write(b.held)
	}
}

// bundler makes a bundle of each connection.
type bundler struct{ net.Listener }

func (l bundler) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &bundle{Conn: conn}, nil
}
