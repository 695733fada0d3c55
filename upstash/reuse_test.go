//go:build unix

package upstash

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// scriptedConn answers the first read with what it holds.
type scriptedConn struct {
	answer       string
	beforeAnswer func(c *scriptedConn)
	deadline     chan struct{} // gets a value when a deadline is set
	closed       bool
}

func (c *scriptedConn) Write(p []byte) (int, error) { return len(p), nil }

func (c *scriptedConn) Read(p []byte) (int, error) {
	if c.beforeAnswer != nil {
		c.beforeAnswer(c)
	}
	n := copy(p, c.answer)
	if c.answer = c.answer[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (c *scriptedConn) Close() error {
	c.closed = true
	return nil
}

func (c *scriptedConn) SetDeadline(time.Time) error {
	c.deadline <- struct{}{}
	return nil
}

func (c *scriptedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *scriptedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *scriptedConn) SetReadDeadline(time.Time) error  { return nil }
func (c *scriptedConn) SetWriteDeadline(time.Time) error { return nil }

// TestReuse: a connection is kept only where it is certain that the next
// answer on it will be to the next request.
func TestReuse(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
	for _, tt := range []struct {
		name   string
		answer string
		cancel bool // as the answer arrives
		keep   bool
	}{
		{"whole answer", answer, false, true},
		{"bytes after it", answer + answer, false, false},
		{"server closes", strings.Replace(answer, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1), false, false},
		{"HTTP/1.0", strings.Replace(answer, "1.1", "1.0", 1), false, false},
		{"context ends", answer, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			socket := &scriptedConn{answer: tt.answer, deadline: make(chan struct{}, 1)}
			if tt.cancel {
				socket.beforeAnswer = func(c *scriptedConn) {
					cancel()
					<-c.deadline
				}
			}
			c := &conn{Conn: socket, socket: socket}
			newBuffers(c)
			tr := &fasthttpTransport{}
			tr.idle.put(c, time.Now())
			var resp Response
			err := tr.RoundTrip(ctx, &Request{URL: "http://localhost/", Body: []byte("[]"), MaxResponse: 10}, &resp)
			if err != nil || string(resp.Body) != "{}" {
				t.Errorf("%q, %v", resp.Body, err)
			}
			if kept := len(tr.idle.conns) == 1; kept != tt.keep || socket.closed == tt.keep {
				t.Errorf("kept %v, closed %v; want kept %v", kept, socket.closed, tt.keep)
			}
		})
	}
}

// TestAnswerBeforeTheReset: a server that refuses a request for its size may
// hang up with most of it unread, which resets the connection. Its answer is
// there all the same, and must be told from a request that was never sent.
func TestAnswerBeforeTheReset(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"error":"ERR max request size exceeded"}`
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.ReadFull(c, make([]byte, 1000))
		_, _ = io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 41\r\n\r\n"+body)
		_ = c.Close()
	}()
	_, err = newClient(t, "http://"+l.Addr().String(), WithRetry(0)).
		Do(t.Context(), Cmd("SET", "k", strings.Repeat("x", 24<<20)))
	var server *Error
	if !errors.As(err, &server) || server.StatusCode != 413 || server.Code() != "ERR" {
		t.Errorf("got %v, want the server's 413", err)
	}
	_ = l.Close()
	<-done
}
