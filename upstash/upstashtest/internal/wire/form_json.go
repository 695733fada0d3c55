package wire

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/upbloom/upbloom/internal/json"
)

// parseBatch reads [[...],[...]]. A malformed command is an error of the whole
// request. An unknown command is not.
func parseBatch(body []byte, floats bool) ([][]string, error) {
	var cmds [][]string
	var bad error
	err := eachElement(body, func(from, to int) {
		if bad == nil {
			var cmd []string
			cmd, bad = parseCommand(body[from:to], floats)
			cmds = append(cmds, cmd)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case bad != nil:
		return nil, bad
	case len(cmds) == 0:
		return nil, errEmptyBatch
	}
	return cmds, nil
}

// parseCommand reads ["NAME","arg",...]. The arguments share one copy of body.
func parseCommand(body []byte, floats bool) ([]string, error) {
	text := string(body)
	plain := utf8.ValidString(text) && strings.IndexByte(text, '\\') < 0
	cmd := make([]string, 0, 1+strings.Count(text, ","))
	var bad error
	err := eachElement(body, func(from, to int) {
		switch {
		case bad != nil:
		case plain && text[from] == '"':
			cmd = append(cmd, text[from+1:to-1])
		default:
			var arg string
			arg, bad = argument(text[from:to], floats)
			cmd = append(cmd, arg)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case bad != nil:
		return nil, bad
	case len(cmd) == 0 || cmd[0] == "":
		return nil, ErrEmptyCommand
	}
	return cmd, nil
}

// eachElement calls each for the bounds of every element of an array. each may
// be called before an error is found.
func eachElement(body []byte, each func(from, to int)) error {
	switch start := bytes.TrimLeft(body, " \t\r\n"); {
	case len(start) == 0:
		return errEmptyBody
	case start[0] != '[':
		return errNotArray
	}
	if json.Array(body, each) != nil {
		return errors.New("ERR the request body is not valid JSON")
	}
	return nil
}

// argument turns one JSON value into an argument. A boolean becomes its own
// text, and so does a number, unless floats is set: then it goes through
// float64. In a string, bytes that are not UTF-8 become U+FFFD.
func argument(item string, floats bool) (string, error) {
	switch c := item[0]; {
	case c == '"':
		return json.String([]byte(item))
	case c == 'n':
		return "", errNullArg
	case c == '[':
		return "", errors.New("ERR unsupported arg type: array")
	case c == '{':
		return "", errors.New("ERR unsupported arg type: object")
	case !floats || c == 't' || c == 'f':
		return item, nil
	}
	f, err := strconv.ParseFloat(item, 64)
	if err != nil {
		return "", errors.New("ERR a number is out of range")
	}
	return strconv.FormatFloat(f, 'g', -1, 64), nil
}
