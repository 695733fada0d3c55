//go:build !wasm

package conn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"testing"
)

func TestPermanent(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&net.DNSError{IsNotFound: true}, true},
		{&net.DNSError{IsTimeout: true}, false},
		{&net.DNSError{IsTemporary: true}, false},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, true},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(116)}, true}, // certificate required
		{&net.OpError{Op: "remote error", Err: tls.AlertError(80)}, false}, // internal error
		{&net.OpError{Op: "local error", Err: tls.AlertError(116)}, false},
		{&net.OpError{Op: "remote error", Err: errRefused}, false},
		{errBadProxy, true},
		{errProxyAuth, true},
		{errProxyRefused, true},
		{errRefused, false},
		{context.DeadlineExceeded, false},
	} {
		if got := Permanent(fmt.Errorf("wrapped: %w", tt.err)); got != tt.want {
			t.Errorf("Permanent(%v) = %v, want %v", tt.err, got, tt.want)
		}
	}
}
