package main

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// sentBody lends the body of a request to a transport, once. A transport may
// open it again as long as no byte was read. Once a byte was read, the request
// may have been executed, and another one would execute it twice: net/http
// opens it again if a server resets a stream of HTTP/2.
//
// If no byte was read, the request was certainly not executed, over any
// transport.
type sentBody struct {
	mu      sync.Mutex
	text    []byte
	last    *sentReader // the others return no byte
	taken   bool
	stopped bool
}

// stop makes all further reads fail and reports whether there was one before.
func (b *sentBody) stop() (taken bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	return b.taken
}

// open returns the whole body. It is the request's GetBody.
func (b *sentBody) open() (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken {
		return nil, errors.New("no request is sent twice")
	}
	b.last = &sentReader{body: b, rest: bytes.NewReader(b.text)}
	return io.NopCloser(b.last), nil
}

type sentReader struct {
	body *sentBody
	rest *bytes.Reader
}

func (r *sentReader) Read(p []byte) (int, error) {
	r.body.mu.Lock()
	defer r.body.mu.Unlock()
	if r.body.stopped || r != r.body.last {
		return 0, io.ErrClosedPipe // not io.EOF: the body must not look complete
	}
	r.body.taken = true
	return r.rest.Read(p)
}
