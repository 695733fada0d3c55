//go:build !wasm

package upstash_test

import (
	"crypto/x509"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/transporttest"
	"github.com/upbloom/upbloom/upstash"
)

func TestConformance(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, url string) upstash.Transport {
		return upstash.DefaultTransport(t, url)
	})
}

func TestConformanceOverTLS(t *testing.T) {
	transporttest.RunTLS(t, func(t *testing.T, url string, roots *x509.CertPool) upstash.Transport {
		return upstash.TrustingTransport(t, url, roots)
	})
}

func TestConformanceOfSockets(t *testing.T) {
	transporttest.RunSockets(t, func(t *testing.T, url string, roots *x509.CertPool) upstash.Transport {
		return upstash.TrustingTransport(t, url, roots)
	})
}
