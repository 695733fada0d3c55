package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"
)

// splitArray cuts a JSON array into the text of its elements. It checks the
// whole document first, so that the functions which read the elements need not.
func splitArray(body []byte) ([][]byte, error) {
	body = trim(body)
	switch {
	case len(body) == 0:
		return nil, errEmptyBody
	case body[0] != '[':
		return nil, errNotArray
	case !json.Valid(body):
		return nil, errors.New("ERR the request body is not valid JSON")
	}
	items := make([][]byte, 0, 1+bytes.Count(body, []byte{','}))
	for rest := bytes.TrimSpace(body[1 : len(body)-1]); len(rest) > 0; {
		n := elementLen(rest)
		items = append(items, bytes.TrimSpace(rest[:n]))
		if rest = rest[n:]; len(rest) > 0 {
			rest = rest[1:] // the comma
		}
	}
	return items, nil
}

// elementLen returns the length of the element at the start of valid JSON: up
// to the comma that belongs to no string and to no nested value.
func elementLen(b []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 0:
			return i
		}
	}
	return len(b)
}

// argument turns one JSON value into an argument. A boolean becomes its own
// text, and so does a number, unless floats is set: then it goes through
// float64.
func argument(item []byte, floats bool) (string, error) {
	switch c := item[0]; {
	case c == '"':
		return unquote(item), nil
	case c == 'n':
		return "", errNullArg
	case c == '[':
		return "", errors.New("ERR unsupported arg type: array")
	case c == '{':
		return "", errors.New("ERR unsupported arg type: object")
	case !floats || c == 't' || c == 'f':
		return string(item), nil
	}
	f, err := strconv.ParseFloat(string(item), 64)
	if err != nil {
		return "", errors.New("ERR a number is out of range")
	}
	return strconv.FormatFloat(f, 'g', -1, 64), nil
}

// unquote reads a valid JSON string. Bytes that are not UTF-8 become U+FFFD.
func unquote(item []byte) string {
	raw := item[1 : len(item)-1]
	if utf8.Valid(raw) && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw)
	}
	var s string
	_ = json.Unmarshal(item, &s) // valid, as splitArray checked
	return s
}
