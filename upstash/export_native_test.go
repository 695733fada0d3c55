//go:build !wasm

package upstash

import (
	"crypto/x509"
	"testing"

	"github.com/upbloom/upbloom/internal/door"
)

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
