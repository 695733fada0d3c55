// Package json is how this module reads JSON. Natively go-json reads texts and
// the envelope of an answer. Lists, and everything on wasm, are read by a bounded
// reader: it takes no memory beyond the answer, and walks over integers quickly.
//
// Each function reads one value of its type, surrounded only by white space.
// Otherwise it returns an error, which holds nothing of the input.
package json

import (
	"bytes"
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

var (
	// ErrSyntax is returned if the input is not one JSON value of the requested
	// type.
	ErrSyntax = errors.New("json: not the value that is due here")
	// ErrTarget is returned by [Unmarshal] if it cannot store a value there.
	ErrTarget = errors.New("json: want a pointer that is not nil")

	errMethod = errors.New("json: a method of the type refused its value")
)

// maxDepth bounds the recursion. encoding/json has the same limit.
const maxDepth = 10000

// BoundedEnvelope is [Envelope] by the bounded reader, for an answer with a list.
func BoundedEnvelope(data []byte) (result, message []byte, err error) {
	twice := false
	err = object(data, func(name string, raw []byte) {
		switch name {
		case "result":
			result, twice = raw, twice || result != nil
		case "error":
			message, twice = raw, twice || message != nil
		}
	})
	if err != nil || twice {
		return nil, nil, ErrSyntax
	}
	return result, message, nil
}

// object reads an object and calls each for every member, in order. raw shares
// the memory of data. each may have been called before an error is found.
func object(data []byte, each func(name string, raw []byte)) error {
	s := scanner{data: data}
	return s.whole('{', func(name string, from, to int) { each(name, data[from:to]) })
}

// Array reads an array and calls each for every element, in order, with the
// bounds of its raw JSON in data. each may have been called before an error is
// found.
func Array(data []byte, each func(from, to int)) error {
	s := scanner{data: data}
	return s.whole('[', func(_ string, from, to int) { each(from, to) })
}

// boundedString is [String] by the bounded reader.
func boundedString(data []byte) (string, error) {
	s := scanner{data: data}
	s.space()
	start := s.pos
	if s.next() != '"' || !s.str() {
		return "", ErrSyntax
	}
	text := unquote(data[start+1 : s.pos-1])
	s.space()
	if s.pos != len(data) {
		return "", ErrSyntax
	}
	return text, nil
}

// scanner walks over JSON. Each of its methods moves pos past the part it read,
// and reports whether that part was valid.
type scanner struct {
	data []byte
	pos  int
}

// whole reads one object or array with nothing but space around it.
func (s *scanner) whole(open byte, each member) error {
	s.space()
	if s.next() != open || !s.composite(maxDepth, each) {
		return ErrSyntax
	}
	s.space()
	if s.pos != len(s.data) {
		return ErrSyntax
	}
	return nil
}

// member is called for each part of an object or array, which is data[from:to].
type member func(name string, from, to int)

// next returns the byte at pos, 0 at the end.
func (s *scanner) next() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *scanner) accept(c byte) bool {
	if s.next() != c {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) value(depth int) bool {
	switch c := s.next(); c {
	case '{', '[':
		return s.composite(depth, nil)
	case '"':
		return s.str()
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

func (s *scanner) word(w string) bool {
	if len(s.data)-s.pos < len(w) || string(s.data[s.pos:s.pos+len(w)]) != w {
		return false
	}
	s.pos += len(w)
	return true
}

// composite reads an object or array at pos, and calls each for every member.
// each may be nil.
func (s *scanner) composite(depth int, each member) bool {
	if depth == 0 {
		return false
	}
	object := s.next() == '{'
	end := s.data[s.pos] + 2 // '}' is '{'+2, ']' is '['+2
	s.pos++
	s.space()
	if s.accept(end) {
		return true
	}
	for {
		name := ""
		if object {
			start := s.pos
			if s.next() != '"' || !s.str() {
				return false
			}
			if each != nil {
				name = unquote(s.data[start+1 : s.pos-1])
			}
			s.space()
			if !s.accept(':') {
				return false
			}
			s.space()
		}
		start := s.pos
		if !s.value(depth - 1) {
			return false
		}
		if each != nil {
			each(name, start, s.pos)
		}
		s.space()
		if s.accept(end) {
			return true
		}
		if !s.accept(',') {
			return false
		}
		s.space()
	}
}

func (s *scanner) number() bool {
	s.accept('-')
	if !s.accept('0') && !s.digits() {
		return false
	}
	if s.accept('.') && !s.digits() {
		return false
	}
	if s.accept('e') || s.accept('E') {
		_ = s.accept('+') || s.accept('-')
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	start := s.pos
	for '0' <= s.next() && s.next() <= '9' {
		s.pos++
	}
	return s.pos > start
}

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
		b = b[n:]
		if len(b) == 0 {
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
