package upstash

import (
	"crypto/x509"
	"testing"
)

// DefaultTransport makes the transport that New would make for url.
func DefaultTransport(tb testing.TB, url string) Transport {
	tb.Helper()
	e, err := parseEndpoint(url, true)
	if err != nil {
		tb.Fatal(err)
	}
	return newDefaultTransport(e)
}

// TrustRoots makes the default transports of a test trust these certificates.
func TrustRoots(tb testing.TB, pool *x509.CertPool) {
	testRootCAs = pool
	tb.Cleanup(func() { testRootCAs = nil })
}
