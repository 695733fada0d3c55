package database

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
)

// WriteRESP encodes a reply as RESP2.
func WriteRESP(w *bufio.Writer, r Reply) {
	length := func(kind byte, n int64) {
		_, _ = w.Write(append(strconv.AppendInt(append(w.AvailableBuffer(), kind), n, 10), "\r\n"...))
	}
	line := func(kind byte, text string) {
		_ = w.WriteByte(kind)
		_, _ = w.WriteString(text)
		_, _ = w.WriteString("\r\n")
	}
	switch r := r.(type) {
	case int64:
		length(':', r)
	case Status:
		line('+', string(r))
	case Failure:
		line('-', string(r))
	case Bulk:
		length('$', int64(len(r)))
		_, _ = w.WriteString(string(r))
		_, _ = w.WriteString("\r\n")
	case Array:
		length('*', int64(len(r)))
		for _, el := range r {
			WriteRESP(w, el)
		}
	default:
		length('$', -1)
	}
}

// readReply parses one RESP2 reply.
func readReply(b *bytes.Buffer) (Reply, error) {
	line, err := b.ReadString('\n')
	if err != nil || len(line) < 3 {
		return nil, fmt.Errorf("cut short at %q", line)
	}
	kind, text := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return Status(text), nil
	case '-':
		return Failure(text), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return nil, err
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case kind == '$':
		s := string(b.Next(int(n)))
		b.Next(2)
		return Bulk(s), nil
	case kind != '*':
		return nil, fmt.Errorf("unknown kind %q", kind)
	}
	out := make(Array, n)
	for i := range out {
		if out[i], err = readReply(b); err != nil {
			return nil, err
		}
	}
	return out, nil
}
