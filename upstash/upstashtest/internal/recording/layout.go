package recording

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// layout returns a recording as a file for people to review. It indents by two
// spaces and writes a command, or the answer to one, on one line. encoding/json
// would put each argument on a line of its own, and escape < and >.
func (r recording) layout() []byte {
	var b bytes.Buffer
	b.WriteString("{\n  \"version\": " + strconv.Itoa(r.Version) + ",\n  \"exchanges\": [")
	for i, x := range r.Exchanges {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n    {\n      \"request\": ")
		x.Request.layout(&b)
		b.WriteString(",\n      \"response\": ")
		x.Response.layout(&b)
		b.WriteString("\n    }")
	}
	if len(r.Exchanges) > 0 {
		b.WriteString("\n  ")
	}
	b.WriteString("]\n}\n")
	return b.Bytes()
}

func (q recordedRequest) layout(b *bytes.Buffer) {
	o := fields{b: b}
	o.text("method", q.Method)
	o.text("path", q.Path)
	o.text("encoding", q.Encoding)
	o.payload(q.payload)
	o.end()
}

func (a recordedResponse) layout(b *bytes.Buffer) {
	o := fields{b: b}
	if a.Status != 0 {
		o.raw("status", []byte(strconv.Itoa(a.Status)))
	}
	o.text("contentType", a.ContentType)
	o.text("retryAfter", a.RetryAfter)
	o.payload(a.payload)
	o.text("failure", a.Failure)
	o.end()
}

// fields writes an object whose members are indented by eight spaces.
type fields struct {
	b     *bytes.Buffer
	began bool
}

func (o *fields) raw(name string, value []byte) {
	before := ",\n        "
	if !o.began {
		before = "{\n        "
	}
	o.began = true
	o.b.WriteString(before + `"` + name + `": `)
	o.b.Write(value)
}

// text leaves out an empty value, which a reader takes for a missing one
// anyway.
func (o *fields) text(name, value string) {
	if value != "" {
		o.raw(name, quote(value))
	}
}

func (o *fields) payload(p payload) {
	if p.JSON != nil {
		o.raw("body", lines(p.JSON))
	}
	o.text("text", p.Text)
	o.text("base64", p.Base64)
}

// end follows at least one member: a request has a method, an answer a status
// or a failure.
func (o *fields) end() { o.b.WriteString("\n      }") }

// lines writes an array of arrays or objects, which is a pipeline or its
// answers, with each element on a line of its own. Anything else stays on one
// line.
func lines(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '[' || raw[1] != '[' && raw[1] != '{' {
		return raw
	}
	var elements []json.RawMessage
	_ = json.Unmarshal(raw, &elements) // valid, or it would be text
	const indent = "\n          "
	out := []byte{'['}
	for i, e := range elements {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, indent...), e...)
	}
	return append(out, "\n        ]"...)
}

// quote returns s as a JSON string, with < and > as they are.
func quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be encoded
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
