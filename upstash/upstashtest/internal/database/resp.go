package database

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unsafe"
)

// WriteRESP encodes a reply as RESP2.
func WriteRESP(w *bufio.Writer, r Reply) {
	length := func(kind byte, n int) { _, _ = w.Write(appendLength(w.AvailableBuffer(), kind, n)) }
	line := func(kind byte, text string) {
		_ = w.WriteByte(kind)
		_, _ = w.WriteString(text)
		_, _ = w.WriteString("\r\n")
	}
	switch r := r.(type) {
	case int64:
		_, _ = w.Write(append(strconv.AppendInt(append(w.AvailableBuffer(), ':'), r, 10), "\r\n"...))
	case Status:
		line('+', string(r))
	case Failure:
		line('-', string(r))
	case Bulk:
		length('$', len(r))
		_, _ = w.WriteString(string(r))
		_, _ = w.WriteString("\r\n")
	case Array:
		length('*', len(r))
		for _, el := range r {
			WriteRESP(w, el)
		}
	default:
		length('$', -1)
	}
}

// readReply reads one reply in RESP2.
func readReply(r *bufio.Reader) (Reply, error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	kind, text := line[0], line[1:]
	switch kind {
	case '+':
		return Status(text), nil
	case '-':
		return Failure(text), nil
	}
	n, ok := parseInt(string(text))
	switch {
	case !ok:
		return nil, fmt.Errorf("no number in %q", line)
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case n > maxString || kind != '$' && kind != '*':
		return nil, fmt.Errorf("not a reply: %q", line)
	case kind == '$':
		return readBulk(r, int(n))
	}
	out := make(Array, n)
	for i := range out {
		if out[i], err = readReply(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readBulk reads n bytes and the end of their line.
func readBulk(r *bufio.Reader, n int) (Reply, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	if _, err := r.Discard(len("\r\n")); err != nil {
		return nil, err
	}
	return Bulk(unsafe.String(unsafe.SliceData(b), n)), nil // without a copy of up to 512 MB
}

// readLine reads a line of at least one byte. It is valid until the next read.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) { // the error of a script may be long
		var rest []byte
		line = bytes.Clone(line)
		rest, err = r.ReadBytes('\n')
		line = append(line, rest...)
	}
	if err != nil {
		return nil, err
	}
	line, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok || len(line) == 0 {
		return nil, fmt.Errorf("not a reply: %q", line)
	}
	return line, nil
}
