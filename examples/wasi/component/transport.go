//go:build wasip1

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"github.com/upbloom/upbloom/upstash"
)

// transport is an upstash.Transport over wasi:http/outgoing-handler. It has no
// state and is safe for concurrent use: while one call waits for the host, no
// other goroutine runs.
//
// For the same reason no timer of Go fires while it waits. Therefore the host
// gets the context's deadline twice: as the request's timeouts, which some
// hosts ignore, and as a clock watched by every wait.
type transport struct{}

// RoundTrip sends one request. See upstash.Transport.
func (transport) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	limit, err := limitOf(ctx)
	if err != nil {
		return upstash.NotSent(err)
	}
	defer limit.drop()

	request, err := newRequest(req)
	if err != nil {
		return upstash.NotSent(err)
	}
	requestBody(request, ret())
	body := ret32(4) // cannot fail: it is the first call for this request

	// From here on, the host owns the request.
	list(func() { handleOutgoing(request, 1, limit.options(), ret()) })
	if ret8(0) != 0 {
		dropOutgoingBody(body)
		return errorCode(8)
	}
	future := ret32(8)
	defer dropFuture(future)

	// If a write broke, the future has the reason, or even an answer.
	err = writeBody(body, req.Body, limit, future)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, errAnswered):
		defer dropOutgoingBody(body) // after the answer, which may end with it
	}
	if _, err := limit.wait(futureSubscribe(future)); err != nil {
		return err
	}
	list(func() { futureGet(future, ret()) })
	switch {
	case ret8(0) == 0 || ret8(8) != 0:
		return errors.New("wasi:http: the host reports a response and has none")
	case ret8(16) != 0:
		return errorCode(24)
	}
	return readResponse(ret32(24), limit, req.MaxResponse, resp)
}

const (
	methodPost  = 2
	schemeHTTP  = 0
	schemeHTTPS = 1
)

// newRequest makes the outgoing-request without its body.
func newRequest(req *upstash.Request) (uint32, error) {
	scheme := uint32(schemeHTTPS)
	rest, ok := strings.CutPrefix(req.URL, "https://")
	if !ok {
		scheme = schemeHTTP
		rest = strings.TrimPrefix(req.URL, "http://")
	}
	authority, path, _ := strings.Cut(rest, "/")

	fields := newFields()
	for _, h := range req.Header {
		appendField(fields, h.Name, h.Value)
	}
	// Without a length the host may choose chunked encoding.
	appendField(fields, "Content-Length", strconv.Itoa(len(req.Body)))

	request := newOutgoingRequest(fields)
	failed := requestSetMethod(request, methodPost, "") |
		requestSetScheme(request, 1, scheme, "") |
		requestSetAuthority(request, 1, authority) |
		requestSetPath(request, 1, "/"+path)
	if failed != 0 {
		dropOutgoingRequest(request)
		return 0, errors.New("wasi:http: the host refuses the URL's host or path")
	}
	return request, nil
}

// appendField adds one header field. A host may forbid some names. If those
// fields matter, it adds them itself.
func appendField(fields uint32, name, value string) {
	fieldsAppend(fields, name, unsafe.Pointer(unsafe.StringData(value)), uint32(len(value)), ret())
}

// readResponse reads the status, the fields for the client, and the body.
func readResponse(response uint32, limit *limit, longest int, resp *upstash.Response) error {
	defer dropIncomingResponse(response)
	resp.StatusCode = int(responseStatus(response))

	fields := responseHeaders(response)
	for _, name := range []string{"upstash-sync-token", "retry-after"} {
		if value := field(fields, name); value != "" {
			resp.SetHeader(name, value)
		}
	}
	length, _ := strconv.Atoi(field(fields, "content-length"))
	dropFields(fields)
	if length > longest {
		return tooLarge(longest)
	}

	responseConsume(response, ret())
	body := ret32(4)
	defer dropIncomingBody(body)
	bodyStream(body, ret())
	stream := ret32(4)
	defer dropInputStream(stream)

	for {
		data, err := read(stream, limit)
		switch {
		case errors.Is(err, errClosed):
			return nil
		case err != nil:
			return err
		case len(resp.Body)+len(data) > longest:
			return tooLarge(longest)
		}
		resp.Body = append(resp.Body, data...)
	}
}

func tooLarge(longest int) error {
	return fmt.Errorf("%w: over %d bytes", upstash.ErrResponseTooLarge, longest)
}
