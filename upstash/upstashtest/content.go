package upstashtest

import (
	"bufio"
	"bytes"
	"io"
	"sync"
)

// content writes the body of an answer, as often as it is asked to. A string
// may have 100 MB, and six times that in JSON: it is never held in memory.
type content func(w *bufio.Writer)

// fixed is a body that is there already.
func fixed(body string) content {
	return func(w *bufio.Writer) { _, _ = w.WriteString(body) }
}

var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}

// writeTo writes the body to w, whose errors end it early.
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

// size is the length of the body in bytes.
func (c content) size() int64 {
	var n counter
	c.writeTo(&n)
	return int64(n)
}

// bytes is the body in memory.
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
