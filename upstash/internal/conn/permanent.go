//go:build !wasm

package conn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

// Permanent reports whether what failed with err would fail the same way again:
// the server's certificate is not accepted, its name does not exist, the
// proxy's URL is of no use or lacks a password.
func Permanent(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate) || isNotFound(err) ||
		errors.Is(err, errBadProxy) || errors.Is(err, errProxyAuth)
}

func isNotFound(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

// ifNotFound adds what to ask oneself about a name that does not exist.
func ifNotFound(err error, question string) error {
	if isNotFound(err) {
		return fmt.Errorf("%w: %s", err, question)
	}
	return err
}
