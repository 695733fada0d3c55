//go:build !wasm

package upstash

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/upbloom/upbloom/upstash/internal/conn"
)

var (
	errHungUp = fmt.Errorf("the connection was closed before the whole answer came: %w",
		io.ErrUnexpectedEOF)
	errNotHTTP  = errors.New("the answer is not HTTP/1.1")
	errInterim  = errors.New("answers of status 1xx came in place of the one that counts")
	errLongHead = errors.New("the header of the answer is longer than 16 KiB:" +
		" find the proxy that adds to it")
)

// readHead waits for the header of an answer and returns it, with the empty
// line at its end. The header stays in the buffer, for fasthttp to parse. The
// client looks at it first, because fasthttp does not report all of it.
func readHead(c *conn.Conn) ([]byte, error) {
	for n := 1; ; {
		_, err := c.R.Peek(n)
		head, _ := c.R.Peek(c.R.Buffered())
		if !isHTTP(head) {
			return nil, errNotHTTP
		}
		switch end := headEnd(head); {
		case end > 0 && !bytes.HasSuffix(head[:end], []byte("\r\n\r\n")):
			return nil, errNotHTTP // fasthttp would wait for a CR that never comes
		case end > 0:
			return head[:end], nil
		}
		switch {
		case len(head) == conn.ReadBuffer:
			return nil, errLongHead
		case err != nil:
			return nil, readError(c, err)
		}
		n = len(head) + 1
	}
}

// headEnd returns the length of the header at the beginning of b, with the
// empty line at its end, or 0 if there is none yet. A line may end in a bare
// LF: RFC 9112, section 2.2.
func headEnd(b []byte) int {
	for i := 0; ; {
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			return 0
		}
		i += n + 1
		switch rest := b[i:]; {
		case bytes.HasPrefix(rest, []byte("\n")):
			return i + 1
		case bytes.HasPrefix(rest, []byte("\r\n")):
			return i + 2
		}
	}
}

// isHTTP reports whether head is, or may become, the header of an answer.
func isHTTP(head []byte) bool {
	const proto = "HTTP/1."
	n := min(len(head), len(proto))
	return string(head[:n]) == proto[:n]
}

// isInterim reports whether a header has a status of 1xx: another header
// follows it.
func isInterim(head []byte) bool { return bytes.HasPrefix(statusOf(head), []byte("1")) }

// isSwitch reports whether the server announces another protocol from now on.
func isSwitch(head []byte) bool { return bytes.HasPrefix(statusOf(head), []byte("101")) }

// statusOf returns a header from its status on.
func statusOf(head []byte) []byte {
	_, status, _ := bytes.Cut(head, []byte(" "))
	return bytes.TrimLeft(status, " ")
}

// parseStatus returns the status of a header. An answer has one from 100 to
// 999.
func parseStatus(head []byte) (status int, ok bool) {
	text := statusOf(head)
	if len(text) < 3 || text[0] == '0' {
		return 0, false
	}
	status, err := strconv.Atoi(string(text[:3]))
	return status, err == nil && status >= 100
}

// closes reports whether a header may announce the end of the connection: it
// has a Connection field with the token "close", in any letter case, or a
// folded line, which could hide such a token.
func closes(head []byte) bool {
	for line := range bytes.Lines(head) {
		if line[0] == ' ' || line[0] == '\t' {
			return true
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if !equalFold(bytes.TrimRight(name, " \t"), "connection") {
			continue
		}
		if hasClose(value) {
			return true
		}
	}
	return false
}

// hasClose reports whether the value of a Connection field has the token
// "close".
func hasClose(value []byte) bool {
	for token := range bytes.SplitSeq(value, []byte(",")) {
		if equalFold(bytes.TrimSpace(token), "close") {
			return true
		}
	}
	return false
}

// commonHead is what the client needs of a header.
type commonHead struct {
	length                int
	closes                bool
	syncToken, retryAfter []byte // nil if there is none
}

// parseCommon parses the header of an answer in the form of nearly all servers,
// with a length. It reports false for any other, or if it is in doubt: fasthttp
// then decides.
func parseCommon(head []byte) (h commonHead, ok bool) {
	first, rest, _ := bytes.Cut(head, []byte("\r\n"))
	status, ok := parseStatus(first)
	const line = len("HTTP/1.1 200")
	if !ok || !bytes.HasPrefix(first, []byte("HTTP/1.1 ")) || len(first) > line && first[line] != ' ' ||
		status < 200 || status == 204 || status == 304 {
		return h, false
	}
	h.length = -1
	for len(rest) > 2 {
		end := bytes.IndexByte(rest, '\n')
		colon := bytes.IndexByte(rest, ':')
		if colon <= 0 || colon > end || rest[end-1] != '\r' || !isName(rest[:colon]) {
			return h, false
		}
		name, value := rest[:colon], trimBlanks(rest[colon+1:end-1])
		if rest = rest[end+1:]; !isText(value) {
			return h, false
		}
		switch len(name) {
		case len("connection"):
			h.closes = h.closes || equalFold(name, "connection") && hasClose(value)
		case len("content-length"):
			if equalFold(name, "content-length") {
				if h.length >= 0 || !isLength(value) {
					return h, false
				}
				h.length, _ = strconv.Atoi(string(value))
			}
		case len("transfer-encoding"):
			if equalFold(name, "transfer-encoding") {
				return h, false
			}
		case len(headerSyncToken):
			if equalFold(name, headerSyncToken) {
				h.syncToken = value
			}
		case len(headerRetryAfter):
			if equalFold(name, headerRetryAfter) {
				h.retryAfter = value
			}
		}
	}
	return h, h.length >= 0
}

// isName reports whether b has letters, digits and dashes alone.
func isName(b []byte) bool {
	for _, c := range b {
		if c = lower(c); (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// isText reports whether b has no control characters.
func isText(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// isLength reports whether b is a number of up to nine digits.
func isLength(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0 && len(b) <= 9
}

func trimBlanks(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// readError returns the network's own error if there is one. It never shows a
// text of fasthttp, which would quote what was read.
func readError(c *conn.Conn, err error) error {
	cause := c.ReadError()
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return ErrResponseTooLarge
	case cause == nil:
		return errNotHTTP
	case errors.Is(cause, io.EOF):
		return errHungUp
	}
	return fmt.Errorf("the connection broke before the whole answer came: %w", cause)
}
