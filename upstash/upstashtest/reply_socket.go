package upstashtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

// The faults of this file break HTTP in ways net/http does not allow. They take
// the connection from it.

// seize takes the connection from net/http. It ends the handler if that fails.
// In the end the caller closes the connection and tells conns.track, or leaves
// both to holdSocket.
func (s *Server) seize(w http.ResponseWriter) net.Conn {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return conn
}

// holdSocket waits until the client closes the connection or sends something,
// or the server closes. Then it closes the connection.
func (s *Server) holdSocket(conn net.Conn) {
	defer s.conns.track(conn, http.StateClosed)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-s.closing:
		case <-over:
		}
		_ = conn.Close()
	}()
	_, _ = conn.Read(make([]byte, 1))
	close(over)
	<-ended
}

// onWire returns the bytes of an answer, with more header lines, and counts it
// as sent.
func (s *Server) onWire(a answer, more string) []byte {
	var b bytes.Buffer
	body := a.body.Bytes()
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s",
		a.status, http.StatusText(a.status), a.contentType, len(body), more)
	if a.syncToken != "" {
		fmt.Fprintf(&b, "%s: %s\r\n", wire.HeaderSyncToken, a.syncToken)
	}
	b.WriteString("\r\n")
	b.Write(body)
	s.count.bytesOut.Add(int64(len(body)))
	return b.Bytes()
}

// twice sends the answer two times, in one packet or with a pause between.
func (s *Server) twice(w http.ResponseWriter, a answer, later time.Duration) {
	text := s.onWire(a, "")
	conn := s.seize(w)
	defer s.holdSocket(conn)
	release := func() {}
	if later == 0 {
		release = holdBack(conn)
	}
	_, _ = conn.Write(text)
	s.pause(context.Background(), later)
	_, _ = conn.Write(text)
	release()
}

// closes announces the end of the connection with this Connection header.
func (s *Server) closes(w http.ResponseWriter, a answer, connection string) {
	text := s.onWire(a, "Connection: "+connection+"\r\n")
	conn := s.seize(w)
	_, _ = conn.Write(text)
	s.holdSocket(conn)
}

// lateExec hangs up, waits and runs the commands.
func (s *Server) lateExec(w http.ResponseWriter, q request, by time.Duration) {
	conn := s.seize(w)
	defer s.conns.track(conn, http.StateClosed)
	_ = conn.Close()
	s.pause(context.Background(), by)
	_, _ = s.run(context.Background(), q, Fault{})
}

// refuseEarly answers while the client may still send the body. It does not
// read, so it cannot see the client hang up. It holds the connection until the
// server closes.
func (s *Server) refuseEarly(w http.ResponseWriter) {
	text := s.onWire(*refuse(wire.Encoding{}, http.StatusRequestEntityTooLarge,
		tooLarge(s.cfg.maxRequest, s.cfg.maxRequest+1)), "Connection: close\r\n")
	conn := s.seize(w)
	defer s.conns.track(conn, http.StateClosed)
	defer conn.Close()
	_, _ = conn.Write(text)
	<-s.closing
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
	body := wire.Encoding{}.Failure("ERR the request is no valid HTTP: " + string(reason)).Bytes()
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
