package transporttest

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/upbloom/upbloom/upstash"
)

// MakeTLS returns a new transport for the server at url. The server's
// certificate is in roots.
type MakeTLS func(t *testing.T, url string, roots *x509.CertPool) upstash.Transport

// RootPEM returns the certificate of RunTLS's servers, which is its own root.
// It is for a transport that must know it before the test begins.
func RootPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tlsServer().Certificate().Raw})
}

// tlsServer returns a closed server, for its certificate.
func tlsServer() *httptest.Server {
	s := httptest.NewTLSServer(nil)
	s.Close()
	return s
}

// RunTLS tests what is different over TLS.
func RunTLS(t *testing.T, newTransport MakeTLS, exceptions ...Exception) {
	over := newTLSSuite(t, newTransport, exceptions)
	over.run(t, []namedCase{
		{"bodies", over.testBodies},
		{"refusal", over.testRefusal},
		{"cancel", over.testCancel},
		{"records", over.testRecords},
		{"no close_notify", over.testNoCloseNotify},
		{"stray answer", over.testStrayAnswer},
	})
}

type tlsSuite struct {
	suite
	certificates []tls.Certificate
	make         MakeTLS
}

func newTLSSuite(t *testing.T, newTransport MakeTLS, exceptions []Exception) tlsSuite {
	s := tlsServer()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	over := tlsSuite{certificates: s.TLS.Certificates, make: newTransport}
	over.suite = suite{func(t *testing.T, url string) upstash.Transport {
		return newTransport(t, url, roots)
	}, exceptions, t.Name() + "/"}
	return over
}

// server calls serve for each connection, which then speaks TLS.
func (s tlsSuite) server(t *testing.T, serve func(c net.Conn, wait <-chan struct{})) (url string) {
	t.Helper()
	return rawTLS(t, func(c net.Conn, wait <-chan struct{}) {
		serve(tls.Server(c, &tls.Config{Certificates: s.certificates}), wait)
	})
}

// rawTLS is rawServer with an https:// URL.
func rawTLS(t *testing.T, serve func(c net.Conn, wait <-chan struct{})) (url string) {
	t.Helper()
	return "https" + strings.TrimPrefix(rawServer(t, serve), "http")
}

// testBodies sends bodies that fit into one TLS record, and longer ones.
func (s tlsSuite) testBodies(t *testing.T) {
	url := s.server(t, func(c net.Conn, _ <-chan struct{}) {
		for r := bufio.NewReader(c); ; {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			body, _ := io.ReadAll(req.Body)
			_, _ = io.WriteString(c, withLength(string(body)))
		}
	})
	tr := s.transport(t, url)
	for _, n := range []int{2, 1000, 100_000, 900_000, 2} {
		body := strings.Repeat("x", n)
		if resp := mustSend(t, tr, newRequest(url+"/", body)); string(resp.Body) != body {
			t.Errorf("got %d other bytes, want the %d of the request back", len(resp.Body), n)
		}
	}
}

// testRecords answers in records of one byte each.
func (s tlsSuite) testRecords(t *testing.T) {
	url := s.server(t, func(c net.Conn, _ <-chan struct{}) {
		readRequest(c)
		for _, b := range []byte(withLength(`{"result":1}`)) {
			_, _ = c.Write([]byte{b})
		}
	})
	resp := mustSend(t, s.transport(t, url), newRequest(url+"/", "[]"))
	if string(resp.Body) != `{"result":1}` {
		t.Errorf("got %q, want the whole answer", resp.Body)
	}
}

// testNoCloseNotify has a server close its socket without TLS's close_notify.
// Anybody could have cut the answer then, so its own length must prove it whole.
func (s tlsSuite) testNoCloseNotify(t *testing.T) {
	const whole = `{"result":1}`
	for name, tt := range map[string]struct {
		answer string
		whole  bool
	}{
		"length":       {withLength(whole), true},
		"chunked":      {chunked(whole), true},
		"length, cut":  {strings.TrimSuffix(withLength(whole), "}"), false},
		"chunked, cut": {strings.TrimSuffix(chunked(whole), "0\r\n\r\n"), false},
	} {
		t.Run(name, func(t *testing.T) {
			s.begin(t)
			url := s.server(t, func(c net.Conn, _ <-chan struct{}) {
				readRequest(c)
				_, _ = io.WriteString(c, tt.answer)
			})
			resp, err := send(t, s.transport(t, url), newRequest(url+"/", "[]"))
			if tt.whole && (err != nil || string(resp.Body) != whole) || !tt.whole && err == nil {
				t.Errorf("got %q, %v", resp.Body, err)
			}
		})
	}
}

// testRefusal is testRefusal of suite, over TLS.
func (s tlsSuite) testRefusal(t *testing.T) {
	s.wantRefusal(t, s.server(t, refuse))
}

// testCancel ends a call to a server that stopped reading the request. The
// socket then has no room for TLS's closing record.
func (s tlsSuite) testCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	url := s.server(t, func(c net.Conn, wait <-chan struct{}) {
		_, _ = io.ReadFull(c, make([]byte, 1000))
		cancel()
		<-wait
	})
	if err := s.stalled(t, ctx, s.transport(t, url), newRequest(url+"/", bigBody)); err == nil {
		t.Error("a request whose context ended: no error, want one")
	}
}

// testStrayAnswer sends the second answer in its own record, but in the same
// TCP segment as the first.
func (s tlsSuite) testStrayAnswer(t *testing.T) {
	var n atomic.Int64
	url := rawTLS(t, func(c net.Conn, _ <-chan struct{}) {
		segment := bufio.NewWriter(c)
		over := tls.Server(&buffered{c, segment}, &tls.Config{Certificates: s.certificates})
		for r := bufio.NewReader(over); ; {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			_, _ = io.WriteString(over, withLength(fmt.Sprint(n.Add(1))))
			_, _ = io.WriteString(over, withLength("stray"))
		}
	})
	s.eachItsOwn(t, url)
}

// buffered writes to w, which is flushed before each read.
type buffered struct {
	net.Conn
	w *bufio.Writer
}

func (c *buffered) Write(p []byte) (int, error) { return c.w.Write(p) }

func (c *buffered) Read(p []byte) (int, error) {
	_ = c.w.Flush()
	return c.Conn.Read(p)
}
