//go:build !wasm

package upstash

import (
	"crypto/x509"

	"github.com/upbloom/upbloom/internal/door"
)

// The clients of a test server trust its certificate.
func init() {
	door.TrustRoots = func(client, roots any) {
		if t, ok := client.(*Client).transport.(*fasthttpTransport); ok && t.dialer.ServerTLS != nil {
			t.dialer.ServerTLS.RootCAs = roots.(*x509.CertPool)
		}
	}
}
