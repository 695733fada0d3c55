package httptransport

import (
	"io"
	"sync"
)

// loan lends a request's bytes to net/http, which may go on reading them after
// Do has returned, and may ask for them again where a connection was dead
// before a byte was written. Once called back it gives nothing more.
type loan struct {
	mu    sync.Mutex
	bytes []byte
	over  bool
}

// callBack ends the loan: when it has returned, no copy is under way, and the
// caller may write to the bytes again.
func (l *loan) callBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes, l.over = nil, true
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
		return 0, io.EOF
	}
	n := copy(p, r.loan.bytes[r.off:])
	r.off += n
	return n, nil
}
