package wire

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"

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
func (e Encoding) Answer(f Form, replies database.Array) []byte {
	var w bytes.Buffer
	switch {
	case e.RESP2:
		for _, r := range replies {
			database.WriteRESP(&w, r)
		}
	case f == Command:
		e.writeObject(&w, replies[0])
	default:
		for i, r := range replies {
			w.WriteByte("[,"[min(i, 1)])
			e.writeObject(&w, r)
		}
		w.WriteByte(']')
	}
	return w.Bytes()
}

// Failure returns the body of an answer that is an error as a whole: one
// object, also to a batch.
func (e Encoding) Failure(text string) []byte {
	return e.Answer(Command, database.Array{database.Failure(text)})
}

func (e Encoding) writeObject(w *bytes.Buffer, r database.Reply) {
	if f, ok := r.(database.Failure); ok {
		w.WriteString(`{"error":`)
		writeString(w, string(f))
	} else {
		w.WriteString(`{"result":`)
		e.writeResult(w, r)
	}
	w.WriteByte('}')
}

// writeResult encodes a result as JSON. Integers are bare and exact up to
// int64. With base64, every string at any depth is encoded, except the status
// OK. A key's value "OK" is encoded.
func (e Encoding) writeResult(w *bytes.Buffer, r database.Reply) {
	switch r := r.(type) {
	case int64:
		w.Write(strconv.AppendInt(w.AvailableBuffer(), r, 10))
	case database.Status:
		if r == "OK" {
			w.WriteString(`"OK"`)
			return
		}
		e.writeText(w, string(r))
	case database.Bulk:
		e.writeText(w, string(r))
	case database.Failure: // inside an array
		e.writeText(w, string(r))
	case database.Array:
		w.WriteByte('[')
		for i, el := range r {
			if i > 0 {
				w.WriteByte(',')
			}
			e.writeResult(w, el)
		}
		w.WriteByte(']')
	default:
		w.WriteString("null")
	}
}

func (e Encoding) writeText(w *bytes.Buffer, s string) {
	if e.base64 {
		s = base64.StdEncoding.EncodeToString([]byte(s))
	}
	writeString(w, s)
}

// writeString quotes s for JSON. Bytes that are not UTF-8 become U+FFFD.
func writeString(w *bytes.Buffer, s string) {
	quoted, _ := json.MarshalWithOption(s, json.DisableHTMLEscape()) // no string fails
	w.Write(quoted)
}
