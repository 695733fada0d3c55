package upstashtest

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/alicebob/miniredis/v2/server"
)

// appendRESP encodes a reply as RESP2.
func appendRESP(b []byte, r reply) []byte {
	switch r := r.(type) {
	case int64:
		b = strconv.AppendInt(append(b, ':'), r, 10)
	case status:
		b = append(append(b, '+'), r...)
	case failure:
		b = append(append(b, '-'), r...)
	case bulk:
		b = strconv.AppendInt(append(b, '$'), int64(len(r)), 10)
		b = append(append(b, "\r\n"...), r...)
	case array:
		b = strconv.AppendInt(append(b, '*'), int64(len(r)), 10)
		b = append(b, "\r\n"...)
		for _, el := range r {
			b = appendRESP(b, el)
		}
		return b
	default:
		b = append(b, "$-1"...)
	}
	return append(b, "\r\n"...)
}

// readReply parses one RESP2 reply.
func readReply(b *bytes.Buffer) (reply, error) {
	line, err := b.ReadString('\n')
	if err != nil || len(line) < 3 {
		return nil, fmt.Errorf("cut short at %q", line)
	}
	kind, text := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return status(text), nil
	case '-':
		return failure(text), nil
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
		return bulk(s), nil
	case kind != '*':
		return nil, fmt.Errorf("unknown kind %q", kind)
	}
	out := make(array, n)
	for i := range out {
		if out[i], err = readReply(b); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// writeReply sends a reply to a Lua script.
func writeReply(c *server.Peer, r reply) {
	switch r := r.(type) {
	case nil:
		c.WriteNull()
	case failure:
		c.WriteError(string(r))
	case status:
		c.WriteInline(string(r))
	case bulk:
		c.WriteBulk(string(r))
	case int64:
		c.WriteRaw(":" + strconv.FormatInt(r, 10) + "\r\n")
	case array:
		c.WriteLen(len(r))
		for _, e := range r {
			writeReply(c, e)
		}
	}
}
