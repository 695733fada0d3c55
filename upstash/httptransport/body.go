package httptransport

import (
	"io"
	"sync"
)

// loan lends a request's bytes to net/http. Their readers may go on after Do
// has returned, and net/http may ask for another one if a connection was dead
// before a byte was written. After callBack the readers return no more bytes.
type loan struct {
	mu    sync.Mutex
	bytes []byte
	taken bool // a byte was read
	over  bool
}

// callBack ends the loan and reports whether any byte was read. Once it has
// returned, the caller may write to the bytes again.
func (l *loan) callBack() (taken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes, l.over = nil, true
	return l.taken
}

func (l *loan) reader() (io.ReadCloser, error) { return io.NopCloser(&reader{loan: l}), nil }

type reader struct {
	loan *loan
	off  int
}

// Read does not return io.EOF after the end of the loan, because a part of a
// request would then look like the whole.
func (r *reader) Read(p []byte) (int, error) {
	r.loan.mu.Lock()
	defer r.loan.mu.Unlock()
	switch {
	case r.loan.over:
		return 0, io.ErrClosedPipe
	case r.off == len(r.loan.bytes):
		r.loan.taken = true // an empty body is nothing but its end
		return 0, io.EOF
	}
	n := copy(p, r.loan.bytes[r.off:])
	r.loan.taken = r.loan.taken || n > 0
	r.off += n
	return n, nil
}
