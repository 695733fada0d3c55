// Package relay makes the transport of a WebAssembly program an upstash.Transport
// of this process. A native test can then use it. Calls travel over a pipe in one
// direction, and results in the other, in any order.
//
// A message is a line and a body. The line has the length of the body in bytes,
// and the rest of the message as JSON. The body follows unencoded: some bodies
// have tens of MB, and base64 would double the time of a test under wasm.
package relay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json" // part of a js/wasm program, which go-json would double
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// Env is the environment variable that makes the js/wasm tests of package
// upstash a relay.
const Env = "UPBLOOM_RELAY"

// Call is a request, or the end of an earlier Call's context.
type Call struct {
	ID     int
	Cancel bool // end the Call with this ID; the other fields are empty

	URL         string
	Header      [][2]string // upstash.Header would hide its values
	MaxResponse int
	Timeout     time.Duration // counted from when the Call is read; 0 means none
	Body        []byte        `json:"-"`
}

// Result is how a Call ended.
type Result struct {
	ID         int
	StatusCode int
	Header     [][2]string
	Body       []byte `json:"-"`

	Error   string // the text, or "" if the call has not failed
	NotSent bool
	Cause   string // the text of one of causes, or ""
}

// causes are the errors known to both ends.
var causes = []error{
	upstash.ErrResponseTooLarge, upstash.ErrNoTransport, context.Canceled, context.DeadlineExceeded,
}

// WriteResult writes one result. It makes several writes.
func WriteResult(w io.Writer, r Result) error { return write(w, r, r.Body) }

// ReadCall reads one call. The error is io.EOF between two calls.
func ReadCall(r *bufio.Reader) (c Call, err error) {
	c.Body, err = read(r, &c)
	return c, err
}

func write(w io.Writer, head any, body []byte) error {
	line, err := json.Marshal(head)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "%d %s\n", len(body), line); err != nil {
		return err
	}
	_, err = w.Write(body)
	return err
}

func read(r *bufio.Reader, head any) (body []byte, err error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	size, rest, _ := bytes.Cut(line, []byte(" "))
	n, err := strconv.Atoi(string(size))
	if err != nil || json.Unmarshal(rest, head) != nil {
		return nil, fmt.Errorf("relay: no message: %.200q", line)
	}
	body = make([]byte, n)
	_, err = io.ReadFull(r, body)
	return body, err
}
