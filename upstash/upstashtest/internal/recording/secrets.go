package recording

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// secrets are the values a recording must not contain: the token and the host.
// They come from the requests.
type secrets struct {
	values map[string]string // from a value to the word for it
}

func (s *secrets) learn(req *http.Request) {
	if s.values == nil {
		s.values = make(map[string]string)
	}
	if token := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "); token != "" {
		s.values[token] = "the token"
	}
	s.values[hostOf(req.URL)] = "the host"
}

// hostOf returns the host's name, by which a database can be found. For a
// loopback address it returns name and port: 127.0.0.1 alone is no secret, and
// occurs in many tests.
func hostOf(u *url.URL) string {
	name := u.Hostname()
	addr, err := netip.ParseAddr(name)
	if name == "localhost" || err == nil && addr.IsLoopback() {
		return u.Host
	}
	return name
}

// in returns the word for a secret in data, or "".
func (s *secrets) in(data []byte) string {
	lower := bytes.ToLower(data)
	for value, word := range s.values {
		if bytes.Contains(lower, []byte(strings.ToLower(value))) {
			return word
		}
	}
	return ""
}

// maxNesting is how many encodings around a secret are taken off: JSON in JSON,
// base64 in a URL in JSON.
const maxNesting = 5

// hiddenIn returns the word for a secret in data, in plain or encoded, or "".
// It looks into strings of JSON, URL escapes and both alphabets of base64.
func (s *secrets) hiddenIn(data []byte, nesting int) string {
	if word := s.in(data); word != "" || nesting == 0 {
		return word
	}
	inner := base64In(data)
	if json.Valid(data) {
		inner = append(inner, stringsIn(data)...)
	}
	if plain := unescape(data); len(plain) < len(data) {
		inner = append(inner, plain)
	}
	for _, each := range inner {
		if word := s.hiddenIn(each, nesting-1); word != "" {
			return word
		}
	}
	return ""
}

// stringsIn returns the strings of a JSON document, including names.
func stringsIn(doc []byte) (all [][]byte) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	for {
		t, err := d.Token()
		if err != nil { // the end: the document is valid
			return all
		}
		if s, ok := t.(string); ok {
			all = append(all, []byte(s))
		}
	}
}

// unescape replaces the valid escapes of a URL and leaves all else.
func unescape(data []byte) []byte {
	var plain []byte
	for i := 0; i < len(data); i++ {
		if c := data[i]; c == '%' && i+2 < len(data) {
			if n, err := strconv.ParseUint(string(data[i+1:i+3]), 16, 8); err == nil {
				plain = append(plain, byte(n))
				i += 2
				continue
			}
		}
		plain = append(plain, data[i])
	}
	return plain
}

// minBase64 is the length of the shortest text to try as base64.
const minBase64 = 8

// base64In decodes what may be base64 in data, of either alphabet, with padding
// or without. Other characters of the alphabet may stand before it, so all four
// alignments are tried.
func base64In(data []byte) (all [][]byte) {
	isPart := func(c rune) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			c == '+' || c == '/' || c == '-' || c == '_'
	}
	for word := range bytes.FieldsFuncSeq(data, func(c rune) bool { return !isPart(c) }) {
		if len(word) < minBase64 {
			continue
		}
		word = bytes.ReplaceAll(bytes.ReplaceAll(word, []byte("-"), []byte("+")), []byte("_"), []byte("/"))
		for i := range 4 {
			part := word[i:]
			if len(part)%4 == 1 {
				part = part[:len(part)-1]
			}
			decoded := make([]byte, base64.RawStdEncoding.DecodedLen(len(part)))
			if n, err := base64.RawStdEncoding.Decode(decoded, part); err == nil {
				all = append(all, decoded[:n])
			}
		}
	}
	return all
}
