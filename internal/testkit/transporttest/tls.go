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
	return overTLS(rawServer(t, serve))
}

// overTLS is an http:// URL with https://.
func overTLS(url string) string { return "https" + strings.TrimPrefix(url, "http") }

// testBodies is testBodies of suite, over TLS.
func (s tlsSuite) testBodies(t *testing.T) {
	s.wantBodies(t, s.server(t, func(c net.Conn, _ <-chan struct{}) {
		serve(c, func(_ *http.Request, body string) bool { return say(c, withLength(body)) })
	}))
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
		s.sub(t, name, func(t *testing.T) {
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
	wantEnd(t, ctx, s.transport(t, url), newRequest(url+"/", bigBody))
}

// testStrayAnswer sends the second answer in its own record, but in the same
// TCP segment as the first.
func (s tlsSuite) testStrayAnswer(t *testing.T) {
	var n atomic.Int64
	url := rawTLS(t, func(c net.Conn, _ <-chan struct{}) {
		segment := bufio.NewWriter(c)
		over := tls.Server(&buffered{c, segment}, &tls.Config{Certificates: s.certificates})
		serve(over, func(*http.Request, string) bool {
			return say(over, withLength(fmt.Sprint(n.Add(1)))) && say(over, withLength("stray"))
		})
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
