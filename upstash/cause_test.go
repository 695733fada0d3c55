//go:build !wasm

package upstash

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// TestCauseOfABrokenConnection: the network's error stays visible.
func TestCauseOfABrokenConnection(t *testing.T) {
	for _, tt := range []struct {
		name, answer string
		reset        bool
		want         error
	}{
		{"closed before the first byte", "", false, io.ErrUnexpectedEOF},
		{"closed within the header", "HTTP/1.1 200 OK\r\nConte", false, io.ErrUnexpectedEOF},
		{"closed within the body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{", false, io.ErrUnexpectedEOF},
		{"reset before the first byte", "", true, syscall.ECONNRESET},
		{"reset within the header", "HTTP/1.1 200 OK\r\nConte", true, syscall.ECONNRESET},
		{"reset within the body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{", true, syscall.ECONNRESET},
		{
			"reset within a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5", true,
			syscall.ECONNRESET,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.reset && runtime.GOOS == "windows" {
				t.Skip("Windows has an error of its own for a reset")
			}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				c, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(c, tt.answer)
				if tt.reset {
					_ = c.(*net.TCPConn).SetLinger(0)
				}
				_ = c.Close()
			}))
			defer s.Close()
			_, err := newClient(t, s.URL, WithRetry(0)).Do(t.Context(), Cmd("INCR", "k"))
			if !errors.Is(err, tt.want) || SafeToRetry(err) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			var call *CallError
			if tt.name == "closed within the body" && (!errors.As(err, &call) || call.StatusCode != 200) {
				t.Errorf("got %v, want the status", err)
			}
			if tt.reset && errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("a reset counts as an end: %v", err)
			}
		})
	}
}

// TestCertificateRequired: in TLS 1.3 the client learns this with its first
// read.
func TestCertificateRequired(t *testing.T) {
	s := tlsServer(t, func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert })
	_, err := newTLSClient(t, s.URL, s).Do(t.Context(), Cmd("GET", "k"))
	checkSingle(t, "a certificate is required", err, true)
	if err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("got %v", err)
	}
}

// TestPermanentErrorsAreNotRepeated: the next attempt would end the same way.
func TestPermanentErrorsAreNotRepeated(t *testing.T) {
	s := tlsServer(t, nil)
	_, err := newClient(t, s.URL).Do(t.Context(), Cmd("PING"))
	checkSingle(t, "unknown authority", err, true)

	t.Setenv("HTTPS_PROXY", "http://"+testenv.Serve(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1000))
		_, _ = io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
	}))
	_, err = newClient(t, testURL).Do(t.Context(), Cmd("PING"))
	checkSingle(t, "a proxy that wants a password", err, true)

	t.Setenv("HTTPS_PROXY", "http://user:%ss@proxy.test")
	_, err = newClient(t, testURL).Do(t.Context(), Cmd("PING"))
	checkSingle(t, "a proxy that cannot be parsed", err, true)

	c, _ := newFake(t, []answer{{err: NotSent(&net.DNSError{IsNotFound: true})}})
	_, err = c.Do(t.Context(), Cmd("PING"))
	checkSingle(t, "no such host, over any transport", err, true)
}

// TestLongHeaderIsNotRepeated: each repetition would run the command again.
func TestLongHeaderIsNotRepeated(t *testing.T) {
	var n atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		w.Header().Set("X-Long", strings.Repeat("x", 17<<10))
		_, _ = io.WriteString(w, `{"result":1}`)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	defer s.Close()
	_, err := newClient(t, s.URL, WithBackoff(0, 0)).Do(t.Context(), Cmd("GET", "k"))
	if checkSingle(t, "a long header", err, true); n.Load() != 1 || !strings.Contains(err.Error(), "16 KiB") {
		t.Errorf("%d requests, %v", n.Load(), err)
	}
}

// checkSingle checks that a call was tried once, and whether it is safe to
// retry.
func checkSingle(t *testing.T, name string, err error, safe bool) {
	t.Helper()
	var call *CallError
	if !errors.As(err, &call) || call.Attempts != 1 || SafeToRetry(err) != safe {
		t.Errorf("%s: got %v, want one attempt, SafeToRetry %v", name, err, safe)
	}
}
