package upstash

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// Transport carries one HTTP request and brings back its response. Package
// httptransport adapts any *http.Client.
//
// It must be safe for concurrent use. RoundTrip sends the request at most once,
// follows no redirect, and returns as soon as ctx is done. It touches neither
// req nor resp from then on. A nil error means that the whole response came,
// whatever its status.
type Transport interface {
	RoundTrip(ctx context.Context, req *Request, resp *Response) error
}

// Request is the POST that a [Transport] sends, and must not keep. It prints as
// its scheme and host, because the path may hold a key; but in an unexported
// field, fmt prints all of it.
type Request struct {
	URL    string   // absolute, without query, fragment or user info
	Header []Header // all fields but Host and Content-Length, in order
	Body   []byte   // one JSON document, or that of a [RawCmd]
	// MaxResponse is the longest body to read, in bytes, at least 1. For a
	// longer one a transport returns [ErrResponseTooLarge].
	MaxResponse int
}

func (r Request) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.text()) }

func (r Request) MarshalText() ([]byte, error) { return []byte(r.text()), nil }

func (r Request) text() string {
	scheme, rest, _ := strings.Cut(r.URL, "://")
	host, _, _ := strings.Cut(rest, "/")
	return "upstash.Request(POST " + scheme + "://" + host + ")"
}

// Header is one field of a request. It prints as its name, but see [Request].
type Header struct{ Name, Value string }

func (h Header) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, h.text()) }

func (h Header) MarshalText() ([]byte, error) { return []byte(h.text()), nil }

func (h Header) text() string { return h.Name + ": " + redacted }

// Response is what a [Transport] fills in. The zero value is ready to use.
type Response struct {
	StatusCode int // of HTTP
	// Body is the whole body. A transport appends to it, or replaces it with a
	// slice that nothing writes to later.
	Body []byte

	syncToken  string
	sentToken  string // of the request: a token that stays needs no memory
	retryAfter string
}

// SetHeader passes on a field, with its name in any letter case.
func (r *Response) SetHeader(name, value string) {
	if strings.EqualFold(name, headerSyncToken) {
		r.syncToken = value
	} else if strings.EqualFold(name, headerRetryAfter) {
		r.retryAfter = value
	}
}

const (
	headerSyncToken  = "upstash-sync-token"
	headerRetryAfter = "retry-after"
)

// NotSent marks the error of a [Transport] whose request did not reach the server
// whole: the command did not run. After any other error it may have. Return it as
// it is: an error that wraps it proves nothing. NotSent(nil) is nil.
func NotSent(err error) error {
	if err == nil {
		return nil
	}
	return &notSentError{err}
}

type notSentError struct{ err error }

func (e *notSentError) Error() string { return e.err.Error() }
func (e *notSentError) Unwrap() error { return e.err }

// errNoAnswer is the error of a connection that was closed before the first byte
// of an answer.
var errNoAnswer = fmt.Errorf("the connection was closed without an answer: %w", io.ErrUnexpectedEOF)
