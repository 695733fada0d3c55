package upstashtest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

// TestBrowsers checks what a browser needs to call the server from a page of
// another origin: an answer to its OPTIONS without a token, and a header that
// lets the page read any answer, even a refusal.
func TestBrowsers(t *testing.T) {
	s := NewServer(t)
	got := do(t, s, call{method: http.MethodOptions, path: "/pipeline", token: "-", header: header(
		"Origin", "https://example.com", "Access-Control-Request-Method", "POST",
		"Access-Control-Request-Headers", "authorization,content-type",
	)})
	if got.status != http.StatusNoContent || got.body != "" ||
		got.header.Get("Access-Control-Allow-Origin") != "*" ||
		got.header.Get("Access-Control-Allow-Headers") != "authorization,content-type" ||
		!strings.Contains(got.header.Get("Access-Control-Allow-Methods"), "POST") {
		t.Errorf("OPTIONS: got %d %q %v, want no body, and the headers and methods of a client allowed",
			got.status, got.body, got.header)
	}
	for _, c := range []call{{body: `["PING"]`}, {body: `["NOPE"]`}, {body: `["PING"]`, token: "nope"}} {
		got := do(t, s, c)
		if got.header.Get("Access-Control-Allow-Origin") != "*" ||
			!strings.Contains(got.header.Get("Access-Control-Expose-Headers"), wire.HeaderSyncToken) {
			t.Errorf("%s: header %v, want any origin and the sync token exposed", c.body, got.header)
		}
	}
}

// TestMalformedRequest sends requests refused by net/http itself. The answers
// are JSON like all others.
func TestMalformedRequest(t *testing.T) {
	s := NewServer(t)
	const most = 1<<20 + 4096 // bytes of a header that net/http reads
	long := "GET /get/k HTTP/1.1\r\nHost: x\r\nLong: "
	for head, want := range map[string]string{
		"GET /get/%zz HTTP/1.1\r\nHost: x\r\n\r\n":                          "400 Bad Request",
		"GET /get/k HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n":                 "400 Bad Request",
		"GET /get/k HTTP/1.1\r\nHost: x\r\nBad name: y\r\n\r\n":             "400 Bad Request",
		"GET /get/k HTTP/1.1\r\nHost: x\r\nName: \x01\r\n\r\n":              "400 Bad Request",
		"GET /get/k HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n": "501 Not Implemented",
		"GET /get/k HTTP/3.0\r\nHost: x\r\n\r\n":                            "505 HTTP Version Not Supported",
		long + strings.Repeat("x", most-len(long)):                          "431 Request Header Fields Too Large",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, head); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn)
		_ = conn.Close()
		if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 "+want) ||
			!strings.Contains(string(got), "\r\nContent-Type: application/json\r\n") ||
			!strings.Contains(string(got), "\r\n\r\n"+`{"error":"ERR the request is no valid HTTP`) {
			t.Errorf("%.80q: got %q, %v, want %s and a JSON error", head, got, err, want)
		}
	}
}

// TestValueLikeARefusal stores what net/http sends to a malformed request.
func TestValueLikeARefusal(t *testing.T) {
	const refusal = "HTTP/1.1 400 Bad Request" + refusedByHTTP + "400 Bad Request"
	const beforeIt = 4096 // net/http writes so many bytes of an answer at once
	s := NewServer(t)
	_, conn := dial(t, s)
	r := bufio.NewReader(conn)
	for n := range beforeIt {
		value := strings.Repeat("x", n) + refusal
		exec(t, s, "SET", "k", value)
		_, err := fmt.Fprintf(conn, "POST /get/k HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
			"Upstash-Response-Format: resp2\r\nContent-Length: 0\r\n\r\n", s.Token)
		if err != nil {
			t.Fatal(err)
		}
		resp, got := answerOf(t, r)
		if want := fmt.Sprintf("$%d\r\n%s\r\n", len(value), value); got != want {
			t.Fatalf("%d bytes before it: got %d %.80q, want the value", n, resp.StatusCode, got)
		}
	}
}

// TestHeaderLimit sends the beginning of a header, and nothing more.
func TestHeaderLimit(t *testing.T) {
	for limit := 20 * time.Millisecond; ; limit *= 2 {
		_, conn := dial(t, NewServer(t, func(c *config) { c.headerLimit = limit }))
		_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nLong: ")
		got, readErr := io.ReadAll(conn)
		if len(got) > 0 || limit > testenv.Patience {
			t.Fatalf("half a header: got %q, %v, want the end of the connection alone", got, readErr)
		}
		if errors.Join(err, readErr) == nil {
			return // else the limit had ended before the half header came
		}
	}
}

// TestNothingWaits tries the blocking commands, in every spelling.
func TestNothingWaits(t *testing.T) {
	for name, opt := range map[string]Option{"memory": inMemory(t), "redis": withTestRedis(t)} {
		t.Run(name, func(t *testing.T) {
			s := NewServer(t, opt)
			exec(t, s, "XGROUP", "CREATE", "x", "streams", "0", "MKSTREAM")
			for _, line := range []string{
				"XREAD BLOCK 0 STREAMS x $", "xread count 1 block 0 streams x $",
				"XREADGROUP GROUP streams c BLOCK 0 STREAMS x >",
				"XREADGROUP GROUP streams streams COUNT 1 NOACK block 0 STREAMS x >",
				"XREADGROUP GROUP streams count BLOCK 0 STREAMS x >",
				"XREADGROUP COUNT 1 BLOCK 0 GROUP streams c STREAMS x >",
				"WAIT 1 0", "wait 1 100000", "BLPOP l 0", "bzpopmin z 0", "BLMOVE a b LEFT RIGHT 0",
			} {
				words := `"` + strings.Join(strings.Fields(line), `","`) + `"`
				got := do(t, s, call{body: "[" + words + "]"})
				if got.status != http.StatusBadRequest || !strings.Contains(got.body, "not a") {
					t.Errorf("%s: got %d %s, want a refusal", line, got.status, got.body)
				}
				// In a script nothing waits. The answer or an error comes at
				// once.
				script := "return redis.pcall(" + words + ")"
				if got := do(t, s, call{body: `["EVAL",` + quoted(script) + `,"0"]`}); got.status >= 500 {
					t.Errorf("%s: got %d %s, want an answer or an error of the script",
						script, got.status, got.body)
				}
			}
			got := do(t, s, call{body: `["XREADGROUP","GROUP","streams","block","STREAMS","x",">"]`})
			if got.status != http.StatusOK {
				t.Errorf("XREADGROUP of a consumer called block: got %d %s, want status 200", got.status, got.body)
			}
		})
	}
}

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
	_ = raw.SetDeadline(time.Now().Add(testenv.Patience))
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

// answerOf reads an answer and its body.
func answerOf(t *testing.T, r *bufio.Reader) (resp *http.Response, body string) {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	read, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(read)
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
	s.Inject(closes("keep-alive, CLOSE"))
	_, conn := dial(t, s)
	r := bufio.NewReader(conn)
	send(t, s, conn, incrN, len(incrN))
	if resp, body := answerOf(t, r); body != `{"result":1}` || !resp.Close {
		t.Errorf("got %s, close %v, want a result of 1 and Connection: close", body, resp.Close)
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
	s.Inject(earlyRefusal())
	_, conn := dial(t, s)
	send(t, s, conn, "", 1<<20)
	if resp, _ := answerOf(t, bufio.NewReader(conn)); resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a body over the limit: status %d, want 413", resp.StatusCode)
	}
	s.InjectFunc(func(n int64, _ RequestInfo) Fault {
		if n == 1 {
			return earlyRefusal()
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
	s.Inject(interim(7))
	_, conn := dial(t, s)
	send(t, s, conn, incrN, len(incrN))
	r := bufio.NewReader(conn)
	for i := range 8 {
		if resp, _ := answerOf(t, r); (resp.StatusCode == http.StatusEarlyHints) != (i < 7) {
			t.Fatalf("answer %d has status %d, want 103 in the first seven alone", i, resp.StatusCode)
		}
	}
}
