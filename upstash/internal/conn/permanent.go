//go:build !wasm

package conn

import (
	"crypto/tls"
	"errors"
	"net"
)

// Permanent reports whether what failed with err would fail the same way again:
// the server's certificate is not accepted, its name does not exist, the
// proxy's URL is of no use or lacks a password.
func Permanent(err error) bool {
	var certificate *tls.CertificateVerificationError
	var dns *net.DNSError
	return errors.As(err, &certificate) ||
		errors.As(err, &dns) && dns.IsNotFound ||
		errors.Is(err, errBadProxy) || errors.Is(err, errProxyAuth)
}
