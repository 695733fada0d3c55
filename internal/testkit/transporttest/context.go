package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
)

// stall is a way to make a call wait until the test ends.
type stall struct {
	name string
	body string
	// url starts the server, which calls reached once it stalls.
	url func(t *testing.T, reached func()) string
}

// bigBody is longer than the socket buffers of both sides together.
var bigBody = strings.Repeat("x", 24<<20)

func (s suite) stalls() []stall {
	raw := func(before func(net.Conn)) func(*testing.T, func()) string {
		return func(t *testing.T, reached func()) string {
			return rawServer(t, func(c net.Conn, wait <-chan struct{}) {
				before(c)
				reached()
				<-wait
			})
		}
	}
	return []stall{
		{name: "before the header", body: "[]", url: raw(readRequest)},
		{name: "within the header", body: "[]", url: raw(func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-")
		})},
		{name: "within the body", body: "[]", url: raw(func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
		})},
		{name: "while it takes the request", body: bigBody, url: raw(func(c net.Conn) {
			_, _ = io.ReadFull(c, make([]byte, 1000))
		})},
		{name: "TLS handshake", body: "[]", url: func(t *testing.T, reached func()) string {
			return overTLS(raw(func(c net.Conn) { _, _ = io.ReadFull(c, make([]byte, 100)) })(t, reached))
		}},
		{name: "dial", body: "[]", url: blackHole},
	}
}

func (s suite) testDeadline(t *testing.T) { s.endByDeadline(t, s.stalls()) }

func (s suite) testCancel(t *testing.T) { s.endByCancel(t, s.stalls()) }

func (s suite) endByDeadline(t *testing.T, stalls []stall) {
	t.Helper()
	for _, st := range stalls {
		s.sub(t, st.name, func(t *testing.T) {
			url, untilReached := st.start(t)
			tr := s.transport(t, url)
			untilReached(func(limit time.Duration) {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				wantEnd(t, ctx, tr, newRequest(url+"/", st.body))
			})
		})
	}
}

// testWhoseDeadline has the deadline of the caller's context end calls, long
// before the client's own limit. The error must name the right one, and have
// the context's cause, whichever timer of the many below was first.
func (s suite) testWhoseDeadline(t *testing.T) {
	cause := errors.New("the handler's time is over")
	for _, st := range s.stalls() {
		if len(st.body) > 2 {
			continue // the others have shown it, and a long body costs seconds
		}
		s.sub(t, st.name, func(t *testing.T) {
			url, untilReached := st.start(t)
			client := s.client(t, url)
			untilReached(func(limit time.Duration) {
				var group sync.WaitGroup
				for range 8 {
					group.Go(func() {
						ctx, cancel := context.WithTimeoutCause(t.Context(), limit, cause)
						defer cancel()
						_, err := client.Do(ctx, upstash.Cmd("INCR", "secret-key"))
						if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, cause) ||
							strings.Contains(err.Error(), "WithTimeout") {
							t.Errorf("got %v, want the end of the context and its cause", err)
						}
					})
				}
				group.Wait()
			})
		})
	}
}

// start starts the server. untilReached makes calls with ever longer limits, until
// the server has stalled within one.
func (st stall) start(t *testing.T) (url string, untilReached func(call func(limit time.Duration))) {
	t.Helper()
	var reached atomic.Bool
	url = st.url(t, func() { reached.Store(true) })
	return url, func(call func(limit time.Duration)) {
		for limit := 30 * time.Millisecond; !reached.Load(); limit *= 2 {
			if limit > patience {
				t.Fatal("no call has come to the server")
			}
			call(limit)
		}
	}
}

func (s suite) endByCancel(t *testing.T, stalls []stall) {
	t.Helper()
	for _, st := range stalls {
		s.sub(t, st.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			url := st.url(t, cancel)
			tr := s.transport(t, url)
			wantEnd(t, ctx, tr, newRequest(url+"/", st.body))
		})
	}
}

// testCause ends calls whose command may have run. The cause of their context
// says that another command did not run.
func (s suite) testCause(t *testing.T) {
	_, refused := s.client(t, "http://"+testenv.ClosedAddr(t)).Do(t.Context(), upstash.Cmd("PING"))
	if !upstash.SafeToRetry(refused) {
		t.Fatalf("a refused dial is not safe to retry: %v", refused)
	}
	for _, st := range s.stalls()[:3] { // from the header on
		for name, cause := range map[string]error{
			"another call":  refused,
			"its wrapping":  fmt.Errorf("app: %w", refused),
			"a mark":        upstash.NotSent(io.ErrClosedPipe),
			"no permission": &upstash.Error{StatusCode: 400, Message: "NOPERM", Command: "SET"},
		} {
			s.sub(t, st.name+"/"+name, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				var reached atomic.Bool
				url := st.url(t, func() {
					reached.Store(true)
					cancel(cause)
				})
				client := s.client(t, url)
				// Some guests see no cancel, and end at the deadline.
				for limit := 3 * time.Second; !reached.Load(); limit *= 2 {
					ctx, stop := context.WithTimeout(ctx, limit)
					_, err := client.Do(ctx, upstash.Cmd("INCR", "secret-key"))
					stop()
					callError(t, err)
					if upstash.SafeToRetry(err) && reached.Load() {
						t.Errorf("safe to retry, though the server had the request: %v", err)
					}
				}
			})
		}
	}
}

// wantEnd makes a call that must end with its context, by an error. When it returns,
// wantEnd overwrites the request's buffers, and the race detector reports any later
// use of them.
func wantEnd(t *testing.T, ctx context.Context, tr upstash.Transport, req *upstash.Request) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		var resp upstash.Response
		err := tr.RoundTrip(ctx, req, &resp)
		clear(req.Body)
		clear(req.Header)
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil {
			t.Error("err = nil, want an error when the context ends")
		}
	case <-time.After(patience):
		t.Fatal("the call outlived its context")
	}
}

func (s suite) testBuffers(t *testing.T) {
	url, _ := httpServer(t, anyIPv4, echo)
	tr := s.transport(t, url)
	req := newRequest(url+"/", "")
	var last upstash.Response
	for i := range 20 {
		// The same buffers each time, as a pool would use them.
		req.Body = append(req.Body[:0], bytes.Repeat([]byte{byte('a' + i)}, 10_000)...)
		resp := mustSend(t, tr, req)
		if !bytes.Equal(resp.Body, req.Body) {
			t.Fatalf("call %d: got %d bytes from %.9q, want the %d bytes of its request back",
				i, len(resp.Body), resp.Body, len(req.Body))
		}
		if i > 0 && !bytes.Equal(last.Body, bytes.Repeat([]byte{byte('a' + i - 1)}, 10_000)) {
			t.Fatalf("call %d wrote into the response of the call before", i)
		}
		last = resp
	}
}

// testEarlyAnswer has a server refuse a big request before it has read all of
// it. Like other servers, this one then reads the rest. Closing at once would
// reset the connection, and net/http would often lose the answer.
func (s suite) testEarlyAnswer(t *testing.T) {
	const answer = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"
	url := rawServer(t, func(c net.Conn, _ <-chan struct{}) {
		_, _ = io.ReadFull(c, make([]byte, 1000))
		_, _ = io.WriteString(c, answer)
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.CopyN(io.Discard, c, int64(len(bigBody)))
	})
	s.wantRefusal(t, url)
}

// wantRefusal sends a big request and wants the server's refusal.
func (s suite) wantRefusal(t *testing.T, url string) {
	t.Helper()
	req := newRequest(url+"/", bigBody)
	resp, err := send(t, s.transport(t, url), req)
	clear(req.Body)
	if err != nil || resp.StatusCode != 413 || string(resp.Body) != "no" {
		t.Errorf("status %d, body %q, error %v; want the server's 413", resp.StatusCode, resp.Body, err)
	}
}

func (s suite) testConcurrent(t *testing.T) {
	url, _ := httpServer(t, anyIPv4, echo)
	tr := s.transport(t, url)
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			for j := range 4 {
				body := fmt.Sprintf("[%d,%d]", i, j)
				var resp upstash.Response
				err := tr.RoundTrip(t.Context(), newRequest(url+"/", body), &resp)
				if err != nil || string(resp.Body) != body {
					t.Errorf("call %s: got %q, %v, want its own body back", body, resp.Body, err)
				}
			}
		})
	}
	group.Wait()
}
