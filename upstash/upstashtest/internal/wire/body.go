package wire

import (
	"bufio"
	"bytes"
	"io"
	"sync"
)

// Body writes the body of an answer, as often as it is called. The body is
// never held in memory: a string may have 100 MB, and six times that in JSON.
type Body func(w *bufio.Writer)

// Fixed returns a body of this text.
func Fixed(body string) Body {
	return func(w *bufio.Writer) { _, _ = w.WriteString(body) }
}

var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}

// SendTo writes the body to w. Before that it calls begin with the length of the
// body. It stops at an error of w.
func (b Body) SendTo(w io.Writer, begin func(size int64)) {
	if b == nil {
		begin(0)
		return
	}
	buf := writers.Get().(*bufio.Writer)
	defer writers.Put(buf)
	var out outlet
	buf.Reset(&out)
	b(buf)
	begin(out.counted + int64(buf.Buffered()))
	if out.w = w; out.counted > 0 { // the buffer has but the end
		buf.Reset(&out)
		b(buf)
	}
	_ = buf.Flush()
	buf.Reset(nil)
}

// Bytes returns the body.
func (b Body) Bytes() []byte {
	var out bytes.Buffer
	b.SendTo(&out, func(int64) {})
	return out.Bytes()
}

// outlet passes on its input. Without a writer it only counts.
type outlet struct {
	w       io.Writer
	counted int64
}

func (o *outlet) Write(p []byte) (int, error) {
	if o.w != nil {
		return o.w.Write(p)
	}
	o.counted += int64(len(p))
	return len(p), nil
}
