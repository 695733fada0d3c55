//go:build !wasm

package conn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
)

// Permanent reports whether another attempt would fail with err again: one side
// does not accept the other's certificate or TLS, a name does not exist, the URL
// of net/http's proxy cannot be used, or the header of an answer is too long.
func Permanent(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate) || isRefusedByAlert(err) || isNotFound(err) ||
		errors.Is(err, errBadProxy) || errors.Is(err, ErrLongHead)
}

// isRefusedByAlert reports whether the peer ended TLS because it does not
// accept the client's certificate or offers: RFC 8446, section 6.2. The errors
// of crypto/tls do not export the type of an alert.
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

// Question returns a question for the reader of err, or "". err is the error of
// a connection that was not made, by this package or by net/http.
func Question(err error) string {
	var noTLS tls.RecordHeaderError
	var unknown x509.UnknownAuthorityError
	var broken *brokenError
	switch {
	case hasOp(err, "proxyconnect") && errors.As(err, &noTLS): // of net/http
		return "the proxy answers without TLS: is its URL in the environment http://?"
	case hasOp(err, "proxyconnect") && (errors.Is(err, io.EOF) || hasOp(err, "read")),
		hasOp(err, "dial") && (hasOp(err, "proxyconnect") || hasOp(err, "socks connect")):
		return "is the proxy's URL in the environment right, does the proxy run?"
	case isNotFound(err):
		return NoHost
	case hasOp(err, "dial"):
		return NoServer
	case errors.As(err, &broken), errors.Is(err, io.EOF): // net/http says EOF alone
		return "is the URL right, does a firewall allow this host?"
	case errors.As(err, &noTLS):
		return "the server answers without TLS: is the URL right, is it http://?"
	case errors.As(err, &unknown):
		return "are root certificates installed here? An image from scratch has none"
	}
	return ""
}

// brokenError is the error of a connection that broke while it was made.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return e.err.Error() }
func (e *brokenError) Unwrap() error { return e.err }

// brokenInHandshake returns err, and says so if the connection broke.
func brokenInHandshake(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &brokenError{fmt.Errorf("the server closed the connection in the TLS handshake: %w", err)}
	}
	if hasOp(err, "read") || hasOp(err, "write") {
		return &brokenError{fmt.Errorf("the connection broke in the TLS handshake: %w", err)}
	}
	return err
}

// hasOp reports whether err is, or wraps, the error of this operation of
// package net.
func hasOp(err error, name string) bool {
	for op := new(net.OpError); errors.As(err, &op); err = op.Err {
		if op.Op == name {
			return true
		}
	}
	return false
}
