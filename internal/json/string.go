package json

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// str reads a string, whose quote stands at pos.
func (s *scanner) str() bool {
	data := s.data // pos and the length stay in registers
	for i := s.pos + 1; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			s.pos = i + 1
			return true
		case c < ' ':
			return false
		case c == '\\':
			s.pos = i + 1
			if !s.escape() {
				return false
			}
			i = s.pos
		}
	}
	return false
}

// escape checks what follows a backslash and stops at its last byte.
func (s *scanner) escape() bool {
	switch s.next() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		if len(s.data)-s.pos < 5 {
			return false
		}
		_, ok := hex4(s.data[s.pos+1:])
		s.pos += 4
		return ok
	}
	return false
}

func hex4(b []byte) (rune, bool) {
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	return rune(n), err == nil
}

// unquote returns the text between the quotes of a valid string.
func unquote(b []byte) string {
	n := untilEscape(b)
	if n == len(b) && utf8.Valid(b) {
		return string(b)
	}
	out := make([]byte, 0, len(b))
	for {
		out = appendValid(out, b[:n])
		if b = b[n:]; len(b) == 0 {
			return string(out)
		}
		if b[1] == 'u' {
			r, size := unquoteRune(b)
			out, b = utf8.AppendRune(out, r), b[size:]
		} else {
			out, b = append(out, plainEscapes[b[1]]), b[2:]
		}
		n = untilEscape(b)
	}
}

// untilEscape returns how many bytes of b are before the first backslash.
func untilEscape(b []byte) int {
	if n := bytes.IndexByte(b, '\\'); n >= 0 {
		return n
	}
	return len(b)
}

// appendValid appends b, with U+FFFD in place of each byte that is not UTF-8.
func appendValid(out, b []byte) []byte {
	if utf8.Valid(b) {
		return append(out, b...)
	}
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		out, b = utf8.AppendRune(out, r), b[size:]
	}
	return out
}

var plainEscapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// unquoteRune reads \uXXXX, or two of them that make one rune.
func unquoteRune(b []byte) (r rune, size int) {
	r, _ = hex4(b[2:])
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		low, _ := hex4(b[8:])
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}
