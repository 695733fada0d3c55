package wire

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/goccy/go-json"

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

// stringPart is how many bytes of a string are quoted at once: a string may have
// 100 MB.
const stringPart = 4 << 10

// WriteString quotes s for JSON. Bytes that are not UTF-8 become U+FFFD.
func WriteString(w *bufio.Writer, s string) {
	quoting := json.NewEncoder(unquoted{w})
	quoting.SetEscapeHTML(false)
	_ = w.WriteByte('"')
	for len(s) > 0 {
		end := min(stringPart, len(s))
		for back := 1; back < utf8.UTFMax && end < len(s) && !utf8.RuneStart(s[end]); back++ {
			end-- // a character is not cut
		}
		part := s[:end]
		_ = quoting.Encode(&part) // no string fails
		s = s[end:]
	}
	_ = w.WriteByte('"')
}

// unquoted passes on a string of an encoder without its quotes and its line
// break.
type unquoted struct{ w *bufio.Writer }

func (u unquoted) Write(p []byte) (int, error) {
	_, err := u.w.Write(p[1 : len(p)-2])
	return len(p), err
}

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
