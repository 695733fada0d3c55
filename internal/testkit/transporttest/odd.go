package transporttest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/oddanswers"
	"github.com/upbloom/upbloom/upstash"
)

// testOdd has each answer that is odd, or ends in two places. A transport reads it
// as the table says, or refuses it as one that may have run. A transport with an
// exception may do either. In no case does a later call get what is left of it.
func (s suite) testOdd(t *testing.T) {
	for name, tt := range oddanswers.Accepted {
		t.Run(name, func(t *testing.T) { s.readsOdd(t, tt, true, wantsMore(tt.Text)) })
	}
	for name, tt := range oddanswers.Refused {
		t.Run(name, func(t *testing.T) {
			more := tt.Why == oddanswers.HungUp || wantsMore(tt.Text)
			s.readsOdd(t, oddanswers.Answer{Text: tt.Text}, false, more)
		})
	}
}

func (s suite) readsOdd(t *testing.T, odd oddanswers.Answer, accepted, hangsUp bool) {
	exempt := s.isException(t) != nil
	checkLeaks(t)
	var requests, conns atomic.Int64
	url := rawServer(t, func(c net.Conn, _ <-chan struct{}) {
		conns.Add(1)
		serve(c, func(*http.Request, string) bool {
			if i := requests.Add(1); i > 1 {
				return say(c, withLength(fmt.Sprint(i)))
			}
			return say(c, odd.Text) && !hangsUp
		})
	})
	tr, req := s.transport(t, url), newRequest(url+"/", "[]")
	req.MaxResponse = oddanswers.Limit
	resp, err := send(t, tr, req)
	switch {
	case err != nil && upstash.SafeToRetry(err):
		t.Errorf("safe to retry, though the server has answered: %v", err)
	case exempt:
	case accepted && (err != nil || resp.StatusCode != odd.Status || string(resp.Body) != odd.Body):
		t.Errorf("got status %d, %q, %v, want %d, %q", resp.StatusCode, resp.Body, err, odd.Status, odd.Body)
	case !accepted && err == nil:
		t.Errorf("got status %d, %q, want an error", resp.StatusCode, resp.Body)
	}
	for range 2 {
		resp, err := send(t, tr, req)
		if want := fmt.Sprint(requests.Load()); err != nil || string(resp.Body) != want {
			t.Errorf("a later call got %q, %v, want %s", resp.Body, err, want)
		}
	}
	if kept := conns.Load() == 1; kept != odd.Keeps && !exempt {
		t.Errorf("another call over the same connection: %v, want %v", kept, odd.Keeps)
	}
}

// wantsMore reports whether net/http waits for more after text.
func wantsMore(text string) bool {
	more := new(end)
	for r := bufio.NewReader(io.MultiReader(strings.NewReader(text), more)); ; {
		resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodPost})
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
		}
		if err != nil || resp.StatusCode >= 200 {
			return more.asked
		}
	}
}

// end is the end of a connection.
type end struct{ asked bool }

func (e *end) Read([]byte) (int, error) {
	e.asked = true
	return 0, io.EOF
}

// testBoundedMemory: neither an announcement nor what a server sends without end
// takes much more memory than the limit allows. What a transport can leave out it
// may read for as long as the caller waits.
func (s suite) testBoundedMemory(t *testing.T) {
	const much, room = 64 << 20, 100 << 20 // in all: net/http takes a header of 10 MiB, and moves it as it grows
	const chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	line := strings.Repeat("x", 1000) + "\r\n"
	for name, tt := range map[string]struct {
		limit        int
		begin, again string // again and again
		want         error
	}{
		"a length of 1 GB":         {1 << 30, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\nabc", "", nil},
		"chunks without end":       {testLimit, chunks, "3e8\r\n" + line, upstash.ErrResponseTooLarge},
		"a body without end":       {testLimit, "HTTP/1.1 200 OK\r\n\r\n", line, upstash.ErrResponseTooLarge},
		"an extension without end": {testLimit, chunks + "1;", strings.Repeat("x", 1000), nil},
		"a header without end":     {testLimit, "HTTP/1.1 200 OK\r\n", "X: " + line, nil},
		"a line without end":       {testLimit, "HTTP/1.1 200 OK\r\nX: ", strings.Repeat("x", 1000), nil},
		"a trailer without end":    {testLimit, chunks + "0\r\n", "X: " + line, nil},
		"interim ones without end": {testLimit, "", "HTTP/1.1 103 X\r\nX: " + line + "\r\n", nil},
	} {
		s.sub(t, name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			url := rawServer(t, func(c net.Conn, _ <-chan struct{}) {
				readRequest(c)
				_, err := io.WriteString(c, tt.begin)
				again := bytes.Repeat([]byte(tt.again), 100)
				for sent := 0; err == nil && len(again) > 0; sent += len(again) {
					if _, err = c.Write(again); sent > much {
						cancel()
					}
				}
			})
			tr, req := s.transport(t, url), newRequest(url+"/", "[]")
			req.MaxResponse = tt.limit
			var before, after runtime.MemStats
			var resp upstash.Response
			runtime.ReadMemStats(&before)
			err := tr.RoundTrip(ctx, req, &resp)
			runtime.ReadMemStats(&after)
			if err == nil || upstash.SafeToRetry(err) || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("got %d bytes, %v, want an error of a command that may have run", len(resp.Body), err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > room {
				t.Errorf("it took %d MiB", took>>20)
			}
		})
	}
}
