//go:build !wasm

package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"reflect"
)

// Permanent reports whether an attempt that failed with err would fail in the
// same way again: one side does not accept the other's certificate or TLS, a
// name does not exist, or the proxy's URL cannot be used or lacks a password.
func Permanent(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate) || isRefusedByAlert(err) || isNotFound(err) ||
		errors.Is(err, errBadProxy) || errors.Is(err, errProxyAuth)
}

// isRefusedByAlert reports whether the peer ended TLS because it does not
// accept what the client is or offers: RFC 8446, section 6.2. The errors of
// crypto/tls do not export the type of an alert.
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
	case 40, 70, 71, // no common version, cipher or parameter
		42, 43, 44, 45, 46, 48, 116, // the certificate, or the lack of one
		49, 112: // access denied, unrecognized name
		return true
	}
	return false
}

func isNotFound(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

// advise adds a question to the error of a dial, for its reader to look into:
// noName if the name does not exist, noAnswer if nothing listens. It adds none
// if the dial ended with its context.
func advise(ctx context.Context, err error, noName, noAnswer string) error {
	var dial *net.OpError
	switch {
	case isNotFound(err):
		return fmt.Errorf("%w: %s", err, noName)
	case errors.As(err, &dial) && ctx.Err() == nil:
		return fmt.Errorf("%w: %s", err, noAnswer)
	}
	return err
}
