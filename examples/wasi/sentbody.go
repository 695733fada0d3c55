package main

import (
	"bytes"
	"io"
	"sync"
)

// sentBody records whether a transport has read any byte of a request's body.
// If it has read none, the request was certainly not executed. That holds for
// every transport.
type sentBody struct {
	mu      sync.Mutex
	text    []byte
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

// open returns the whole body. A transport opens it again for another attempt.
func (b *sentBody) open() (io.ReadCloser, error) {
	return io.NopCloser(&sentReader{body: b, rest: bytes.NewReader(b.text)}), nil
}

type sentReader struct {
	body *sentBody
	rest *bytes.Reader
}

func (r *sentReader) Read(p []byte) (int, error) {
	r.body.mu.Lock()
	defer r.body.mu.Unlock()
	if r.body.stopped {
		return 0, io.ErrClosedPipe // not io.EOF: the body must not look complete
	}
	r.body.taken = true
	return r.rest.Read(p)
}
