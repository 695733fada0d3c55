//go:build !wasm

package conn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"reflect"
)

// Permanent reports whether what failed with err would fail the same way again:
// one side does not accept the other's certificate or TLS, a name does not
// exist, the proxy's URL is of no use or lacks a password.
func Permanent(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate) || isRefusedByAlert(err) || isNotFound(err) ||
		errors.Is(err, errBadProxy) || errors.Is(err, errProxyAuth)
}

// isRefusedByAlert reports whether the peer ended TLS for what we are or offer:
// RFC 8446, section 6.2. crypto/tls does not export the type of its alerts.
func isRefusedByAlert(err error) bool {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" {
		return false
	}
	alert := reflect.ValueOf(op.Err)
	if alert.Kind() != reflect.Uint8 {
		return false
	}
	switch alert.Uint() {
	case 40, 42, 43, 44, 45, 46, 48, 49, 70, 71, 112, 116:
		return true
	}
	return false
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
