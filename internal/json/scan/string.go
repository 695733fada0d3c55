package scan

import (
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
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		switch {
		case b[0] != '\\' && b[0] < utf8.RuneSelf:
			out = append(out, b[0])
			b = b[1:]
		case b[0] != '\\':
			r, size := utf8.DecodeRune(b)
			out = utf8.AppendRune(out, r)
			b = b[size:]
		case b[1] == 'u':
			r, size := unquoteRune(b)
			out = utf8.AppendRune(out, r)
			b = b[size:]
		default:
			out = append(out, plainEscapes[b[1]])
			b = b[2:]
		}
	}
	return string(out)
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
