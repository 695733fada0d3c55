package database

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/alicebob/miniredis/v2/server"
)

// AppendRESP encodes a reply as RESP2.
func AppendRESP(b []byte, r Reply) []byte {
	switch r := r.(type) {
	case int64:
		b = strconv.AppendInt(append(b, ':'), r, 10)
	case Status:
		b = append(append(b, '+'), r...)
	case Failure:
		b = append(append(b, '-'), r...)
	case Bulk:
		b = strconv.AppendInt(append(b, '$'), int64(len(r)), 10)
		b = append(append(b, "\r\n"...), r...)
	case Array:
		b = strconv.AppendInt(append(b, '*'), int64(len(r)), 10)
		b = append(b, "\r\n"...)
		for _, el := range r {
			b = AppendRESP(b, el)
		}
		return b
	default:
		b = append(b, "$-1"...)
	}
	return append(b, "\r\n"...)
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

// writeReply sends a reply to a Lua script.
func writeReply(c *server.Peer, r Reply) {
	switch r := r.(type) {
	case nil:
		c.WriteNull()
	case Failure:
		c.WriteError(string(r))
	case Status:
		c.WriteInline(string(r))
	case Bulk:
		c.WriteBulk(string(r))
	case int64:
		c.WriteRaw(":" + strconv.FormatInt(r, 10) + "\r\n")
	case Array:
		c.WriteLen(len(r))
		for _, e := range r {
			writeReply(c, e)
		}
	}
}
