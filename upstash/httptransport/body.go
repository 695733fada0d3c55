package httptransport

import (
	"errors"
	"io"
	"sync"
)

// loan lends a request's bytes to net/http, once. A RoundTripper may ask for
// another reader while no byte was read: its connection was dead before it
// wrote anything. Once a byte was read the request may have been written, and a
// second reader would send it again. Over HTTP/2 net/http asks for one if the
// server resets the stream, though the server may have executed the request
// before. Over HTTP/1 it does so if a header field calls the request
// idempotent.
//
// The readers may go on after Do has returned. After callBack they return no
// more bytes.
type loan struct {
	mu    sync.Mutex
	bytes []byte
	last  *reader // the others return no byte
	taken bool    // a byte was read
	over  bool
}

var errNotTwice = errors.New("the connection failed once the request had been taken, " +
	"and no request is sent twice")

// callBack ends the loan. It reports whether any byte was read, and whether the
// loan ended with a part of them read. Once it has returned, the caller may write
// to the bytes again.
func (l *loan) callBack() (taken, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	cut = l.taken && l.last.off < len(l.bytes)
	l.bytes, l.over = nil, true
	return l.taken, cut
}

// reader is the GetBody of the request.
func (l *loan) reader() (io.ReadCloser, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken {
		return nil, errNotTwice
	}
	l.last = &reader{loan: l}
	return io.NopCloser(l.last), nil
}

type reader struct {
	loan *loan
	off  int
}

// Read does not return io.EOF after the end of the loan, because a part of a
// request would then look like the whole.
func (r *reader) Read(p []byte) (int, error) {
	r.loan.mu.Lock()
	defer r.loan.mu.Unlock()
	if r.loan.over || r != r.loan.last {
		return 0, io.ErrClosedPipe
	}
	if r.off == len(r.loan.bytes) {
		r.loan.taken = true // an empty body is nothing but its end
		return 0, io.EOF
	}
	n := copy(p, r.loan.bytes[r.off:])
	r.loan.taken = r.loan.taken || n > 0
	r.off += n
	return n, nil
}
