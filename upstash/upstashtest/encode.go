package upstashtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
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

// encoding is what the client asked the answer to look like.
type encoding struct {
	base64 bool
	resp2  bool
}

// parseEncoding reads the two headers. A value that it does not know is refused
// rather than ignored, so that a test finds the mistake.
func parseEncoding(h http.Header) (encoding, error) {
	var e encoding
	switch v := h.Get(headerEncoding); v {
	case "":
	case "base64":
		e.base64 = true
	default:
		return e, errors.New("ERR unsupported Upstash-Encoding: use base64 or leave it out")
	}
	switch v := h.Get(headerFormat); v {
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

// answer is the body of a request's replies: an object for a command, an array
// of objects for a batch. In RESP2 those of a pipeline stand one after another.
func (e encoding) answer(f form, replies database.Array) []byte {
	if e.resp2 {
		var b []byte
		for _, r := range replies {
			b = database.AppendRESP(b, r)
		}
		return b
	}
	if f == formCommand {
		return e.appendObject(nil, replies[0])
	}
	b := []byte{'['}
	for i, r := range replies {
		if i > 0 {
			b = append(b, ',')
		}
		b = e.appendObject(b, r)
	}
	return append(b, ']')
}

// failure is the body of an answer that is an error as a whole: one object even
// where an array was asked for.
func (e encoding) failure(text string) []byte {
	if e.resp2 {
		return database.AppendRESP(nil, database.Failure(text))
	}
	return e.appendObject(nil, database.Failure(text))
}

func (e encoding) appendObject(b []byte, r database.Reply) []byte {
	if f, ok := r.(database.Failure); ok {
		b = append(b, `{"error":`...)
		b = appendString(b, string(f))
	} else {
		b = append(b, `{"result":`...)
		b = e.appendResult(b, r)
	}
	return append(b, '}')
}

// appendResult encodes a result as JSON. Integers are bare and exact up to
// int64. Under base64 only the status OK stays as it is, at any depth; a string
// that holds the letters OK does not.
func (e encoding) appendResult(b []byte, r database.Reply) []byte {
	switch r := r.(type) {
	case int64:
		return strconv.AppendInt(b, r, 10)
	case database.Status:
		if r == "OK" {
			return append(b, `"OK"`...)
		}
		return e.appendText(b, string(r))
	case database.Bulk:
		return e.appendText(b, string(r))
	case database.Failure:
		return e.appendText(b, string(r))
	case database.Array:
		b = append(b, '[')
		for i, el := range r {
			if i > 0 {
				b = append(b, ',')
			}
			b = e.appendResult(b, el)
		}
		return append(b, ']')
	}
	return append(b, "null"...)
}

func (e encoding) appendText(b []byte, s string) []byte {
	if !e.base64 {
		return appendString(b, s)
	}
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, []byte(s))
	return append(b, '"')
}

// appendString quotes s for JSON. Bytes that are not UTF-8 become U+FFFD.
func appendString(b []byte, s string) []byte {
	if isPlain(s) {
		b = append(b, '"')
		b = append(b, s...)
		return append(b, '"')
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // cannot fail on a string
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
}

// isPlain reports whether s needs no escape: true of nearly all that filters
// send, and cheaper than the encoder.
func isPlain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
