package upstashtest

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

const (
	headerEncoding  = "Upstash-Encoding"
	headerFormat    = "Upstash-Response-Format"
	headerSyncToken = "Upstash-Sync-Token"

	typeJSON   = "application/json"
	typeBinary = "application/octet-stream"
)

// encoding is the form of the answer that the client asked for.
type encoding struct {
	base64 bool
	resp2  bool
}

// parseEncoding reads the two headers. It refuses an unknown value, so that a
// test finds the mistake.
func parseEncoding(h http.Header) (encoding, error) {
	var e encoding
	switch strings.ToLower(h.Get(headerEncoding)) {
	case "":
	case "base64":
		e.base64 = true
	default:
		return e, errors.New("ERR unsupported Upstash-Encoding: use base64 or leave it out")
	}
	switch strings.ToLower(h.Get(headerFormat)) {
	case "", "json":
	case "resp2":
		e.resp2 = true
	default:
		return e, errors.New("ERR unsupported Upstash-Response-Format: use json or resp2")
	}
	if e.base64 && e.resp2 {
		return e, errors.New("ERR base64 encoding is not supported with the resp2 response format")
	}
	return e, nil
}

func (e encoding) contentType() string {
	if e.resp2 {
		return typeBinary
	}
	return typeJSON
}

// answer returns the body for the replies to a request: an object for a
// command, an array of objects for a batch. In RESP2 the replies to a pipeline
// stand one after another.
func (e encoding) answer(f form, replies database.Array) content {
	return func(w *bufio.Writer) {
		switch {
		case e.resp2:
			for _, r := range replies {
				database.WriteRESP(w, r)
			}
		case f == formCommand:
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

// failure returns the body of an answer that is an error as a whole: one
// object, also to a batch.
func (e encoding) failure(text string) content {
	return e.answer(formCommand, database.Array{database.Failure(text)})
}

func (e encoding) writeObject(w *bufio.Writer, r database.Reply) {
	if f, ok := r.(database.Failure); ok {
		_, _ = w.WriteString(`{"error":`)
		writeString(w, string(f))
	} else {
		_, _ = w.WriteString(`{"result":`)
		e.writeResult(w, r)
	}
	_ = w.WriteByte('}')
}

// writeResult encodes a result as JSON. Integers are bare and exact up to
// int64. Under base64 every string is encoded but the status OK, at any depth.
// A key whose value is the two letters OK is encoded.
func (e encoding) writeResult(w *bufio.Writer, r database.Reply) {
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

func (e encoding) writeText(w *bufio.Writer, s string) {
	if !e.base64 {
		writeString(w, s)
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

// writeString quotes s for JSON. Bytes that are not UTF-8 become U+FFFD.
func writeString(w *bufio.Writer, s string) {
	_ = w.WriteByte('"')
	start := 0 // of the bytes that are written as they are
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
// bytes. It returns "" for a character that needs none.
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
