package wire

import (
	"bufio"
	"bytes"
	"io"
	"sync"
)

// Body writes the body of an answer. It can be called more than once. The
// body is never held in memory: a string may have 100 MB, and six times that in
// JSON.
type Body func(w *bufio.Writer)

// Fixed returns a body that is known.
func Fixed(body string) Body {
	return func(w *bufio.Writer) { _, _ = w.WriteString(body) }
}

var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}

// SendTo writes the body to w. It stops at an error of w.
func (b Body) SendTo(w io.Writer) {
	if b == nil {
		return
	}
	buf := writers.Get().(*bufio.Writer)
	defer writers.Put(buf)
	buf.Reset(w)
	b(buf)
	_ = buf.Flush()
	buf.Reset(nil)
}

// Size returns the length of the body in bytes.
func (b Body) Size() int64 {
	var n counter
	b.SendTo(&n)
	return int64(n)
}

// Bytes returns the body.
func (b Body) Bytes() []byte {
	var out bytes.Buffer
	b.SendTo(&out)
	return out.Bytes()
}

// counter counts what is written to it.
type counter int64

func (n *counter) Write(p []byte) (int, error) {
	*n += counter(len(p))
	return len(p), nil
}
