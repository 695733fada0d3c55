package httptransport

import (
	"io"
	"sync"
)

// loan lends a request's bytes to net/http, which may go on reading them after
// Do has returned, and may ask for them again if a connection was dead before a
// byte was written. Once called back it hands out nothing more.
type loan struct {
	mu    sync.Mutex
	bytes []byte
	taken bool // a byte was handed out
	over  bool
}

// callBack ends the loan and reports whether any byte was handed out. When it
// has returned, no copy is under way, and the caller may write to the bytes
// again.
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

// Read never ends a loan that is over in EOF, which would make a part of a
// request look like the whole.
func (r *reader) Read(p []byte) (int, error) {
	r.loan.mu.Lock()
	defer r.loan.mu.Unlock()
	switch {
	case r.loan.over:
		return 0, io.ErrClosedPipe
	case r.off == len(r.loan.bytes):
		r.loan.taken = true // of an empty body, its end is the whole of it
		return 0, io.EOF
	}
	n := copy(p, r.loan.bytes[r.off:])
	r.loan.taken = r.loan.taken || n > 0
	r.off += n
	return n, nil
}
