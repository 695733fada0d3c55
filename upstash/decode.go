package upstash

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/upbloom/upbloom/upstash/internal/json"
)

// envelope is one answer of the REST API: a result as raw JSON, or an error.
type envelope struct {
	result []byte
	errMsg *string
}

var errNotJSON = fmt.Errorf("%w: not the JSON of a REST API answer: a proxy may have"+
	" answered; check the URL", ErrBadResponse)

// errTwoAnswers is returned for {"result":1,"result":2}, or with an error beside.
var errTwoAnswers = fmt.Errorf("%w: two answers to one command", ErrBadResponse)

// decodeEnvelope reads {"result": ...} or {"error": "..."}.
func decodeEnvelope(body []byte) (envelope, error) {
	body = skipSpace(body)
	if raw, ok := fastResult(body); ok {
		return envelope{result: raw}, nil
	}
	if bytes.HasPrefix(body, []byte(`{"result":[`)) {
		return newEnvelope(json.BoundedEnvelope(body))
	}
	return newEnvelope(json.Envelope(body))
}

// boundedEnvelope is decodeEnvelope for an answer with a list.
func boundedEnvelope(body []byte) (envelope, error) {
	if raw, ok := fastResult(body); ok {
		return envelope{result: raw}, nil
	}
	return newEnvelope(json.BoundedEnvelope(body))
}

func newEnvelope(result, message []byte, err error) (envelope, error) {
	if err != nil {
		return envelope{}, errNotJSON
	}
	if message != nil && string(message) != "null" {
		if result != nil && string(result) != "null" {
			return envelope{}, errTwoAnswers
		}
		text, err := json.String(message)
		if err != nil {
			return envelope{}, errNotJSON
		}
		return envelope{errMsg: &text}, nil
	}
	if result == nil {
		return envelope{}, fmt.Errorf("%w: neither a result nor an error in it", ErrBadResponse)
	}
	return envelope{result: result}, nil
}

// decodeEnvelopes reads the answer to /pipeline and /multi-exec: an array of
// as many envelopes as there are commands, or one error for all.
func decodeEnvelopes(body []byte, commands int) ([]envelope, *string, error) {
	body = skipSpace(body)
	if len(body) > 0 && body[0] == '{' {
		env, err := decodeEnvelope(body)
		if err == nil && env.errMsg == nil {
			err = fmt.Errorf("%w: one result, but an array was due", ErrBadResponse)
		}
		return nil, env.errMsg, err
	}
	if len(body) == 0 || body[0] != '[' {
		return nil, nil, errNotJSON
	}
	out, n := make([]envelope, 0, commands), 0
	var bad error
	err := json.Array(body, func(from, to int) {
		n++
		if n > commands || bad != nil {
			return
		}
		var env envelope
		env, bad = boundedEnvelope(body[from:to])
		out = append(out, env)
	})
	switch {
	case err != nil:
		return nil, nil, errNotJSON
	case bad != nil:
		return nil, nil, bad
	case n != commands:
		return nil, nil, fmt.Errorf("%w: %d answers to %d commands", ErrBadResponse, n, commands)
	}
	return out, nil, nil
}

// fastResult returns the result of the one shape whose speed matters:
// {"result":[...]} with integers and nulls, BITFIELD's answer, or with a single
// integer. It reports false for any other body.
func fastResult(body []byte) ([]byte, bool) {
	const prefix = `{"result":`
	for len(body) > 0 && (body[len(body)-1] == '\n' || body[len(body)-1] == '\r') {
		body = body[:len(body)-1] // as some servers end their JSON
	}
	if len(body) < len(prefix)+2 || string(body[:len(prefix)]) != prefix {
		return nil, false
	}
	raw := body[len(prefix) : len(body)-1]
	if body[len(body)-1] != '}' {
		return nil, false
	}
	if raw[0] != '[' {
		_, rest, ok := parseInt(raw)
		return raw, ok && len(rest) == 0
	}
	return raw, isIntArray(raw)
}

// isIntArray reports whether raw has brackets and the bytes of integers and
// nulls between them. It checks no more, because Reply.Ints parses them, and
// Reply.Array checks the rest of JSON.
func isIntArray(raw []byte) bool {
	if raw[len(raw)-1] != ']' {
		return false
	}
	for _, c := range raw[1 : len(raw)-1] {
		if (c < '0' || c > '9') && c != ',' && c != 'n' && c != 'u' && c != 'l' && c != '-' {
			return false
		}
	}
	return true
}

// NullInt64 is an integer or null. The zero value is null.
type NullInt64 struct {
	Int64 int64
	Valid bool // false for null: OVERFLOW FAIL kept the operation from running
}

// parseInt reads an integer in JSON's form at the beginning of b, and returns
// what follows it. All of int64 is read exactly.
func parseInt(b []byte) (n int64, rest []byte, ok bool) {
	i := 0
	if len(b) > 0 && b[0] == '-' {
		i++
	}
	start := i
	var u uint64
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		if i-start >= 18 { // may pass int64: rare, so let strconv judge
			return parseLongInt(b)
		}
		u = u*10 + uint64(b[i]-'0')
		i++
	}
	if i == start || b[start] == '0' && i > start+1 {
		return 0, b, false
	}
	n = int64(u)
	if start == 1 {
		n = -n
	}
	return n, b[i:], true
}

func parseLongInt(b []byte) (int64, []byte, bool) {
	i := 1
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	n, err := strconv.ParseInt(string(b[:i]), 10, 64)
	leadingZero := b[0] == '0' || b[0] == '-' && b[1] == '0'
	return n, b[i:], err == nil && !leadingZero
}

// appendInts reads an array such as [1,null,-2]. White space is accepted,
// though no known server sends it.
func appendInts(dst []NullInt64, b []byte) ([]NullInt64, bool) {
	b = skipSpace(b)
	if len(b) == 0 || b[0] != '[' {
		return dst, false
	}
	b = skipSpace(b[1:])
	if len(b) > 0 && b[0] == ']' {
		return dst, len(skipSpace(b[1:])) == 0
	}
	for {
		switch {
		case len(b) >= 2 && b[0] <= '1' && b[0] >= '0' && (b[1] == ',' || b[1] == ']'):
			// A bit, the commonest element by far.
			dst = append(dst, NullInt64{int64(b[0] - '0'), true})
			b = b[1:]
		case len(b) >= 4 && string(b[:4]) == "null":
			dst = append(dst, NullInt64{})
			b = b[4:]
		default:
			n, rest, ok := parseInt(b)
			if !ok {
				return dst, false
			}
			dst = append(dst, NullInt64{n, true})
			b = rest
		}
		b = skipSpace(b)
		if len(b) == 0 {
			return dst, false
		}
		switch b[0] {
		case ',':
			b = skipSpace(b[1:])
		case ']':
			return dst, len(skipSpace(b[1:])) == 0
		default:
			return dst, false
		}
	}
}

func skipSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\r' || b[0] == '\t') {
		b = b[1:]
	}
	return b
}

const hexDigits = "0123456789abcdef"

// maxRESPDepth bounds nested arrays; no command answers with more than a few.
const maxRESPDepth = 32

// maxRESPErrors is how many errors of one answer keep their words: redacting
// them costs time.
const maxRESPErrors = 100

var errRESP2 = fmt.Errorf("%w: not RESP2", ErrBadResponse)

// checkRESP2 reports, with an error, whether body is one whole RESP2 value. It
// returns where the first errors among the elements of an array begin. The
// functions below read checked values.
func checkRESP2(body []byte) (errs []uint32, err error) {
	end := skipRESP2(body, 0, maxRESPDepth, &errs)
	if end != len(body) || end == 0 {
		return nil, errRESP2
	}
	return errs, nil
}

// skipRESP2 returns the end of the value at a place of b, or -1. It adds the
// places of errors to errs, which may be nil.
func skipRESP2(b []byte, at, depth int, errs *[]uint32) (end int) {
	n := bytes.Index(b[at:], []byte("\r\n"))
	if n < 1 || depth == 0 {
		return -1
	}
	line, end := b[at+1:at+n], at+n+2
	switch b[at] {
	case '+':
		return end
	case '-':
		if errs != nil && len(*errs) < maxRESPErrors {
			*errs = append(*errs, uint32(at))
		}
		return end
	case ':':
		if _, err := strconv.ParseInt(string(line), 10, 64); err == nil {
			return end
		}
	case '$':
		length, ok := respLength(line)
		if length < 0 && ok {
			return end
		}
		rest := b[end:]
		if ok && length <= len(rest)-2 && string(rest[length:length+2]) == "\r\n" {
			return end + length + 2
		}
	case '*':
		length, ok := respLength(line)
		if !ok || length > (len(b)-end)/3 { // what the shortest elements take
			return -1
		}
		for ; length > 0 && end >= 0; length-- {
			end = skipRESP2(b, end, depth-1, errs)
		}
		return end
	}
	return -1
}

// respLength returns the length of a string or an array, -1 for null.
func respLength(line []byte) (n int, ok bool) {
	if string(line) == "-1" {
		return -1, true
	}
	if len(line) == 0 || line[0] < '0' || line[0] > '9' {
		return 0, false
	}
	n, err := strconv.Atoi(string(line))
	return n, err == nil
}

// respLine returns the first line of a value without its type, and what follows.
func respLine(raw []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(raw[1:], []byte("\r\n"))
	return line, rest
}

func isRESPNull(raw []byte) bool {
	return raw[0] == '$' && raw[1] == '-' || raw[0] == '*' && raw[1] == '-'
}

func respInt(raw []byte) (n int64, rest []byte, ok bool) {
	line, rest := respLine(raw)
	n, err := strconv.ParseInt(string(line), 10, 64)
	return n, rest, raw[0] == ':' && err == nil
}

func respText(raw []byte) (text []byte, ok bool) {
	line, rest := respLine(raw)
	switch raw[0] {
	case '+':
		return line, true
	case '$':
		return rest[:len(rest)-2], true
	}
	return nil, false
}

// respElements calls each with the bounds of every element, if raw is an array.
func respElements(raw []byte, each func(from, to int)) bool {
	if raw[0] != '*' {
		return false
	}
	line, rest := respLine(raw)
	n, _ := respLength(line)
	for from := len(raw) - len(rest); n > 0; n-- {
		to := skipRESP2(raw, from, maxRESPDepth, nil)
		each(from, to)
		from = to
	}
	return true
}

// appendRESPInts appends an array of integers and nulls.
func appendRESPInts(dst []NullInt64, raw []byte) ([]NullInt64, bool) {
	valid := true
	isArray := respElements(raw, func(from, to int) {
		element := raw[from:to]
		var value NullInt64
		if !isRESPNull(element) { // whose -1 is a length
			value.Int64, _, value.Valid = respInt(element)
			valid = valid && value.Valid
		}
		dst = append(dst, value)
	})
	return dst, isArray && valid
}
