package upstashtest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// counted counts the reads of a connection.
type counted struct {
	net.Conn
	reads atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	c.reads.Add(1)
	return c.Conn.Read(p)
}

// dial opens a connection to s, over TLS if s has it.
func dial(t *testing.T, s *Server) (socket *counted, conn net.Conn) {
	t.Helper()
	_, addr, _ := strings.Cut(s.URL, "://")
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	_ = raw.SetDeadline(time.Now().Add(time.Minute))
	socket = &counted{Conn: raw}
	if s.CertPool() == nil {
		return socket, socket
	}
	return socket, tls.Client(socket, &tls.Config{RootCAs: s.CertPool(), ServerName: "127.0.0.1"})
}

func send(t *testing.T, s *Server, conn io.Writer, body string, length int) {
	t.Helper()
	_, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
		"Content-Length: %d\r\n\r\n%s", s.Token, length, body)
	if err != nil {
		t.Fatal(err)
	}
}

const incrN = `["INCR","n"]`

// TestTwiceArrivesAtOnce reads both answers from the socket at once. Over TLS
// the second one then waits in the TLS layer. A client sees it neither in its
// own buffer nor at the socket.
func TestTwiceArrivesAtOnce(t *testing.T) {
	for _, opts := range [][]Option{nil, {WithTLS()}} {
		s := NewServer(t, opts...)
		s.Inject(Fault{}, Twice(0))
		socket, conn := dial(t, s)
		send(t, s, conn, incrN, len(incrN)) // its answer follows the rest of the handshake
		if _, err := conn.Read(make([]byte, 64<<10)); err != nil {
			t.Fatal(err)
		}
		send(t, s, conn, incrN, len(incrN))
		buf := make([]byte, 64<<10)
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		before := socket.reads.Load()
		if bytes.Count(buf[:n], []byte("HTTP/1.1 200")) == 1 {
			m, err := conn.Read(buf[n:])
			if err != nil {
				t.Fatal(err)
			}
			n += m
		}
		if got := bytes.Count(buf[:n], []byte(`{"result":2}`)); got != 2 {
			t.Errorf("tls=%v: %d answers in the first packet, want 2", len(opts) > 0, got)
		}
		if socket.reads.Load() != before {
			t.Errorf("tls=%v: %d more reads for the second answer, want none", len(opts) > 0, socket.reads.Load()-before)
		}
	}
}

// TestClosesAnswersNoMore sends a second request after the server announced the
// end of the connection.
func TestClosesAnswersNoMore(t *testing.T) {
	s := NewServer(t)
	s.Inject(Closes("keep-alive, CLOSE"))
	_, conn := dial(t, s)
	r := bufio.NewReader(conn)
	send(t, s, conn, incrN, len(incrN))
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(resp.Body); string(body) != `{"result":1}` || err != nil {
		t.Errorf("got %s, %v, want a result of 1", body, err)
	}
	if !resp.Close {
		t.Error("the answer has no Connection: close, want one")
	}
	send(t, s, conn, incrN, len(incrN))
	if b, err := r.ReadByte(); err == nil {
		t.Errorf("a request on a closing connection: an answer that begins with %q, want none", b)
	}
	if v, err := s.Exec("GET", "n"); v != "1" || err != nil {
		t.Errorf("GET after a request on a closing connection: %v, %v, want 1", v, err)
	}
}

// TestEarlyRefusalAnswersBeforeTheBody announces a body and sends none of it.
func TestEarlyRefusalAnswersBeforeTheBody(t *testing.T) {
	s := NewServer(t)
	s.Inject(EarlyRefusal())
	_, conn := dial(t, s)
	send(t, s, conn, "", 1<<20)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a body over the limit: status %d, want 413", resp.StatusCode)
	}
	s.InjectFunc(func(n int64, _ RequestInfo) Fault {
		if n == 1 {
			return EarlyRefusal()
		}
		return Fault{}
	})
	for _, want := range []int{200, 413, 200} { // from InjectFunc it strikes the next request
		if got := do(t, s, call{body: incrN}); got.status != want {
			t.Errorf("status %d, want %d", got.status, want)
		}
	}
}

func TestInterimAnswersAreCounted(t *testing.T) {
	s := NewServer(t)
	s.Inject(Interim(7))
	_, conn := dial(t, s)
	send(t, s, conn, incrN, len(incrN))
	r := bufio.NewReader(conn)
	for i := range 8 {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.HasPrefix(line, "HTTP/1.1 103 "); got != (i < 7) {
			t.Fatalf("answer %d begins with %q, want status 103 in the first seven alone", i, line)
		}
		for line != "\r\n" {
			if line, err = r.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
	}
}
