package upstash

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

const redacted = "…"

const (
	// maxMessage is how many bytes are kept of a text. A server's own are short; a
	// longer one is a page, or quotes the request.
	maxMessage = 1000
	// maxMessages is how many bytes are kept of all texts of one response.
	maxMessages = 64 << 10
	// maxCompared bounds the time, in bytes. Texts that take longer are covered.
	maxCompared = 64 << 20

	shortArg = 3 // bytes: a shorter argument may be a part of any word
	headArg  = 8 // bytes: the beginning of an argument is not there by chance
)

// redact returns texts of others with a mark for each part that is a secret, or an
// argument in request, the JSON of one command or of several. All texts are
// searched at once, because a batch may have as many errors as commands.
func redact(texts []string, request []byte, secrets ...string) []string {
	if len(texts) == 0 {
		return nil
	}
	s := search{places: make(map[[shortArg]byte][]int)}
	bounds := make(map[string][2]int) // of each text, of which many may be the same
	for _, text := range texts {
		if _, ok := bounds[text]; !ok && len(s.text) < maxMessages {
			start := len(s.text)
			s.add(text)
			bounds[text] = [2]int{start, len(s.text)}
		}
	}
	for i := range max(0, len(s.text)-shortArg+1) {
		head := [shortArg]byte(s.text[i:])
		s.places[head] = append(s.places[head], i)
	}
	for _, secret := range secrets {
		s.cover([]byte(secret))
	}
	s.coverArguments(request)
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = redacted
		if part, ok := bounds[text]; ok && s.compared <= maxCompared {
			out[i] = s.shown(part[0], part[1])
		}
	}
	return out
}

// authorization is the name of a field, and the end of Proxy-Authorization.
const authorization = "authorization"

const quotes = "\"'`"

// search covers arguments in a text.
type search struct {
	text     []byte
	covered  []bool
	places   map[[shortArg]byte][]int // where each three bytes stand
	compared int                      // bytes
}

// add adds a text. It is covered from the first quote on if a quotation may have
// been cut or is escaped, and at the latest from the first word with an escape, as
// in JSON, a URL or HTML. What follows the name of a field of HTTP with a password
// is covered too: a proxy may have one of its own.
func (s *search) add(text string) {
	cut := len(text) >= maxMessage
	if cut {
		text = strings.ToValidUTF8(text[:maxMessage], "") + redacted
	}
	isLetter := func(i int) bool {
		return i >= 0 && i < len(text) && strings.IndexByte(letters, text[i]) >= 0
	}
	first, word, escaped, odd := len(text), 0, false, map[byte]bool{}
	for i := range len(text) {
		switch c := text[i]; {
		case c == ' ':
			word = i + 1
		case c == '\'' && isLetter(i-1) && isLetter(i+1): // as in can't
		case strings.IndexByte(quotes, c) >= 0:
			first, odd[c] = min(first, i), !odd[c]
		case c == '\\', c == '%' && onlyOf(text[i+1:min(i+3, len(text))], hexa), isEntity(text[i:]):
			first, escaped = min(first, word), true
		}
	}
	if !cut && !escaped && !odd['"'] && !odd['\''] && !odd['`'] {
		first = len(text)
	}
	for i := range max(0, min(first, len(text)-len(authorization))) {
		if strings.EqualFold(text[i:i+len(authorization)], authorization) {
			first = i + len(authorization)
			break
		}
	}
	s.text = append(s.text, text...)
	for i := range len(text) {
		s.covered = append(s.covered, i >= first)
	}
}

// coverArguments covers each argument in the JSON that appendString wrote.
func (s *search) coverArguments(request []byte) {
	var arg []byte
	inString, isName, isKey, ofBitField := false, false, false, false
	for i := 0; i < len(request); i++ {
		c := request[i]
		switch {
		case !inString:
			isName, inString, arg = isName || c == '[', c == '"', arg[:0]
			continue
		case c == '"':
			if isName {
				ofBitField = bytes.HasPrefix(arg, []byte("BITFIELD"))
			} else if isKey || !ofBitField || !isBitFieldWord(arg) {
				s.cover(arg)
			}
			inString, isName, isKey = false, false, isName
			continue
		case c == '\\':
			i++
			if c = request[i]; c == 'n' {
				c = '\n'
			} else if c == 'u' {
				n, _ := strconv.ParseUint(string(request[i+1:i+5]), 16, 8)
				c, i = byte(n), i+4
			}
		}
		if len(arg) < maxMessage { // no text quotes more
			arg = append(arg, c)
		}
	}
}

// cover covers an argument. In a URL its spaces may be plus signs.
func (s *search) cover(arg []byte) {
	switch {
	case len(arg) == 0:
	case len(arg) >= shortArg:
		s.coverAll(arg, min(len(arg), headArg), 0)
		if bytes.IndexByte(arg, ' ') >= 0 && bytes.IndexByte(s.text, '+') >= 0 {
			s.coverAll(bytes.ReplaceAll(arg, []byte{' '}, []byte{'+'}), min(len(arg), headArg), 0)
		}
	default:
		var room [shortArg + 1]byte
		for _, quote := range []byte(quotes) {
			quoted := append(append(append(room[:0], quote), arg...), quote)
			s.coverAll(quoted, len(quoted), 1)
		}
	}
}

// coverAll covers what stands of arg, without the quotes around it, wherever that is
// enough.
func (s *search) coverAll(arg []byte, enough, quotes int) {
	for _, at := range s.places[[shortArg]byte(arg)] {
		n := 0
		for n < len(arg) && at+n < len(s.text) && arg[n] == s.text[at+n] {
			n++
		}
		s.compared += n + 1
		if s.compared > maxCompared {
			return
		}
		for i := at + quotes; n >= enough && i < at+n-quotes; i++ {
			s.covered[i] = true
		}
	}
}

// shown returns a part of the text, with a mark for each part that is covered.
func (s *search) shown(start, end int) string {
	var out strings.Builder
	for i := start; i < end; {
		if !s.covered[i] {
			out.WriteByte(s.text[i])
			i++
			continue
		}
		out.WriteString(redacted)
		for i < end && (s.covered[i] || !utf8.RuneStart(s.text[i])) {
			i++
		}
	}
	return out.String()
}

// isBitFieldWord reports whether arg is a keyword, a type or a number of a
// BITFIELD. Those are no secret, and look like sizes and ports.
func isBitFieldWord(arg []byte) bool {
	switch string(arg) {
	case "GET", "SET", "INCRBY", "OVERFLOW", "WRAP", "SAT", "FAIL":
		return true
	}
	number := bytes.TrimLeft(arg, "ui#-")
	return len(number) > 0 && len(arg)-len(number) <= 1 && len(bytes.Trim(number, digits)) == 0
}

const (
	digits  = "0123456789"
	hexa    = digits + "abcdefABCDEF"
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// isEntity reports whether s begins as &amp; or &#34; does.
func isEntity(s string) bool {
	name, _, ok := strings.Cut(s[:min(len(s), maxEntity)], ";")
	return ok && len(name) > 1 && name[0] == '&' && onlyOf(name[1:], "#"+digits+letters)
}

const maxEntity = 12 // bytes

func onlyOf(s, chars string) bool { return strings.Trim(s, chars) == "" }

// hidden holds a value that fmt must not show. In an unexported field of
// another struct fmt calls no Format method and prints every field of a value.
// It follows a pointer there, but never a pointer to a pointer: a hidden is
// kept behind two.
type hidden[T any] struct {
	v    T
	self *hidden[T]
}

func (h *hidden[T]) pointer() **hidden[T] {
	h.self = h
	return &h.self
}

func hide[T any](v T) **hidden[T] { return (&hidden[T]{v: v}).pointer() }
