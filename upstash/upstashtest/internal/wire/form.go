// Package wire reads the commands of a request in any of the forms of the REST
// API, and writes the replies in the encoding the request asks for.
package wire

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/upbloom/upbloom/upstash/internal/json"
)

// TokenParameter is the place of the token in a query, if it is there.
const TokenParameter = "_token"

// Form is how a request carries its commands.
type Form string

// The forms: a command alone, a pipeline, and a transaction.
const (
	Command   Form = "command"
	Pipeline  Form = "pipeline"
	MultiExec Form = "multi-exec"
)

// Batch is a parsed request: one command, or those of a pipeline or of a
// transaction. No command is empty.
type Batch struct {
	Form Form
	Cmds [][]string
}

// String returns the form and the commands, quoted: the same for equal requests.
// It takes as long as all the rest of a large request.
func (b Batch) String() string { return fmt.Sprintf("%s %q", b.Form, b.Cmds) }

// ErrEmptyCommand and its like are answered with status 400 and these words.
var (
	errEmptyBody    = errors.New("EOF")
	errNotArray     = errors.New("expected JSON array")
	ErrEmptyCommand = errors.New("ERR empty command")
	errEmptyBatch   = errors.New("ERR empty pipeline request")
	errEmptySegment = errors.New("ERR empty argument in the path")
	errNullArg      = errors.New("ERR null args are not supported")
	errBadEscape    = errors.New("ERR invalid escape in the path or the query")
)

// Parse reads the commands of a request from its path, its query and its
// body. Its errors are the texts of answers.
func Parse(r *http.Request, body []byte) (Batch, error) {
	path := r.URL.EscapedPath()
	switch path {
	case "", "/":
		cmd, err := parseCommand(body)
		return Batch{Command, [][]string{cmd}}, err
	case "/pipeline":
		cmds, err := parseBatch(body)
		return Batch{Pipeline, cmds}, err
	case "/multi-exec":
		cmds, err := parseBatch(body)
		return Batch{MultiExec, cmds}, err
	}
	cmd, err := parsePath(path, body, r.URL.RawQuery)
	return Batch{Command, [][]string{cmd}}, err
}

// parsePath reads /NAME/arg/arg?option=value. The command consists of the
// segments, the body if there is one, and the query in its order without the
// token. In the path, which is still escaped, an escaped slash belongs to an
// argument and a plus sign is a plus sign. An empty segment is an error,
// because a missing key would look like one.
func parsePath(path string, body []byte, query string) ([]string, error) {
	var cmd []string
	for seg := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		arg, _ := url.PathUnescape(seg) // package url has escaped it
		cmd = append(cmd, arg)
	}
	if cmd[0] == "" {
		return nil, ErrEmptyCommand
	}
	if slices.Contains(cmd, "") {
		return nil, errEmptySegment
	}
	if len(body) > 0 {
		cmd = append(cmd, string(body))
	}
	for part := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(part, "=")
		if name == "" || name == TokenParameter {
			continue
		}
		for _, s := range []string{name, value} {
			arg, err := url.QueryUnescape(s)
			if err != nil {
				return nil, errBadEscape
			}
			if s != "" { // ?NX and ?NX= are one argument, not two
				cmd = append(cmd, arg)
			}
		}
	}
	return cmd, nil
}

// parseBatch reads [[...],[...]]. A malformed command is an error of the whole
// request. An unknown command is not.
func parseBatch(body []byte) ([][]string, error) {
	var cmds [][]string
	var bad error
	err := eachElement(body, func(from, to int) {
		if bad == nil {
			var cmd []string
			cmd, bad = parseCommand(body[from:to])
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
func parseCommand(body []byte) ([]string, error) {
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
			arg, bad = argument(text[from:to])
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
	start := bytes.TrimLeft(body, " \t\r\n")
	if len(start) == 0 {
		return errEmptyBody
	}
	if start[0] != '[' {
		return errNotArray
	}
	if json.Array(body, each) != nil {
		return errors.New("ERR the request body is not valid JSON")
	}
	return nil
}

// argument turns one JSON value into an argument. A number or a boolean becomes its
// own text. In a string, bytes that are not UTF-8 become U+FFFD.
func argument(item string) (string, error) {
	switch item[0] {
	case '"':
		return json.String([]byte(item))
	case 'n':
		return "", errNullArg
	case '[':
		return "", errors.New("ERR unsupported arg type: array")
	case '{':
		return "", errors.New("ERR unsupported arg type: object")
	}
	return item, nil
}
