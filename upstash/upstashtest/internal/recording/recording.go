// Package recording writes the requests of a client and their answers to a
// file, and answers from that file. Package upstashtest documents its three
// functions.
package recording

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"unicode/utf8"
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
	Encoding string `json:"encoding"`
	payload
}

const (
	encodingRESP2  = "resp2"
	encodingBase64 = "base64"
)

// recordedResponse is the answer, or why there was none.
type recordedResponse struct {
	Status      int    `json:"status"`
	ContentType string `json:"contentType"`
	RetryAfter  string `json:"retryAfter"`
	payload
	// Failure is failureNotSent, failureNoAnswer, or "" if there is an answer.
	// The text of a network error could name the host.
	Failure string `json:"failure"`
}

const (
	failureNotSent  = "not sent"
	failureNoAnswer = "no answer"
)

// payload is a body. At most one field is set. JSON keeps its numbers and
// escapes as they are, and loses only the white space between values.
type payload struct {
	JSON   json.RawMessage `json:"body"`
	Text   string          `json:"text"`
	Base64 string          `json:"base64"` // of a body that is not UTF-8
}

func newPayload(body []byte) payload {
	switch {
	case !utf8.Valid(body):
		return payload{Base64: base64.StdEncoding.EncodeToString(body)}
	case json.Valid(body):
		return payload{JSON: compact(body)}
	}
	return payload{Text: string(body)}
}

// bytes returns the body.
func (p payload) bytes() []byte {
	switch {
	case p.JSON != nil:
		return p.JSON
	case p.Base64 != "":
		b, _ := base64.StdEncoding.DecodeString(p.Base64) // valid: see check
		return b
	}
	return []byte(p.Text)
}

func (p payload) check() error {
	set := 0
	for _, is := range []bool{p.JSON != nil, p.Text != "", p.Base64 != ""} {
		if is {
			set++
		}
	}
	if set > 1 {
		return errors.New(`it has more than one of "body", "text" and "base64"`)
	}
	if _, err := base64.StdEncoding.DecodeString(p.Base64); err != nil {
		return fmt.Errorf(`"base64": %w`, err)
	}
	return nil
}

func compact(raw []byte) []byte {
	var b bytes.Buffer
	_ = json.Compact(&b, raw) // the callers pass valid JSON
	return b.Bytes()
}

func readRecording(file string) (recording, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return recording{}, fmt.Errorf("reading a recording: %w: make it with Record, "+
			"or use Recorded and run UPBLOOM_RECORD=1 go test", err)
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
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return recording{}, err
	}
	if head.Version != recordingVersion {
		return recording{}, fmt.Errorf("it has version %d, and this package reads version %d: record it anew",
			head.Version, recordingVersion)
	}
	if err := checkNames(data); err != nil {
		return recording{}, err
	}
	var r recording
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&r); err != nil {
		return recording{}, err
	}
	if _, err := d.Token(); err != io.EOF {
		return recording{}, errors.New("something follows its end")
	}
	for i := range r.Exchanges {
		if err := r.Exchanges[i].tidy(); err != nil {
			return recording{}, fmt.Errorf("exchange %d: %w", i+1, err)
		}
	}
	return r, nil
}

// checkNames refuses names that encoding/json would accept or ignore: a name
// which occurs twice, or is spelled in another way. It does not look into
// bodies.
func checkNames(data []byte) error {
	top, err := members(data, "version", "exchanges")
	if err != nil {
		return err
	}
	var exchanges []json.RawMessage
	if err := json.Unmarshal(top["exchanges"], &exchanges); err != nil && top["exchanges"] != nil {
		return fmt.Errorf(`"exchanges": %w`, err)
	}
	for i, raw := range exchanges {
		x, err := members(raw, "request", "response")
		if err == nil {
			_, err = members(x["request"], "method", "path", "encoding", "body", "text", "base64")
		}
		if err == nil {
			_, err = members(x["response"], "status", "contentType", "retryAfter", "body", "text",
				"base64", "failure")
		}
		if err != nil {
			return fmt.Errorf("exchange %d: %w", i+1, err)
		}
	}
	return nil
}

// members reads a JSON object and returns its members by their names. Any other
// name is an error. A missing object has no members.
func members(object json.RawMessage, names ...string) (map[string]json.RawMessage, error) {
	found := make(map[string]json.RawMessage)
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return found, nil // the decoder says what is wrong
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		switch {
		case !slices.Contains(names, name):
			return nil, fmt.Errorf("unknown name %q: use one of %q", name, names)
		case found[name] != nil:
			return nil, fmt.Errorf("the name %q stands twice", name)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		found[name] = value
	}
	return found, nil
}

// tidy checks an exchange after it was read, and removes the white space of its
// bodies.
func (x *exchange) tidy() error {
	q, a := &x.Request, &x.Response
	switch {
	case q.Method == "" || q.Path == "" || q.Path[0] != '/':
		return errors.New("its request needs a method, and a path that begins with a slash")
	case q.Encoding != "" && q.Encoding != encodingRESP2 && q.Encoding != encodingBase64:
		return fmt.Errorf("its encoding is %q: use %q or %q", q.Encoding, encodingRESP2, encodingBase64)
	case a.Failure != "" && a.Failure != failureNotSent && a.Failure != failureNoAnswer:
		return fmt.Errorf("its failure is %q: use %q or %q", a.Failure, failureNotSent, failureNoAnswer)
	case a.Failure == "" && (a.Status < 100 || a.Status > 999):
		return fmt.Errorf("its status is %d: use an HTTP status", a.Status)
	}
	for _, p := range []*payload{&q.payload, &a.payload} {
		if err := p.check(); err != nil {
			return err
		}
		if p.JSON != nil {
			p.JSON = compact(p.JSON)
		}
	}
	return nil
}
