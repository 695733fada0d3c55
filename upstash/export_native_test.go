//go:build !wasm

package upstash

import (
	"crypto/x509"
	"net/http/httptest"
	"testing"

	"github.com/upbloom/upbloom/internal/door"
)

// trust makes the default transport of c accept the certificate of s.
func trust(tb testing.TB, c *Client, s *httptest.Server) {
	tb.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	trustRoots(c.transport, roots)
}

func trustRoots(tr Transport, roots *x509.CertPool) {
	door.TrustRoots(&Client{sender: sender{transport: tr}}, roots)
}

// TrustingTransport is DefaultTransport with other roots than the system's.
func TrustingTransport(tb testing.TB, url string, roots *x509.CertPool) Transport {
	tb.Helper()
	tr := DefaultTransport(tb, url)
	trustRoots(tr, roots)
	return tr
}
