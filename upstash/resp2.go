package upstash

import (
	"bytes"
	"fmt"
	"strconv"
)

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
		n, _, ok := respInt(element)
		valid = valid && (ok || isRESPNull(element))
		dst = append(dst, NullInt64{n, ok})
	})
	return dst, isArray && valid
}

// errorAt returns the error at a place of an array.
func (a *received) errorAt(at uint32) *Error {
	if e := a.errs[at]; e != nil {
		return e
	}
	line, _ := respLine(a.body[at:])
	message := string(line[:min(len(line), maxMessage)])
	// The rest could quote the request, which is no longer known.
	return a.commandError(codeOf(message)+" "+redacted, kindOf(200, message))
}

// commandError makes the error of one command within an answer of status 200.
func (a *received) commandError(words string, kind error) *Error {
	e := &Error{
		StatusCode: 200, Message: words, Command: a.name, attempts: int(a.attempts), matches: kind,
	}
	e.outcome = judge(a.traits, a.maybeRepeated, answerOutcome(a.traits, e))
	return e
}
