package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
)

func (s suite) testLimit(t *testing.T) {
	const limit = 1000
	for name, tt := range map[string]struct {
		field, value string
		length       int
		tooBig       bool
	}{
		"length":            {"Content-Length", "1000", limit, false},
		"length, over":      {"Content-Length", "1001", limit + 1, true},
		"announced only":    {"Content-Length", "2000000000", 3, true},
		"chunked":           {"Transfer-Encoding", "chunked", limit, false}, // HTTP/2 has its own
		"chunked, over":     {"Transfer-Encoding", "chunked", limit + 1, true},
		"until close":       {"Transfer-Encoding", "identity", limit, false},
		"until close, over": {"Transfer-Encoding", "identity", limit + 1, true},
	} {
		s.sub(t, name, func(t *testing.T) {
			url, _ := httpServer(t, anyIPv4, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set(tt.field, tt.value)
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				_, _ = io.WriteString(w, strings.Repeat("x", tt.length-1))
			})
			req := newRequest(url+"/", "[]")
			req.MaxResponse = limit
			resp, err := send(t, s.transport(t, url), req)
			switch {
			case resp.StatusCode != 200:
				t.Errorf("status %d, want 200", resp.StatusCode)
			case tt.tooBig && !errors.Is(err, upstash.ErrResponseTooLarge):
				t.Errorf("got %v, want ErrResponseTooLarge", err)
			case !tt.tooBig && (err != nil || len(resp.Body) != limit):
				t.Errorf("got %d bytes, %v, want the whole %d", len(resp.Body), err, limit)
			}
		})
	}
}

func (s suite) testRedirect(t *testing.T) {
	var followed atomic.Int64
	target, _ := httpServer(t, anyIPv4, func(http.ResponseWriter, *http.Request) { followed.Add(1) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		url, _ := httpServer(t, anyIPv4, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", target)
			w.WriteHeader(status)
		})
		resp := mustSend(t, s.transport(t, url), newRequest(url+"/", "[]"))
		if resp.StatusCode != status {
			t.Errorf("status %d, want %d", resp.StatusCode, status)
		}
	}
	if n := followed.Load(); n != 0 {
		t.Errorf("%d redirects were followed, want none", n)
	}
}

func (s suite) testDialRefused(t *testing.T) {
	callError(t, fails(t, s.client(t, "http://"+testenv.ClosedAddr(t)), true))
}

// testHandshake has a server end TLS before it begins. The call fails at once,
// and the server has seen nothing of the request.
func (s suite) testHandshake(t *testing.T) {
	for name, end := range map[string]func(net.Conn){
		"closed":         func(net.Conn) {},
		"reset":          func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) },
		"closed within":  func(c net.Conn) { _, _ = io.WriteString(c, "\x16\x03\x03\x00\x5a\x02") },
		"alert":          func(c net.Conn) { _, _ = io.WriteString(c, "\x15\x03\x03\x00\x02\x02\x28") },
		"HTTP":           func(c net.Conn) { _, _ = io.WriteString(c, withLength(`{"result":1}`)) },
		"another answer": func(c net.Conn) { _, _ = io.WriteString(c, "-ERR unknown command\r\n") },
	} {
		s.sub(t, name, func(t *testing.T) {
			var mu sync.Mutex
			var got []byte
			url := rawTLS(t, func(c net.Conn, _ <-chan struct{}) {
				b := make([]byte, 64<<10)
				n, _ := c.Read(b)
				mu.Lock()
				got = append(got, b[:n]...)
				mu.Unlock()
				end(c)
			})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := s.client(t, url).Do(ctx, upstash.Cmd("INCR", "secret-key"))
			callError(t, err)
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the call waited: %v", err)
			}
			noSecrets(t, err)
			mu.Lock()
			defer mu.Unlock()
			if len(got) == 0 || got[0] != 0x16 || bytes.Contains(got, []byte("secret")) {
				t.Errorf("the server got %.40q, want the beginning of TLS", got)
			}
		})
	}
}

// testDropped has a server end the connection, or the stream, once it has read the
// request.
func (s suite) testDropped(t *testing.T) {
	url, _ := httpServer(t, anyIPv4, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	})
	callError(t, fails(t, s.client(t, url), false))
}

// testDroppedAfterUse has a server answer one request, read the next one on the
// same connection, and close it. A client might believe the connection died
// while idle, and send the request again.
func (s suite) testDroppedAfterUse(t *testing.T) {
	for name, hangUp := range map[string]func(net.Conn){
		"closed": func(net.Conn) {},
		"reset":  func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) },
	} {
		s.sub(t, name, func(t *testing.T) {
			var requests atomic.Int64
			url := rawServer(t, func(c net.Conn, _ <-chan struct{}) {
				serve(c, func(*http.Request, string) bool {
					if requests.Add(1) == 2 {
						hangUp(c)
						return false
					}
					return say(c, withLength(`{"result":1}`))
				})
			})
			tr := s.transport(t, url)
			req := newRequest(url+"/", `["INCR","n"]`)
			req.Header = append(req.Header, upstash.Header{Name: "Idempotency-Key", Value: "1"})
			mustSend(t, tr, req)
			if resp, err := send(t, tr, req); err == nil {
				t.Errorf("got %q, want an error: the server hung up", resp.Body)
			}
			if n := requests.Load(); n != 2 {
				t.Errorf("%d requests for 2 calls, want 2", n)
			}
		})
	}
}

// testNoStatus has an answer with an impossible status. It says nothing about
// the command.
func (s suite) testNoStatus(t *testing.T) {
	answer := strings.Replace(withLength(`{"result":1}`), "200 OK", "000 OK", 1)
	fails(t, s.client(t, answering(t, answer)), false)
}

// testBareLF has lines that end in LF alone. A transport reads or refuses them,
// but never waits for a CR.
func (s suite) testBareLF(t *testing.T) {
	all := strings.ReplaceAll(withLength(`{"result":1}`), "\r\n", "\n")
	for name, answer := range map[string]string{
		"all lines": all,
		"the last":  strings.Replace(withLength(`{"result":1}`), "\r\n\r\n", "\r\n\n", 1),
		"some":      strings.Replace(all, "\n", "\r\n", 1),
	} {
		s.sub(t, name, func(t *testing.T) {
			url := rawServer(t, func(c net.Conn, wait <-chan struct{}) {
				readRequest(c)
				_, _ = io.WriteString(c, answer)
				<-wait // a client that waits for more gets nothing
			})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			r, err := s.client(t, url).Do(ctx, upstash.Cmd("INCR", "secret-key"))
			switch n, _ := r.Int64(); {
			case errors.Is(err, context.DeadlineExceeded):
				t.Errorf("the transport waits for more: %v", err)
			case err == nil && n != 1:
				t.Errorf("got %d, want 1 or an error", n)
			case err != nil && upstash.SafeToRetry(err):
				t.Errorf("safe to retry, though the server has answered: %v", err)
			}
		})
	}
}

func (s suite) testCut(t *testing.T) {
	for name, answer := range map[string]string{
		"length":  withLength(`{"result":[0,1,1]}`),
		"chunked": chunked(`{"result":`, `[0,1,1]}`),
	} {
		s.sub(t, name, func(t *testing.T) {
			for n := range len(answer) {
				url := answering(t, answer[:n])
				tr := s.newTransport(t, url)
				if resp, err := send(t, tr, newRequest(url+"/", "[]")); err == nil {
					t.Errorf("%d of %d bytes of an answer: body %q, want an error", n, len(answer), resp.Body)
				}
				closeTransport(tr)
			}
		})
	}
}

func (s suite) testNotHTTP(t *testing.T) {
	for name, answer := range map[string]string{
		"other protocol":   "-ERR unknown command 'POST'\r\n",
		"RESP":             "+OK\r\n$5\r\nhello\r\n",
		"no status":        "HTTP/1.1\r\n\r\n",
		"bad length":       "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nabc",
		"bad chunk":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"quoting a secret": "GET secret-key secret-token\r\n\r\n",
	} {
		s.sub(t, name, func(t *testing.T) {
			callError(t, fails(t, s.client(t, answering(t, answer)), false))
		})
	}
}

// testQuotes has malformed answers that repeat the request. No error shows them,
// nor does what it wraps.
func (s suite) testQuotes(t *testing.T) {
	const head, chunked = "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, answer := range map[string]string{
		"first line":    "%s\r\n\r\n",
		"version":       "HTTP/%s 200 OK\r\n\r\n",
		"status":        "HTTP/1.1 %s\r\n\r\n",
		"no colon":      head + "%s\r\n\r\n",
		"begins blank":  head + " %s: x\r\n\r\n",
		"name":          head + "X\x00%s: x\r\n\r\n",
		"value":         head + "X: \x00%s\r\n\r\n",
		"length":        head + "Content-Length: %s\r\n\r\n",
		"lengths":       head + "Content-Length: 1\r\nContent-Length: %s\r\n\r\n",
		"coding":        head + "Transfer-Encoding: %s\r\n\r\n",
		"chunk":         chunked + "%s\r\n",
		"after a chunk": chunked + "1\r\n{%s\r\n",
		"trailer":       chunked + "2\r\n{}\r\n0\r\n%s\r\n\r\n",
		"body":          withLength("%s"),
	} {
		for _, quoted := range []string{"secret-key", "secret-token", `"secret-\"item\""`, "x secret-key"} {
			s.sub(t, name, func(t *testing.T) {
				url := answering(t, strings.Replace(answer, "%s", quoted, 1))
				wantNoQuote(t, s.client(t, url))
			})
		}
	}
}

// wantNoQuote wants an error of a malformed answer, which shows nothing that was sent.
func wantNoQuote(t *testing.T, c *upstash.Client) {
	t.Helper()
	_, err := c.Do(t.Context(), upstash.Cmd("SET", "secret-key", `secret-"item"`))
	if err == nil {
		t.Fatal("no error, though the answer is malformed")
	}
	if all := everything(err); strings.Contains(all, "secret-") {
		t.Errorf("the error shows what was sent: %s", all)
	}
}

// everything returns what can be printed of err and of all it wraps.
func everything(err error) string {
	text := fmt.Sprintf("%v | %+v | %#v\n", err, err, err)
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if next := e.Unwrap(); next != nil {
			text += everything(next)
		}
	case interface{ Unwrap() []error }:
		for _, next := range e.Unwrap() {
			text += everything(next)
		}
	}
	return text
}

func noSecrets(t *testing.T, err error) {
	t.Helper()
	for _, secret := range []string{"secret-token", "secret-key"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows %s: %v", secret, err)
		}
	}
}
