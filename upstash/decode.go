package upstash

import (
	"bytes"
	"fmt"

	"github.com/upbloom/upbloom/internal/json"
)

// envelope is one answer of the REST API: a result as raw JSON, or an error.
type envelope struct {
	result []byte
	errMsg *string
}

var errNotJSON = fmt.Errorf("%w: not the JSON of a REST API answer", ErrBadResponse)

// decodeEnvelope reads {"result": ...} or {"error": "..."}.
func decodeEnvelope(body []byte) (envelope, error) {
	if raw, ok := fastResult(body); ok {
		return envelope{result: raw}, nil
	}
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '{' {
		return envelope{}, errNotJSON
	}
	var result, errMsg []byte
	err := json.Object(body, func(name string, raw []byte) {
		switch name {
		case "result":
			result = raw
		case "error":
			errMsg = raw
		}
	})
	if err != nil {
		return envelope{}, errNotJSON
	}
	if errMsg != nil && string(errMsg) != "null" {
		text, err := json.String(errMsg)
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
	body = bytes.TrimSpace(body)
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
		if n++; n > commands || bad != nil {
			return
		}
		var env envelope
		env, bad = decodeEnvelope(body[from:to])
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

// fastResult returns the result of the one shape that matters for speed:
// {"result":[...]} with integers and nulls, as BITFIELD answers, or with a
// single integer. It reports false for any other body.
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
// Reply.Array has the check of the JSON library.
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
