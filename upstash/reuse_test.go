//go:build !wasm

package upstash

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// TestReuse: a connection is kept only if the next answer on it will certainly be
// to the next request. TestOddAnswers has what says so in an answer.
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
		{"server closes", strings.Replace(answer, "Content", "Connection: close\r\nContent", 1), false, false},
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
			tr := transportOver(t, 1, func() net.Conn { return socket })
			var resp Response
			err := tr.RoundTrip(ctx, &Request{URL: "http://localhost/", Body: []byte("[]"), MaxResponse: 10}, &resp)
			if err != nil || string(resp.Body) != "{}" {
				t.Errorf("got %q, %v, want {}", resp.Body, err)
			}
			if socket.closed == tt.keep {
				t.Errorf("closed %v; want kept %v", socket.closed, tt.keep)
			}
		})
	}
}

// brokenConn fails to write. Reading it returns what the peer said before that.
type brokenConn struct {
	scriptedConn
	said error
}

func (c *brokenConn) Write([]byte) (int, error) { return 0, syscall.EPIPE }
func (c *brokenConn) Read([]byte) (int, error)  { return 0, c.said }

// TestAlertBeforeTheReset: a server may end TLS and hang up before the request
// is written. Its alert says more than the broken pipe: another attempt would
// end the same way.
func TestAlertBeforeTheReset(t *testing.T) {
	alert := &net.OpError{Op: "remote error", Err: tls.AlertError(116)} // certificate required
	for _, size := range []int{10, 10 * smallBody} {
		for said, permanent := range map[error]bool{alert: true, io.EOF: false} {
			tr := transportOver(t, 1, func() net.Conn { return &brokenConn{said: said} })
			req := &Request{URL: "http://localhost/", Body: make([]byte, size), MaxResponse: 10}
			err := tr.RoundTrip(t.Context(), req, new(Response))
			if !isNotSent(err) || isPermanent(err) != permanent || errors.Is(err, said) != permanent {
				t.Errorf("%d bytes, %v: got %v, permanent %v", size, said, err, isPermanent(err))
			}
		}
	}
}

// TestAnswerBeforeTheReset: a server may refuse a request for its size and hang
// up with most of it unread, which resets the connection. The client must still
// return the server's answer, and not an error of a request never sent.
func TestAnswerBeforeTheReset(t *testing.T) {
	const body = `{"error":"ERR max request size exceeded"}`
	addr := testenv.Serve(t, func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, 1000))
		_, _ = io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 41\r\n\r\n"+body)
	})
	_, err := newClient(t, "http://"+addr, WithRetry(0)).
		Do(t.Context(), Cmd("SET", "k", strings.Repeat("x", 24<<20)))
	var server *Error
	if !errors.As(err, &server) || server.StatusCode != 413 || server.Code() != "ERR" {
		t.Errorf("got %v, want the server's 413", err)
	}
}

// TestCommandRunsOnceAfterTheServerHungUp is about a frozen process: the server
// hangs up while the client is idle, and the next INCR must run exactly once.
func TestCommandRunsOnceAfterTheServerHungUp(t *testing.T) {
	var n, conns atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		answerOne(w, r)
	}, func(net.Conn) { conns.Add(1) })
	var socket net.Conn
	tr := transportOver(t, 1, func() net.Conn {
		socket = dial(t, s)
		return socket
	})
	c := newClient(t, s.URL, WithRetry(0), WithTransport(tr))
	for i := range int64(5) {
		if _, err := c.Do(t.Context(), Cmd("INCR", "k")); err != nil || n.Load() != i+1 || conns.Load() != i+1 {
			t.Fatalf("call %d: %v; %d executed over %d connections", i, err, n.Load(), conns.Load())
		}
		s.CloseClientConnections()
		testenv.Arrived(t, socket)
	}
}

// TestEarlySuccessIsNotTheAnswer: a success that comes before the server has
// the whole request belongs to another request, also if the server then reads
// the rest.
func TestEarlySuccessIsNotTheAnswer(t *testing.T) {
	for name, readsOn := range map[string]bool{"hangs up": false, "reads on": true} {
		t.Run(name, func(t *testing.T) { testEarlySuccess(t, readsOn) })
	}
}

func testEarlySuccess(t *testing.T, readsOn bool) {
	returned := make(chan struct{})
	addr := testenv.Serve(t, func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, 1000))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"result\":\"OK\"}")
		if readsOn {
			select {
			case <-returned:
			case <-time.After(2 * time.Second): // a client without early answers may wait for one
			}
			_, _ = io.Copy(io.Discard, c)
		}
	})
	client := newClient(t, "http://"+addr, WithRetry(0))
	_, err := client.Do(t.Context(), Cmd("SET", "k", strings.Repeat("x", 24<<20)))
	close(returned)
	var call *CallError
	if !errors.As(err, &call) || !SafeToRetry(err) || call.StatusCode != 0 {
		t.Errorf("got %v, want an error of a request that was never sent whole", err)
	}
}
