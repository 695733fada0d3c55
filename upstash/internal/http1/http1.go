// Package http1 reads answers of HTTP/1.1, RFC 9112. It is strict: an answer
// whose end or whose status could be read in two ways is an error. No error has
// text of the answer in it.
//
// It is laxer than the RFC in three points, because some servers and proxies
// need it: a line of a header may end in a bare LF, except the last two; a value
// may continue on the next line; a name may have a space in it. A connection is
// not used again after the last two.
package http1

import (
	"bufio"
	"bytes"
)

// Error says what is wrong with an answer. Any other error of this package is
// that of the connection.
type Error string

func (e Error) Error() string { return string(e) }

// The errors of an answer.
const (
	ErrNotHTTP = Error("the answer is not HTTP/1.1")
	ErrInterim = Error("answers of status 1xx came in place of the one that counts")
	// ErrLongHead is returned if a header does not fit into the buffer, which
	// has 16 KiB in package conn.
	ErrLongHead = Error("the header of the answer is longer than 16 KiB: find the proxy that adds to it")
	// ErrLongBody is returned if a body is longer than the caller's limit.
	ErrLongBody = Error("the body of the answer is too long")
)

// maxInterim is how many unrequested answers of status 1xx may come before the
// final one.
const maxInterim = 5

// Head is the header of an answer.
type Head struct {
	// Status is from 200 to 999.
	Status int
	// KeepAlive reports whether another answer may follow on the connection. A
	// trailer can change it: it is final after AppendBody.
	KeepAlive bool

	framing framing
}

// ReadHead reads the header of the next answer whose status is not 1xx. It
// calls field, unless that is nil, for each field that does not concern the
// connection, in order. name and value are valid until field returns. field may
// be called before an error is found.
func ReadHead(r *bufio.Reader, field func(name, value []byte)) (Head, error) {
	for range maxInterim + 1 {
		b, err := peekSection(r, "HTTP/1.")
		if err != nil {
			return Head{}, err
		}
		h, ok := parseHead(b, field)
		if !ok {
			return Head{}, ErrNotHTTP
		}
		_, _ = r.Discard(len(b))
		if h.Status >= 200 {
			return h, nil
		}
		if h.Status == 101 { // another protocol from now on
			break
		}
	}
	return Head{}, ErrInterim
}

// peekSection waits for lines up to an empty one, and returns them all. They
// stay in the buffer, and may be changed until they are discarded. A byte that
// does not continue the prefix is an error at once.
func peekSection(r *bufio.Reader, prefix string) ([]byte, error) {
	line := 0 // where the first line that is not yet whole begins
	for n := 1; ; {
		_, err := r.Peek(n)
		b, _ := r.Peek(r.Buffered())
		if known := min(len(b), len(prefix)); string(b[:known]) != prefix[:known] {
			return nil, ErrNotHTTP
		}
		for {
			end := bytes.IndexByte(b[line:], '\n') + 1
			if end == 0 {
				break
			}
			empty := end == 1 || end == 2 && b[line] == '\r'
			if line += end; empty {
				return endsInCRLF(b[:line])
			}
		}
		switch {
		case len(b) == r.Size():
			return nil, ErrLongHead
		case err != nil:
			return nil, err
		}
		n = len(b) + 1
	}
}

// endsInCRLF returns a section if its last line is empty, and ends in CRLF as
// the line before it does. In a section with other ends a reader may see other
// lines.
func endsInCRLF(b []byte) ([]byte, error) {
	if !bytes.HasSuffix(b, []byte("\r\n")) || len(b) > 2 && !bytes.HasSuffix(b, []byte("\r\n\r\n")) {
		return nil, ErrNotHTTP
	}
	return b, nil
}

// parseHead parses a section. It reports false if it is not the header of an
// answer, or ambiguous.
func parseHead(b []byte, field func(name, value []byte)) (h Head, ok bool) {
	first, rest, _ := bytes.Cut(b, []byte("\n"))
	minor, status, ok := parseFirst(bytes.TrimSuffix(first, []byte("\r")))
	if !ok {
		return h, false
	}
	h.Status = status
	if status < 200 {
		field = nil
	}
	f := &h.framing
	if !f.parse(rest, field) || f.chunked && (f.sized || minor == 0) {
		return h, false
	}
	f.bodiless = status < 200 || status == 204 || status == 304
	h.KeepAlive = !f.closes && (minor > 0 || f.keeps) && (f.sized || f.chunked || f.bodiless)
	return h, true
}

// parseFirst parses the status line, such as "HTTP/1.1 200 OK"; its beginning
// is known. More than one space may come before the status, and the reason may
// be missing.
func parseFirst(b []byte) (minor byte, status int, ok bool) {
	const version = len("HTTP/1.1")
	if len(b) <= version || b[version] != ' ' || !isDigit(b[version-1]) {
		return 0, 0, false
	}
	minor, b = b[version-1]-'0', bytes.TrimLeft(b[version:], " ")
	if len(b) < 3 || len(b) > 3 && b[3] != ' ' || b[0] == '0' {
		return 0, 0, false
	}
	for _, c := range b[:3] {
		if !isDigit(c) {
			return 0, 0, false
		}
		status = 10*status + int(c-'0')
	}
	return minor, status, true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func trimBlanks(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	return trimBlanksRight(b)
}

func trimBlanksRight(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}
