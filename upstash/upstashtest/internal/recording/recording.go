// Package recording writes the requests of a client and their answers to a
// file, and answers from that file. Package upstashtest documents its three
// functions.
package recording

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-json"
)

// recordingVersion is the version of the file format, written and read.
const recordingVersion = 1

// recording holds the requests of a client and their answers, in the order in
// which the requests began. It has no date and no header but those below: the
// same exchanges make the same file.
type recording struct {
	Version   int        `json:"version"`
	Exchanges []exchange `json:"exchanges"`
}

// exchange is one attempt. If a call is tried again, it makes several.
type exchange struct {
	Request  recordedRequest  `json:"request"`
	Response recordedResponse `json:"response"`
}

// recordedRequest is the part of a request by which it is recognized.
type recordedRequest struct {
	Method string `json:"method"`
	// Path is "/", "/pipeline" or "/multi-exec", without the path of the
	// database's URL. A raw command's path holds its name and all arguments but
	// the last.
	Path string `json:"path"`
	// Encoding is the form of answer the client asked for: encodingRESP2,
	// encodingBase64, or "" for plain JSON. The client would misread an answer
	// in another form.
	Encoding string `json:"encoding,omitempty"`
	payload
}

// requestOf returns the part of a request by which it is recognized. base is
// the path of the database's URL.
func requestOf(req *http.Request, base string, body []byte) recordedRequest {
	path := strings.TrimPrefix(req.URL.EscapedPath(), base)
	q := recordedRequest{Method: req.Method, Path: path, payload: newPayload(body)}
	if strings.EqualFold(req.Header.Get("Upstash-Response-Format"), encodingRESP2) {
		q.Encoding = encodingRESP2
	} else if strings.EqualFold(req.Header.Get("Upstash-Encoding"), encodingBase64) {
		q.Encoding = encodingBase64
	}
	return q
}

const (
	encodingRESP2  = "resp2"
	encodingBase64 = "base64"
)

// recordedResponse is the answer, or why there was none.
type recordedResponse struct {
	Status      int    `json:"status,omitempty"`
	ContentType string `json:"contentType,omitempty"`
	RetryAfter  string `json:"retryAfter,omitempty"`
	payload
	// Failure is failureNotSent, failureNoAnswer, or "" if there is an answer.
	// The text of a network error could name the host.
	Failure string `json:"failure,omitempty"`
}

const (
	failureNotSent  = "not sent"
	failureNoAnswer = "no answer"
)

// payload is a body. At most one field is set. JSON keeps its numbers and
// escapes as they are, and loses only the white space between values.
type payload struct {
	JSON   json.RawMessage `json:"body,omitempty"`
	Text   string          `json:"text,omitempty"`
	Binary []byte          `json:"base64,omitempty"` // a body that is not UTF-8
}

func newPayload(body []byte) payload {
	if !utf8.Valid(body) {
		return payload{Binary: body}
	}
	var compact bytes.Buffer
	if json.Compact(&compact, body) == nil {
		return payload{JSON: compact.Bytes()}
	}
	return payload{Text: string(body)}
}

// bytes returns the body.
func (p payload) bytes() []byte {
	if p.JSON != nil {
		return p.JSON
	}
	if p.Binary != nil {
		return p.Binary
	}
	return []byte(p.Text)
}

// layout returns a recording as a file for people to review, with each field on
// a line of its own, and each command of a batch, or the answer to one.
func (r recording) layout() []byte {
	var bodies []json.RawMessage
	place := func(p *payload) {
		if p.JSON != nil {
			bodies = append(bodies, p.JSON)
			p.JSON = fmt.Appendf(nil, `"%d"`, len(bodies)-1)
		}
	}
	r.Exchanges = slices.Clone(r.Exchanges)
	for i := range r.Exchanges {
		place(&r.Exchanges[i].Request.payload)
		place(&r.Exchanges[i].Response.payload)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(r) // strings and numbers
	return placed.ReplaceAllFunc(b.Bytes(), func(m []byte) []byte {
		i, _ := strconv.Atoi(string(placed.FindSubmatch(m)[1]))
		return append([]byte(`"body": `), inLines(bodies[i])...)
	})
}

// placed matches the place of a body. In a string the quotes would be escaped.
var placed = regexp.MustCompile(`"body": "([0-9]+)"`)

// inLines breaks the lines of a list of lists or objects around its elements.
func inLines(body json.RawMessage) []byte {
	var list []json.RawMessage
	ofLists := bytes.HasPrefix(body, []byte("[[")) || bytes.HasPrefix(body, []byte("[{"))
	if !ofLists {
		return body
	}
	_ = json.Unmarshal(body, &list) // it is JSON
	const line = "\n        "
	var out []byte
	for i, element := range list {
		out = append(append(append(out, "[,"[min(i, 1)]), line+"  "...), element...)
	}
	return append(append(out, line...), ']')
}

func readRecording(file string) (recording, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return recording{}, fmt.Errorf("reading a recording: %w: make it with Record, "+
			"or use Recorded and run UPBLOOM_RECORD=1 go test with "+
			"UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN set", err)
	}
	r, err := parseRecording(data)
	if err != nil {
		return recording{}, fmt.Errorf("reading the recording %s: %w", file, err)
	}
	return r, nil
}

// parseRecording reads a file. It is strict, to find the mistakes of an edit by
// hand.
func parseRecording(data []byte) (recording, error) {
	var file struct {
		Version   int               `json:"version"`
		Exchanges []json.RawMessage `json:"exchanges"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return recording{}, damaged(err)
	}
	if file.Version != recordingVersion {
		return recording{}, fmt.Errorf("it has version %d, and this package reads version %d: record it anew",
			file.Version, recordingVersion)
	}
	if err := strictly(data, &file); err != nil {
		return recording{}, err
	}
	r := recording{Version: file.Version, Exchanges: make([]exchange, len(file.Exchanges))}
	for i, raw := range file.Exchanges {
		x := &r.Exchanges[i]
		err := strictly(raw, x)
		if err == nil {
			err = x.check()
		}
		if err != nil {
			return recording{}, fmt.Errorf("exchange %d: %w", i+1, err)
		}
	}
	return r, nil
}

// strictly decodes a document, and refuses names that v has not.
func strictly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return damaged(err)
	}
	return nil
}

func damaged(err error) error {
	return fmt.Errorf("%w: take back what was edited, or record it anew", err)
}

// check checks an exchange after it was read, and removes the white space of its
// bodies.
func (x *exchange) check() error {
	q, a := &x.Request, &x.Response
	switch {
	case q.Method == "" || !strings.HasPrefix(q.Path, "/"):
		return errors.New("its request needs a method, and a path that begins with a slash")
	case q.Encoding != "" && q.Encoding != encodingRESP2 && q.Encoding != encodingBase64:
		return fmt.Errorf("its encoding is %q: use %q or %q", q.Encoding, encodingRESP2, encodingBase64)
	case a.Failure != "" && a.Failure != failureNotSent && a.Failure != failureNoAnswer:
		return fmt.Errorf("its failure is %q: use %q or %q", a.Failure, failureNotSent, failureNoAnswer)
	case a.Failure == "" && (a.Status < 100 || a.Status > 999):
		return fmt.Errorf("its status is %d: use an HTTP status", a.Status)
	}
	for _, p := range []*payload{&q.payload, &a.payload} {
		if p.JSON != nil && (p.Text != "" || p.Binary != nil) || p.Text != "" && p.Binary != nil {
			return errors.New(`it has more than one of "body", "text" and "base64"`)
		}
		if p.JSON != nil {
			*p = newPayload(p.JSON)
		}
	}
	return nil
}
