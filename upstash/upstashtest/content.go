package upstashtest

import (
	"bufio"
	"bytes"
	"io"
	"sync"
)

// content writes the body of an answer. It can be called more than once. The
// body is never held in memory: a string may have 100 MB, and six times that in
// JSON.
type content func(w *bufio.Writer)

// fixed returns a body that is known.
func fixed(body string) content {
	return func(w *bufio.Writer) { _, _ = w.WriteString(body) }
}

var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}

// writeTo writes the body to w. It stops at an error of w.
func (c content) writeTo(w io.Writer) {
	if c == nil {
		return
	}
	b := writers.Get().(*bufio.Writer)
	defer writers.Put(b)
	b.Reset(w)
	c(b)
	_ = b.Flush()
	b.Reset(nil)
}

// size returns the length of the body in bytes.
func (c content) size() int64 {
	var n counter
	c.writeTo(&n)
	return int64(n)
}

// bytes returns the body.
func (c content) bytes() []byte {
	var b bytes.Buffer
	c.writeTo(&b)
	return b.Bytes()
}

// counter counts what is written to it.
type counter int64

func (n *counter) Write(p []byte) (int, error) {
	*n += counter(len(p))
	return len(p), nil
}
