package upstash

import (
	"bytes"
	"fmt"
	"strconv"
)

// maxRESPDepth bounds nested arrays; no command answers with more than a few.
const maxRESPDepth = 32

var errRESP2 = fmt.Errorf("%w: not RESP2", ErrBadResponse)

// decodeRESP2 reads one whole RESP2 value. It copies the strings, so the reply
// does not keep the body. The reply does not yet know its command.
func decodeRESP2(body []byte) (Reply, error) {
	r, rest, err := parseRESP2(body, maxRESPDepth)
	if err != nil {
		return Reply{}, err
	}
	if len(rest) != 0 {
		return Reply{}, errRESP2
	}
	return r, nil
}

func parseRESP2(b []byte, depth int) (Reply, []byte, error) {
	line, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok || len(line) == 0 || depth == 0 {
		return Reply{}, nil, errRESP2
	}
	var r Reply
	text := line[1:]
	switch line[0] {
	case '+':
		r.value = hide(value{kind: kindString, text: string(text)})
		return r, rest, nil
	case '-':
		r.err = &Error{StatusCode: 200, Message: string(text)}
		return r, rest, nil
	case ':':
		n, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			return Reply{}, nil, errRESP2
		}
		r.value = hide(value{kind: kindInt, int: n})
		return r, rest, nil
	case '$':
		return parseBulk(r, text, rest)
	case '*':
		return parseRESPArray(r, text, rest, depth)
	}
	return Reply{}, nil, errRESP2
}

func parseBulk(r Reply, length, rest []byte) (Reply, []byte, error) {
	n, err := strconv.Atoi(string(length))
	if err == nil && n == -1 {
		return r, rest, nil
	}
	if err != nil || n < 0 || n > len(rest)-2 || string(rest[n:n+2]) != "\r\n" {
		return Reply{}, nil, errRESP2
	}
	r.value = hide(value{kind: kindString, text: string(rest[:n])})
	return r, rest[n+2:], nil
}

func parseRESPArray(r Reply, length, rest []byte, depth int) (Reply, []byte, error) {
	n, err := strconv.Atoi(string(length))
	if err == nil && n == -1 {
		return r, rest, nil
	}
	// Each element takes at least three bytes, so a false length cannot make
	// this allocate more than the body justifies.
	if err != nil || n < 0 || n > len(rest)/3 {
		return Reply{}, nil, errRESP2
	}
	list := make([]Reply, n)
	r.value = hide(value{kind: kindArray, array: list})
	for i := range n {
		list[i], rest, err = parseRESP2(rest, depth-1)
		if err != nil {
			return Reply{}, nil, err
		}
	}
	return r, rest, nil
}
