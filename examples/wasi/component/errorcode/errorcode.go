// Package errorcode returns Go errors for the error-code of wasi:http 0.2. It
// calls no host, so it can be tested anywhere.
package errorcode

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/upbloom/upbloom/upstash"
)

// codes are the cases of wasi:http's error-code, in their order. After a
// notSent one the request certainly never left.
//
// A connection timeout does not prove that: jco's host also reports it when
// there is a connection and the server does not answer. Nor do TLS alerts and
// protocol errors, which can come after the handshake.
var codes = [...]struct {
	name    string
	notSent bool
}{
	{"DNS timeout", true},
	{"DNS error", true},
	{"destination not found", true},
	{"destination unavailable", true},
	{"destination IP prohibited", true},
	{"destination IP unroutable", true},
	{"connection refused", true},
	{"connection terminated", false},
	{"connection timeout", false},
	{"connection read timeout", false},
	{"connection write timeout", false},
	{"connection limit reached", true},
	{"TLS protocol error", false},
	{"TLS certificate error", true},
	{"TLS alert received", false},
	{"HTTP request denied by the host", true},
	{"HTTP request length required", false},
	{"HTTP request body size", false},
	{"HTTP request method invalid", false},
	{"HTTP request URI invalid", false},
	{"HTTP request URI too long", false},
	{"HTTP request header section size", false},
	{"HTTP request header size", false},
	{"HTTP request trailer section size", false},
	{"HTTP request trailer size", false},
	{"HTTP response incomplete", false},
	{"HTTP response header section size", false},
	{"HTTP response header size", false},
	{"HTTP response body size", false},
	{"HTTP response trailer section size", false},
	{"HTTP response trailer size", false},
	{"HTTP response transfer coding", false},
	{"HTTP response content coding", false},
	{"HTTP response timeout", false},
	{"HTTP upgrade failed", false},
	{"HTTP protocol error", false},
	{"loop detected", false},
	{"configuration error", false},
	{"internal error", false},
}

// Internal is the number of the only case whose detail helps.
const Internal = 38

// Error returns the error of a case; detail may be empty. It is marked with
// upstash.NotSent only if the request certainly never left.
func Error(code int, detail string) error {
	if code < 0 || code >= len(codes) {
		return errors.New("wasi:http: unknown error code")
	}
	text := "wasi:http: " + codes[code].name
	err := errors.New(text)
	if detail != "" {
		err = errors.New(text + ": " + detail)
	}
	if strings.HasSuffix(text, " timeout") {
		// The host's timeouts are the context's deadline.
		err = fmt.Errorf("%w: %w", err, context.DeadlineExceeded)
	}
	if codes[code].notSent {
		return upstash.NotSent(err)
	}
	return err
}
