package http1

import (
	"bytes"

	"github.com/upbloom/upbloom/upstash/internal/ascii"
)

// framing is what the fields of an answer say about its end and the connection.
type framing struct {
	length   int64 // of the body, if sized
	sized    bool
	chunked  bool
	bodiless bool // the status allows no body
	closes   bool // nothing may follow on the connection
	keeps    bool // HTTP/1.0's permission to go on
}

// parse parses the lines of a section, the empty one at the end, and may change
// them. It calls field, unless that is nil, for the fields it does not need
// itself. It reports false if a line is malformed, or contradicts another. Each
// byte is looked at once: this is half of what an answer costs.
func (f *framing) parse(b []byte, field func(name, value []byte)) bool {
	for len(b) > len("\r\n") {
		colon := 0
		for isTokenByte(b[colon]) {
			colon++
		}
		odd := b[colon] != ':'
		if odd {
			colon = bytes.IndexByte(b, ':')
		}
		if colon <= 0 || odd && !f.oddName(b[:colon]) {
			return false
		}
		value, next, ok := f.value(b, colon+1)
		if !ok {
			return false
		}
		name := b[:colon]
		if b = b[next:]; odd {
			continue
		}
		known, ok := f.set(name, value)
		if !ok {
			return false
		}
		if !known && field != nil {
			field(name, value)
		}
	}
	return true
}

// value returns the value from start on, and the beginning of the next line. If
// another line continues the value, it is joined to it: RFC 9112, section 5.2.
// Other readers may not join them.
func (f *framing) value(b []byte, start int) (value []byte, next int, ok bool) {
	for i := start; ; {
		for isTextByte(b[i]) {
			i++
		}
		end := i
		if b[i] == '\r' {
			i++
		}
		if b[i] != '\n' {
			return nil, 0, false
		}
		if b[i+1] != ' ' && b[i+1] != '\t' {
			return trimBlanks(b[start:end]), i + 1, true
		}
		b[end], b[i] = ' ', ' '
		f.closes = true
	}
}

// set takes note of a field. It reports whether the field is known, and whether
// its value is acceptable. Two fields are not, even if they agree.
func (f *framing) set(name, value []byte) (known, ok bool) {
	switch {
	case ascii.EqualFold(name, "content-length"):
		if f.sized {
			return true, false
		}
		f.length, f.sized = parseLength(value)
		return true, f.sized
	case ascii.EqualFold(name, "transfer-encoding"):
		if f.chunked {
			return true, false
		}
		f.chunked = ascii.EqualFold(value, "chunked")
		return true, f.chunked
	case ascii.EqualFold(name, "connection"):
		for token := range bytes.SplitSeq(value, []byte(",")) {
			token = trimBlanks(token)
			f.closes = f.closes || ascii.EqualFold(token, "close")
			f.keeps = f.keeps || ascii.EqualFold(token, "keep-alive")
		}
		return true, true
	}
	return false, true
}

// oddName takes note of a name with a space in it or after it. The field is ignored
// if it cannot change where the answer ends: readers do not agree on its name.
func (f *framing) oddName(name []byte) bool {
	f.closes = true
	if name[0] == ' ' || !isToken(bytes.ReplaceAll(name, []byte(" "), nil)) {
		return false
	}
	name = bytes.TrimRight(name, " ")
	return !ascii.EqualFold(name, "content-length") && !ascii.EqualFold(name, "transfer-encoding")
}

// parseLength parses up to 18 digits, which fit into an int64.
func parseLength(b []byte) (n int64, ok bool) {
	for _, c := range b {
		if !isDigit(c) {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, 0 < len(b) && len(b) <= 18
}

// tokenBits has a bit for each character of a token: RFC 9110, section 5.6.2.
const tokenBits = (1<<10-1)<<'0' | (1<<26-1)<<'A' | (1<<26-1)<<'a' |
	1<<'!' | 1<<'#' | 1<<'$' | 1<<'%' | 1<<'&' | 1<<'\'' | 1<<'*' | 1<<'+' | 1<<'-' | 1<<'.' |
	1<<'^' | 1<<'_' | 1<<'`' | 1<<'|' | 1<<'~'

func isTokenByte(c byte) bool {
	if letter := c | ' '; 'a' <= letter && letter <= 'z' || c == '-' {
		return true
	}
	bits := uint64(tokenBits & (1<<64 - 1))
	if c >= 64 {
		bits = tokenBits >> 64
	}
	return c < 128 && bits>>(c&63)&1 != 0
}

// isToken reports whether b has characters of a token alone.
func isToken(b []byte) bool {
	for _, c := range b {
		if !isTokenByte(c) {
			return false
		}
	}
	return true
}

// isTextByte reports whether c is no control character but a tab.
func isTextByte(c byte) bool { return c >= ' ' && c != 0x7f || c == '\t' }

// isText reports whether b has no control characters but tabs.
func isText(b []byte) bool {
	for _, c := range b {
		if !isTextByte(c) {
			return false
		}
	}
	return true
}
