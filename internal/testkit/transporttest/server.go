package transporttest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// httpServer serves h at addr and counts connections. It speaks HTTP/1.1, and
// HTTP/2 to a client that begins with it.
func httpServer(t *testing.T, addr string, h http.HandlerFunc) (url string, conns *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skipf("no listener at %s: %v", addr, err)
	}
	conns = new(atomic.Int64)
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL, conns
}

const anyIPv4 = "127.0.0.1:0"

// rawServer calls serve for each connection, on a goroutine of its own. It closes
// the connection when serve returns or the test ends, and wait when the test ends.
func rawServer(t *testing.T, serve func(c net.Conn, wait <-chan struct{})) (url string) {
	t.Helper()
	wait := make(chan struct{})
	addr := testenv.Serve(t, func(c net.Conn) { serve(c, wait) })
	t.Cleanup(func() { close(wait) })
	return "http://" + addr
}

// serve reads whole requests from c, one after another, until answer returns false
// or the client hangs up.
func serve(c net.Conn, answer func(r *http.Request, body string) (goOn bool)) {
	for in := bufio.NewReader(c); ; {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if body, err := io.ReadAll(r.Body); err != nil || !answer(r, string(body)) {
			return
		}
	}
}

// say writes text to c.
func say(c net.Conn, text string) (goOn bool) {
	_, err := io.WriteString(c, text)
	return err == nil
}

// readRequest reads one whole request from c.
func readRequest(c net.Conn) { serve(c, func(*http.Request, string) bool { return false }) }

// answering answers one request on each connection with these bytes, and then
// closes it.
func answering(t *testing.T, answer string) (url string) {
	t.Helper()
	return rawServer(t, func(c net.Conn, _ <-chan struct{}) {
		readRequest(c)
		_, _ = io.WriteString(c, answer)
	})
}

func withLength(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func chunked(parts ...string) string {
	s := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, p := range append(parts, "") {
		s += fmt.Sprintf("%x\r\n%s\r\n", len(p), p)
	}
	return s
}

func untilClose(body string) string { return "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body }

// echo answers a request with its own body.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, _ = w.Write(body)
}
