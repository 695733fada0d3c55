package main

import (
	"bytes"
	"io"
	"sync"
)

// sentBody knows whether any of a request's body was taken. If none was, the
// request has certainly not been executed, whatever transport it went through.
type sentBody struct {
	mu      sync.Mutex
	text    []byte
	taken   bool
	stopped bool
}

// stop lets nobody take any more and reports whether somebody did before.
func (b *sentBody) stop() (taken bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	return b.taken
}

// open returns the whole body. A transport opens it again to try another way.
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
		return 0, io.ErrClosedPipe // never an end that looks whole
	}
	r.body.taken = true
	return r.rest.Read(p)
}
