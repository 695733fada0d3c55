//go:build !wasm

package upstash

import (
	"crypto/x509"
	"testing"
)

// TrustRoots makes the default transports of a test trust these certificates.
func TrustRoots(tb testing.TB, pool *x509.CertPool) {
	testRootCAs = pool
	tb.Cleanup(func() { testRootCAs = nil })
}
