package database

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unsafe"
)

// Reply is one reply of Redis: nil, an int64, a Status, a Bulk, an Array, a
// Failure or, instead of a reply, Lost.
type Reply any

type (
	// Status is a simple string such as OK.
	Status string
	// Bulk is a binary-safe string.
	Bulk string
	// Array holds replies of any kind, failures among them.
	Array []Reply
	// Failure is an error reply, which begins with its code: "ERR syntax error".
	Failure string
	// Lost says why there is no reply: a command or a script took too long, the
	// connection broke, or the engine panicked. It is no refusal: the command
	// may have run. It replaces a whole reply, and is in no Array.
	Lost string
)

func (f Failure) Error() string { return string(f) }

func (l Lost) Error() string { return string(l) }

// Errors of more than one command.
const (
	errSyntax    = Failure("ERR syntax error")
	errNotInt    = Failure("ERR value is not an integer or out of range")
	ErrWrongType = Failure("WRONGTYPE Operation against a key holding the wrong kind of value")
)

// Plain converts a reply to the types of upstashtest.Server's Exec.
func Plain(r Reply) any {
	switch r := r.(type) {
	case Status:
		return string(r)
	case Bulk:
		return string(r)
	case Failure:
		return errors.New(string(r))
	case Lost:
		return r
	case Array:
		out := make([]any, len(r))
		for i := range r {
			out[i] = Plain(r[i])
		}
		return out
	}
	return r
}

// WriteRESP encodes a reply as RESP2.
func WriteRESP(w *bytes.Buffer, r Reply) {
	length := func(kind byte, n int) { w.Write(appendLength(w.AvailableBuffer(), kind, n)) }
	switch r := r.(type) {
	case int64:
		fmt.Fprintf(w, ":%d\r\n", r)
	case Status:
		fmt.Fprintf(w, "+%s\r\n", string(r))
	case Failure:
		fmt.Fprintf(w, "-%s\r\n", string(r))
	case Bulk:
		length('$', len(r))
		w.WriteString(string(r))
		w.WriteString("\r\n")
	case Array:
		length('*', len(r))
		for _, el := range r {
			WriteRESP(w, el)
		}
	default:
		length('$', -1)
	}
}

// readReply reads one reply in RESP2.
func readReply(r *bufio.Reader) (Reply, error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	kind, text := line[0], line[1:]
	switch kind {
	case '+':
		return Status(text), nil
	case '-':
		return Failure(text), nil
	}
	n, ok := parseInt(string(text))
	switch {
	case !ok:
		return nil, fmt.Errorf("no number in %q", line)
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case n > maxString || kind != '$' && kind != '*':
		return nil, fmt.Errorf("not a reply: %q", line)
	case kind == '$':
		return readBulk(r, int(n))
	}
	out := make(Array, n)
	for i := range out {
		if out[i], err = readReply(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readBulk reads n bytes and the end of their line.
func readBulk(r *bufio.Reader, n int) (Reply, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	if _, err := r.Discard(len("\r\n")); err != nil {
		return nil, err
	}
	return Bulk(unsafe.String(unsafe.SliceData(b), n)), nil // without a copy of up to 512 MB
}

// readLine reads a line of at least one byte. It is valid until the next read.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) { // the error of a script may be long
		var rest []byte
		line = bytes.Clone(line)
		rest, err = r.ReadBytes('\n')
		line = append(line, rest...)
	}
	if err != nil {
		return nil, err
	}
	line, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok || len(line) == 0 {
		return nil, fmt.Errorf("not a reply: %q", line)
	}
	return line, nil
}

// parseInt is Redis' string2ll: decimal, no plus sign, no leading zeros.
func parseInt(s string) (int64, bool) {
	digits := strings.TrimPrefix(s, "-")
	if s != "0" && (digits == "" || digits[0] < '1') {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// keyword returns an option as Redis compares it: as a C string, with ASCII letters
// in any case. Here they are in upper case.
func keyword(s string) string { return upper(cString(s)) }

// upper is strings.ToUpper for ASCII letters alone, as Redis knows no others.
func upper(s string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			r -= 'a' - 'A'
		}
		return r
	}, s)
}

// cString cuts s at its first NUL byte, where a C string ends.
func cString(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s
}

// at returns the number at an index of the arguments.
func at(args []string, i int) (int64, bool) {
	if i >= len(args) {
		return 0, false
	}
	return parseInt(args[i])
}

// with returns args with another word at i. It does not change args.
func with(args []string, i int, word string) []string {
	if args[i] == word {
		return args
	}
	out := append([]string(nil), args...)
	out[i] = word
	return out
}

// everySecond returns the elements at even indexes.
func everySecond(args []string) (list []string) {
	for i := 0; i < len(args); i += 2 {
		list = append(list, args[i])
	}
	return list
}

// appendLength appends the line before an array or a string.
func appendLength(dst []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(dst, kind), int64(n), 10), "\r\n"...)
}

// maxString is the longest string of Redis, in bytes. A bit offset must lie
// below its end. A wide field at such an offset may reach past it.
const maxString = 512 << 20
