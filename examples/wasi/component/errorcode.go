//go:build wasip1

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/upbloom/upbloom/upstash"
)

// errorCodes are the cases of wasi:http's error-code, in their order, and
// whether each says for certain that the request never left.
//
// connection-timeout is not among those: jco's host also gives it when the
// connection stands and the server is silent.
var errorCodes = [...]struct {
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
	{"TLS protocol error", true},
	{"TLS certificate error", true},
	{"TLS alert received", true},
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

// internalError is the one case whose text is worth reading.
const internalError = 38

// errorCode makes an error of the error-code at a byte offset of the result.
func errorCode(offset uintptr) error {
	code := int(ret8(offset))
	if code >= len(errorCodes) {
		return errors.New("wasi:http: unknown error code")
	}
	text := "wasi:http: " + errorCodes[code].name
	if code == internalError && ret8(offset+8) == 1 {
		text += ": " + string(retBytes(offset+12))
	}
	err := errors.New(text)
	if strings.HasSuffix(text, " timeout") {
		// The host's timeouts are the context's deadline; see limit.
		err = fmt.Errorf("%w: %w", err, context.DeadlineExceeded)
	}
	if errorCodes[code].notSent {
		return upstash.NotSent(err)
	}
	return err
}
