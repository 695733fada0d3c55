//go:build !wasm

package jstest

import (
	"crypto/x509"
	"testing"

	"go.uber.org/goleak"

	"github.com/upbloom/upbloom/internal/testkit/transporttest"
	"github.com/upbloom/upbloom/upstash"
)

// The client never asks for such a response, so only a careless proxy sends
// one. The call then fails as one that may have been executed.
const no100 = "Node's fetch takes an interim response with status 100 for a bad one"

// TestConformance runs the test of every transport over Node's fetch.
func TestConformance(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	r, stop := startRelay(t)
	defer stop()
	t.Run("plain", func(t *testing.T) {
		transporttest.Run(t, func(*testing.T, string) upstash.Transport { return r },
			transporttest.Exception{Case: "response forms/after 100", Reason: no100},
			transporttest.Exception{Case: "response forms/after 103", Reason: no100})
	})
	t.Run("TLS", func(t *testing.T) {
		transporttest.RunTLS(t, func(*testing.T, string, *x509.CertPool) upstash.Transport { return r })
	})
}
