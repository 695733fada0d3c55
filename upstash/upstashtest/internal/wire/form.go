// Package wire reads the commands of a request in any of the forms of the REST
// API, and writes the replies in the encoding the request asks for.
package wire

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
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
func Parse(r *http.Request, body []byte, floats bool) (Batch, error) {
	path := r.URL.EscapedPath()
	switch path {
	case "", "/":
		cmd, err := parseCommand(body, floats)
		return Batch{Command, [][]string{cmd}}, err
	case "/pipeline":
		cmds, err := parseBatch(body, floats)
		return Batch{Pipeline, cmds}, err
	case "/multi-exec":
		cmds, err := parseBatch(body, floats)
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
		arg, err := url.PathUnescape(seg)
		if err != nil {
			return nil, errBadEscape
		}
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
