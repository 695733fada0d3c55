package upstash

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/upbloom/upbloom/internal/json"
)

const redacted = "…"

// maxMessage is how many bytes are kept of a server's words. Its own are short;
// a longer text is a page, or quotes the request.
const maxMessage = 1000

// How much of a request is compared with a server's words. If servers quote a
// command, they quote its beginning.
const (
	maxQuotedArgs  = 64
	maxQuotedBytes = 16 << 10
)

// redact returns a server's words without what they quote of a request: secrets
// that are known, and each of the first arguments in words, the JSON of the
// request, that could be a key or an item.
func redact(message string, words []byte, secrets ...string) string {
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + redacted
	}
	// The code, such as WRONGTYPE, is always the server's own.
	code := codeOf(message)
	message = message[len(code):]
	// Redis quotes the arguments of an unknown command, cut at 128 bytes.
	if own, _, ok := strings.Cut(message, ", with args beginning with:"); ok {
		message = own
	}
	quoted := quotedArgs(message, words)
	for _, secret := range secrets {
		if secret != "" {
			quoted = append(quoted, secret)
		}
	}
	// The longest first, because one may be the beginning of another.
	slices.SortFunc(quoted, func(a, b string) int { return len(b) - len(a) })
	for _, arg := range quoted {
		message = cover(message, arg)
	}
	return code + message
}

// codeOf returns the first word of a message if it is in capitals.
func codeOf(message string) string {
	word, _, _ := strings.Cut(message, " ")
	for i := 0; i < len(word); i++ {
		if word[i] < 'A' || word[i] > 'Z' {
			return ""
		}
	}
	return word
}

// quotedArgs returns what message quotes of the arguments in body, which is one
// command or an array of them, as appendString wrote it.
func quotedArgs(message string, body []byte) []string {
	var quoted []string
	body = body[:min(len(body), maxQuotedBytes)]
	ofBitField, args := false, 0
	for seen := 0; seen < maxQuotedArgs; {
		start := bytes.IndexByte(body, '"')
		if start < 0 {
			break
		}
		isName := bytes.IndexByte(body[:start], '[') >= 0
		raw := beginString(body[start:])
		body = body[start+len(raw):]
		if isName {
			ofBitField, args = strings.HasPrefix(string(raw), `"BITFIELD`), 0
			continue
		}
		if args++; ofBitField && args > 1 {
			continue // offsets are no secret, and look like sizes and ports
		}
		seen++
		form := strings.TrimSuffix(string(raw[1:]), `"`)
		if form == "" || isKeyword(form) {
			continue
		}
		if text, err := json.String(raw); err == nil && text != form {
			quoted = appendIfQuoted(quoted, message, text)
		}
		quoted = appendIfQuoted(quoted, message, form)
	}
	return quoted
}

func appendIfQuoted(dst []string, message, arg string) []string {
	if strings.Contains(message, head(arg)) {
		return append(dst, arg)
	}
	return dst
}

// beginString returns the JSON string that b begins with, or all of b if its
// end was cut off.
func beginString(b []byte) []byte {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return b[:i+1]
		}
	}
	return b
}

// cover replaces what message quotes of an argument: all of it, or its
// beginning if the server cut it. An argument of less than four bytes is
// replaced only if it stands by itself.
func cover(message, arg string) string {
	var out strings.Builder
	for {
		start := strings.Index(message, head(arg))
		if start < 0 {
			break
		}
		end := start
		for end < len(message) && end-start < len(arg) && message[end] == arg[end-start] {
			end++
		}
		for end < len(message) && !utf8.RuneStart(message[end]) {
			end++
		}
		if len(arg) < 4 && !standsAlone(message, start, end) {
			out.WriteString(message[:end])
		} else {
			out.WriteString(message[:start] + redacted)
		}
		message = message[end:]
	}
	out.WriteString(message)
	return out.String()
}

// head returns the part of an argument that a message is searched for. Eight
// bytes are not there by chance.
func head(arg string) string { return arg[:min(len(arg), 8)] }

func standsAlone(s string, start, end int) bool {
	return (start == 0 || !isWord(s[start-1])) && (end == len(s) || !isWord(s[end]))
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= lower(c) && lower(c) <= 'z'
}

// isKeyword reports whether arg is a word of the command language. A message
// may name those.
func isKeyword(arg string) bool {
	switch arg {
	case "NX", "XX", "GT", "LT", "EX", "PX", "EXAT", "PXAT", "KEEPTTL", "GET", "BYTE", "BIT":
		return true
	}
	return false
}

// quietError is an error of a transport, without the secret that it quoted.
type quietError struct {
	text string
	err  error
}

func (e *quietError) Error() string    { return e.text }
func (e *quietError) GoString() string { return e.text }
func (e *quietError) Unwrap() error    { return e.err }

// quiet keeps the token, and the path of a raw command, out of a transport's
// error. The rest of it stays, because the network layer quotes no command, and
// people need its addresses and causes.
func quiet(err error, token, path string) error {
	said := err.Error()
	text := cover(said, token)
	if path != "" {
		text = cover(text, path)
	}
	if text != said {
		return &quietError{text, err}
	}
	return err
}

// hidden holds a value that fmt must not show. In an unexported field of
// another struct fmt calls no Format method and prints every field of a value.
// It follows a pointer there, but never a pointer to a pointer: so a hidden is
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
