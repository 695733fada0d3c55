package wire

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
)

// The headers and content types of the REST API.
const (
	HeaderEncoding  = "Upstash-Encoding"
	HeaderFormat    = "Upstash-Response-Format"
	HeaderSyncToken = "Upstash-Sync-Token"

	TypeJSON   = "application/json"
	typeBinary = "application/octet-stream"
)

// Encoding is the form of the answer the client asked for.
type Encoding struct {
	RESP2  bool
	base64 bool
}

// ParseEncoding reads the two headers. It refuses an unknown value: a test then
// finds the mistake.
func ParseEncoding(h http.Header) (Encoding, error) {
	var e Encoding
	switch strings.ToLower(h.Get(HeaderEncoding)) {
	case "":
	case "base64":
		e.base64 = true
	default:
		return e, errors.New("ERR unsupported Upstash-Encoding: use base64 or leave it out")
	}
	switch strings.ToLower(h.Get(HeaderFormat)) {
	case "", "json":
	case "resp2":
		e.RESP2 = true
	default:
		return e, errors.New("ERR unsupported Upstash-Response-Format: use json or resp2")
	}
	if e.base64 && e.RESP2 {
		return e, errors.New("ERR base64 encoding is not supported with the resp2 response format")
	}
	return e, nil
}

// ContentType returns the content type of the answer.
func (e Encoding) ContentType() string {
	if e.RESP2 {
		return typeBinary
	}
	return TypeJSON
}

// Answer returns the body for the replies to a request: an object for a
// command, an array of objects for a batch. In RESP2 the replies to a pipeline
// stand one after another.
func (e Encoding) Answer(f Form, replies database.Array) Body {
	return func(w *bufio.Writer) {
		switch {
		case e.RESP2:
			for _, r := range replies {
				database.WriteRESP(w, r)
			}
		case f == Command:
			e.writeObject(w, replies[0])
		default:
			for i, r := range replies {
				_ = w.WriteByte("[,"[min(i, 1)])
				e.writeObject(w, r)
			}
			_ = w.WriteByte(']')
		}
	}
}

// Failure returns the body of an answer that is an error as a whole: one
// object, also to a batch.
func (e Encoding) Failure(text string) Body {
	return e.Answer(Command, database.Array{database.Failure(text)})
}

func (e Encoding) writeObject(w *bufio.Writer, r database.Reply) {
	if f, ok := r.(database.Failure); ok {
		_, _ = w.WriteString(`{"error":`)
		WriteString(w, string(f))
	} else {
		_, _ = w.WriteString(`{"result":`)
		e.writeResult(w, r)
	}
	_ = w.WriteByte('}')
}

// writeResult encodes a result as JSON. Integers are bare and exact up to
// int64. With base64, every string at any depth is encoded, except the status
// OK. A key's value "OK" is encoded.
func (e Encoding) writeResult(w *bufio.Writer, r database.Reply) {
	switch r := r.(type) {
	case int64:
		_, _ = w.Write(strconv.AppendInt(w.AvailableBuffer(), r, 10))
	case database.Status:
		if r == "OK" {
			_, _ = w.WriteString(`"OK"`)
			return
		}
		e.writeText(w, string(r))
	case database.Bulk:
		e.writeText(w, string(r))
	case database.Failure: // inside an array
		e.writeText(w, string(r))
	case database.Array:
		_ = w.WriteByte('[')
		for i, el := range r {
			if i > 0 {
				_ = w.WriteByte(',')
			}
			e.writeResult(w, el)
		}
		_ = w.WriteByte(']')
	default:
		_, _ = w.WriteString("null")
	}
}

func (e Encoding) writeText(w *bufio.Writer, s string) {
	if !e.base64 {
		WriteString(w, s)
		return
	}
	_ = w.WriteByte('"')
	var part [3 << 10]byte // a multiple of three leaves no padding in between
	for len(s) > 0 {
		n := copy(part[:], s)
		s = s[n:]
		_, _ = w.Write(base64.StdEncoding.AppendEncode(w.AvailableBuffer(), part[:n]))
	}
	_ = w.WriteByte('"')
}

// WriteString quotes s for JSON. Bytes that are not UTF-8 become U+FFFD.
func WriteString(w *bufio.Writer, s string) {
	_ = w.WriteByte('"')
	start := 0 // of the bytes to write as they are
	for i := 0; i < len(s); {
		escape, n := "", 1
		if c := s[i]; c < utf8.RuneSelf {
			escape = asciiEscapes[c]
		} else {
			escape, n = wideEscape(s[i:])
		}
		if escape != "" {
			if start < i {
				_, _ = w.WriteString(s[start:i])
			}
			_, _ = w.WriteString(escape)
			start = i + n
		}
		i += n
	}
	_, _ = w.WriteString(s[start:])
	_ = w.WriteByte('"')
}

// wideEscape returns the escape of the character at the start of s, which has n
// bytes. It returns "" if the character needs none.
func wideEscape(s string) (escape string, n int) {
	c, n := utf8.DecodeRuneInString(s)
	switch {
	case c == '\u2028':
		return `\u2028`, n
	case c == '\u2029':
		return `\u2029`, n
	case c == utf8.RuneError && n == 1:
		return `\ufffd`, n
	}
	return "", n
}

// asciiEscapes holds the escape of each character, or "" if it needs none.
var asciiEscapes = func() (list [utf8.RuneSelf]string) {
	for c := range ' ' {
		list[c] = fmt.Sprintf(`\u%04x`, c)
	}
	list['\b'], list['\f'], list['\n'], list['\r'], list['\t'] = `\b`, `\f`, `\n`, `\r`, `\t`
	list['"'], list['\\'] = `\"`, `\\`
	return list
}()
