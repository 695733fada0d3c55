package upstash

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
)

// Transport carries one HTTP request and brings back its response. It is the
// only thing between this package and the network: the default is fasthttp
// natively and fetch on js/wasm, and package upstash/httptransport adapts any
// *http.Client.
//
// An implementation must be safe for concurrent use. It sends the request at
// most once, follows no redirect, and returns as soon as ctx is done. Once
// RoundTrip has returned, it touches neither req nor resp again.
//
// A nil error means that the whole response arrived, whatever its status. After
// an error made with [NotSent], the request certainly did not reach the server
// whole, and so was not executed; after any other error it may have been.
type Transport interface {
	RoundTrip(ctx context.Context, req *Request, resp *Response) error
}

// Request is what a [Transport] sends: always a POST. It belongs to the client
// and must not be kept. It is not safe for concurrent use.
type Request struct {
	// URL is absolute and has no query, no fragment and no user info.
	URL string
	// Header holds the fields in the order of sending, Content-Type and
	// Authorization among them. Host and Content-Length are the transport's own
	// business.
	Header []Header
	// Body is one JSON document, or the bytes that [RawCmd] was given.
	Body []byte
	// MaxResponse is the longest body to read, in bytes, and always above zero.
	// If the body is longer, a transport returns [ErrResponseTooLarge].
	MaxResponse int
}

// Format writes the scheme and host alone for every verb: no token, no body,
// and no path, which may hold a key. Do not print a struct with an unexported
// field of this type: fmt does not call Format there.
func (r Request) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.text()) }

// MarshalText returns what Format writes, for log/slog and JSON.
func (r Request) MarshalText() ([]byte, error) { return []byte(r.text()), nil }

func (r Request) text() string {
	scheme, rest, _ := strings.Cut(r.URL, "://")
	host, _, _ := strings.Cut(rest, "/")
	return "upstash.Request(POST " + scheme + "://" + host + ")"
}

// Header is one field of an HTTP request.
type Header struct{ Name, Value string }

// Format writes the name alone for every verb, because the value may be the
// token. As for [Request], fmt does not call it in an unexported field.
func (h Header) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, h.text()) }

// MarshalText returns what Format writes, for log/slog and JSON.
func (h Header) MarshalText() ([]byte, error) { return []byte(h.text()), nil }

func (h Header) text() string { return h.Name + ": " + redacted }

// Response is what a [Transport] fills in. The zero value is ready to use. It
// is not safe for concurrent use.
type Response struct {
	// StatusCode is the HTTP status.
	StatusCode int
	// Body is the whole body. A transport appends to it, or replaces it with a
	// slice of its own that nothing writes to later.
	Body []byte

	syncToken  string
	sentToken  string // of the request: a token that stays needs no memory
	retryAfter string
}

// SetHeader passes one field of the response to the client, which keeps the few
// it understands. The name may be in any letter case.
func (r *Response) SetHeader(name, value string) {
	switch {
	case strings.EqualFold(name, headerSyncToken):
		r.syncToken = value
	case strings.EqualFold(name, headerRetryAfter):
		r.retryAfter = value
	}
}

// WantsHeader reports whether [Response.SetHeader] would keep a field of this
// name. A transport can ask before it makes strings of a field.
func (r *Response) WantsHeader(name []byte) bool {
	return bytes.EqualFold(name, []byte(headerSyncToken)) || bytes.EqualFold(name, []byte(headerRetryAfter))
}

const (
	headerSyncToken  = "upstash-sync-token"
	headerRetryAfter = "retry-after"
)

// NotSent marks err as the error of a request that certainly did not reach the
// server whole: a dial or TLS handshake failed, or a write was cut short. The
// client repeats such an attempt for any command. A [Transport] must return the
// error of NotSent as it is: an error that wraps it proves nothing. NotSent
// returns nil for nil.
func NotSent(err error) error {
	if err == nil {
		return nil
	}
	return &notSentError{err}
}

type notSentError struct{ err error }

func (e *notSentError) Error() string { return e.err.Error() }
func (e *notSentError) Unwrap() error { return e.err }
