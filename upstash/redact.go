package upstash

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/upbloom/upbloom/internal/json"
	"github.com/upbloom/upbloom/upstash/internal/quiet"
)

const redacted = "…"

// maxMessage is how many bytes are kept of a server's words. Its own are short;
// a longer text is a page, or quotes the request.
const maxMessage = 1000

// maxArg is how many bytes of an argument's JSON are compared with a server's
// words: enough for those of a message, each escaped.
const maxArg = 6*maxMessage + 2

// redact returns a server's words without what they quote of a request: known
// secrets, and each of the first arguments in words, the JSON of the request,
// that could be a key or an item.
func redact(message string, words []byte, secrets ...string) string {
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + redacted
	}
	// The code, such as WRONGTYPE, is always the server's own.
	code := codeOf(message)
	message = message[len(code):]
	message = ownWords(message)
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
	return code + quiet.Escape(message)
}

// ownWords returns message without the arguments of an unknown command, which
// Redis quotes, cut at 128 bytes.
func ownWords(message string) string {
	own, _, _ := strings.Cut(message, ", with args beginning with:")
	return own
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
	found := make(map[string]bool)
	heads := headsIn(message)
	look := func(arg []byte) {
		if len(arg) < headBytes || heads[string(arg[:headBytes])] {
			if part := quotedPart(message, arg); part != "" {
				found[part] = true
			}
		}
	}
	for ofBitField, args := false, 0; ; {
		start := bytes.IndexByte(body, '"')
		if start < 0 {
			return slices.Collect(maps.Keys(found))
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
		raw = raw[:min(len(raw), maxArg)]
		form := bytes.TrimSuffix(raw[1:], []byte(`"`))
		if len(form) == 0 || len(form) < headBytes && isKeyword(string(form)) {
			continue
		}
		if bytes.IndexByte(form, '\\') >= 0 {
			if text, ok := unescape(form); ok {
				look([]byte(text))
			}
		}
		look(form)
	}
}

// unescape returns the text of a JSON string without its quotes. The end may be
// cut off in the midst of an escape.
func unescape(form []byte) (string, bool) {
	if i := bytes.LastIndexByte(form, '\\'); len(form) > maxArg-6 && i > len(form)-6 {
		form = form[:i]
	}
	text, err := json.String(slices.Concat([]byte(`"`), form, []byte(`"`)))
	return text, err == nil
}

// headsIn returns every text of headBytes bytes in message. A command may have a
// million arguments, and each long one is looked up here.
func headsIn(message string) map[string]bool {
	heads := make(map[string]bool, len(message))
	for i := 0; i+headBytes <= len(message); i++ {
		heads[message[i:i+headBytes]] = true
	}
	return heads
}

// quotedPart returns the longest beginning of arg in message, as a part of
// message, or "" if it is shorter than the head of arg.
func quotedPart(message string, arg []byte) (part string) {
	first := string(arg[:min(len(arg), headBytes)])
	for at := strings.Index(message, first); at >= 0; {
		n := len(first)
		for n < len(arg) && at+n < len(message) && message[at+n] == arg[n] {
			n++
		}
		if n > len(part) {
			part = message[at : at+n]
		}
		next := strings.Index(message[at+1:], first)
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return part
}

// beginString returns the JSON string at the beginning of b.
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
// beginning if the server cut it off. An argument of less than four bytes is
// replaced only if it stands alone.
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

// headBytes is how much of an argument a message is searched for. Eight bytes
// are not there by chance.
const headBytes = 8

func head(arg string) string { return arg[:min(len(arg), headBytes)] }

// standsAlone reports whether s[start:end] is a word, and not a part of one or
// of an address such as 127.0.0.1.
func standsAlone(s string, start, end int) bool { return !joins(s, start-1, -1) && !joins(s, end, 1) }

// joins reports whether the byte at i belongs to the word beside it, on the side
// that step leads away from.
func joins(s string, i, step int) bool {
	at := func(i int) bool { return i >= 0 && i < len(s) && isWord(s[i]) }
	return at(i) || i >= 0 && i < len(s) && s[i] == '.' && at(i+step)
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|' ' && c|' ' <= 'z'
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

// quieted returns a transport's error without the token, the path of a raw
// command, the body, and what cannot be printed. The rest of its text stays: people
// need its addresses and causes. It wraps only errors of the network and the
// system that say no more than this text.
func quieted(err error, token, path string, body []byte) error {
	text := cover(err.Error(), token)
	if path != "" {
		text = cover(text, path)
	}
	// No text quotes more of the body than its own length. Less than this may be a
	// port.
	if n := min(len(body), len(text)); n >= headBytes {
		quote := string(body[:n])
		text = cover(cover(text, quote), inQuotes(quote))
	}
	return quiet.Error(text, err)
}

// inQuotes returns s as it stands between the quotes of a Go string.
func inQuotes(s string) string {
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

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
