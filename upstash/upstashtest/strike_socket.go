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
)

// What follows takes the connection from net/http, which would see to it that
// all is right.

// seize returns the connection, for the caller to write to and then to leave
// to holdSocket. It ends the handler if there is none to take.
func (s *Server) seize(w http.ResponseWriter) net.Conn {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return conn
}

// holdSocket reads until the client closes the connection or sends something,
// or the server closes.
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

// onWire is an answer as it is sent, with more header lines.
func (s *Server) onWire(a answer, more string) []byte {
	var b bytes.Buffer
	body := a.body.bytes()
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s",
		a.status, http.StatusText(a.status), a.contentType, len(body), more)
	if a.syncToken != "" {
		fmt.Fprintf(&b, "%s: %s\r\n", headerSyncToken, a.syncToken)
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

// closes announces the end of the connection in the given words.
func (s *Server) closes(w http.ResponseWriter, a answer, connection string) {
	text := s.onWire(a, "Connection: "+connection+"\r\n")
	conn := s.seize(w)
	_, _ = conn.Write(text)
	s.holdSocket(conn)
}

// lateExec hangs up, and runs the commands when nobody waits for them any more.
func (s *Server) lateExec(w http.ResponseWriter, q request, by time.Duration) {
	conn := s.seize(w)
	defer s.conns.track(conn, http.StateClosed)
	_ = conn.Close()
	s.pause(context.Background(), by)
	_, _ = s.run(context.Background(), q, Fault{})
}

// refuseEarly answers while the body may still be on its way. It reads none of
// it, and so cannot see the client close: the connection ends with the server.
func (s *Server) refuseEarly(w http.ResponseWriter) {
	text := s.onWire(*encoding{}.refuse(http.StatusRequestEntityTooLarge,
		tooLarge(s.cfg.maxRequest, s.cfg.maxRequest+1)), "Connection: close\r\n")
	conn := s.seize(w)
	defer s.conns.track(conn, http.StateClosed)
	defer conn.Close()
	_, _ = conn.Write(text)
	<-s.closing
}

// bundle is a connection whose writes can be held back, to leave together.
type bundle struct {
	net.Conn

	mu      sync.Mutex
	holding bool
	held    []byte
}

func (b *bundle) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.holding {
		b.held = append(b.held, p...)
		return len(p), nil
	}
	return b.Conn.Write(p)
}

// holdBack makes the writes to a connection of this server wait for release.
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
