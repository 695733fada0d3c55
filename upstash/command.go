package upstash

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Command is one Redis command, encoded and ready to send. The zero value is
// not a command; Cmd and [BitField.Command] make one. It may be copied, sent
// any number of times, and used by several goroutines at once.
type Command struct {
	name string           // upper case
	json **hidden[[]byte] // the whole JSON array
	err  error            // why it cannot be sent

	traits traits
	binary bool

	raw     **hidden[rawForm] // of RawCmd, else nil
	script  *Script           // of Script.Cmd, else nil
	form    scriptForm        // of json
	timeout time.Duration     // of an attempt, if longer than the client's
}

// rawForm is a command whose last argument is the body of its request.
type rawForm struct {
	path string // with the other arguments
	body []byte
}

// Cmd makes any command. The name may be in any letter case. Every argument
// travels as a JSON string: no server takes a large number for a float. Sending
// the command returns [ErrArgument] if the name is none, or if an argument is
// not valid UTF-8.
//
// Some commands certainly leave the same state when they run twice in a row,
// such as reads, SET without NX or GET, EXPIRE of at least 1, SADD, HSET, and a
// BITFIELD without INCRBY. If the outcome of an attempt is unknown, the client
// repeats commands of this kind, and no others. [Command.Repeatable] overrules
// it.
func Cmd(name string, args ...string) Command {
	c := Command{name: strings.ToUpper(name)}
	if !isCommandName(c.name) {
		c.name = "?"
		c.err = argumentError("Cmd", "a command name has letters, digits, '.', '_' or '-', e.g. GET")
		return c
	}
	size := len(name) + 4 + encodedSize(args)
	b := appendString(append(make([]byte, 0, size), '['), c.name)
	if b, c.err = appendArgs(b, c.name, 0, args); c.err != nil {
		return c
	}
	b = append(b, ']')
	c.json = hide(b)
	c.traits = traitsOf(c.name, args)
	return c
}

// encodedSize returns the room that arguments need if none has to be escaped.
func encodedSize(args []string) int {
	size := 0
	for _, a := range args {
		size += len(a) + 3
	}
	return size
}

// appendArgs appends arguments of a command, of which `before` came before.
func appendArgs(dst []byte, name string, before int, args []string) ([]byte, error) {
	for i, a := range args {
		if !utf8.ValidString(a) {
			return nil, argumentError(name, "argument %d is not valid UTF-8, which JSON cannot carry:"+
				" encode it first, e.g. as hex or base64", before+i+1)
		}
		dst = appendString(append(dst, ','), a)
	}
	return dst, nil
}

// Name returns the command's name in upper case.
func (c Command) Name() string { return c.name }

// Size returns the length of the command's JSON in bytes, that of a [Script]
// with its whole text, and that of a [RawCmd] without its body.
func (c Command) Size() int {
	if c.script != nil && c.json != nil {
		return len(c.body()) + len(c.script.heads[c.form&^bySum]) - len(c.script.heads[c.form])
	}
	return len(c.body())
}

func (c Command) body() []byte {
	if c.json == nil {
		return nil
	}
	return (*c.json).v
}

// String returns the name alone, because arguments may be secret.
func (c Command) String() string { return "upstash.Command(" + c.name + ")" }

// Format writes String for every verb: none shows an argument. Nor does fmt
// when it opens a struct with a Command inside.
func (c Command) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// Repeatable returns a copy of the command and decides whether it is sent again
// if the outcome of an attempt is unknown. Pass true only if running the
// command twice leaves the same state as running it once.
func (c Command) Repeatable(ok bool) Command {
	c.traits &^= traitRepeatable
	if ok {
		c.traits |= traitRepeatable
	}
	return c
}

// AllOrNothing returns a copy of the command and declares it to have changed
// nothing if the server returns an error. This is true of every command but a
// script, which may have written before it failed. Use it for a script that can
// fail only before its first write.
func (c Command) AllOrNothing() Command {
	c.traits &^= traitScript
	return c
}

// Binary returns a copy of the command and asks the server for a reply in a
// form for any bytes: RESP2 for Do, base64 for Pipeline and MultiExec. Without
// it, bytes that are not UTF-8 come back as U+FFFD, and [Reply.Bytes] refuses
// those.
func (c Command) Binary() Command {
	c.binary = true
	return c
}

// Timeout returns a copy of the command and gives each of its attempts the time
// d, if d is longer than [WithTimeout] allows. It is for a command that works
// through many megabytes. In a batch the longest of all commands counts.
func (c Command) Timeout(d time.Duration) Command {
	c.timeout = d
	return c
}

func isCommandName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return s != ""
}

// appendString appends s as a JSON string. s is valid UTF-8.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// RawCmd makes a command with body as its last argument. It travels as the body
// of the request. It may hold any bytes, and takes no more room than they do:
// base64 would add a third. The other arguments travel in the request's path:
// none of them may be empty, "." or "..". body must not be empty either,
// because the server would then see no argument at all. Send the command with
// Do: Pipeline and MultiExec refuse it. Do not change body until the call has
// returned.
func RawCmd(name string, body []byte, args ...string) Command {
	c := Cmd(name, args...)
	if c.err != nil {
		return c
	}
	if len(body) == 0 {
		c.err = argumentError(c.name, "the body is empty, which is no argument to the server: use Cmd")
		return c
	}
	var path strings.Builder
	path.WriteByte('/')
	path.WriteString(strings.ToLower(c.name))
	for i, a := range args {
		if a == "" || a == "." || a == ".." {
			c.err = argumentError(c.name, "argument %d is %q, which a path cannot carry: use Cmd", i+1, a)
			return c
		}
		path.WriteByte('/')
		escapeSegment(&path, a)
	}
	c.raw = hide(rawForm{path.String(), body})
	// The traits may depend on body, the last argument, if it is an option or a key.
	last := ""
	if len(body) <= maxWord {
		last = string(body)
	}
	c.traits = traitsOf(c.name, append(args[:len(args):len(args)], last))
	return c
}

// maxWord is the longest body, in bytes, that is looked at as an option or a key.
const maxWord = 1 << 10

// escapeSegment writes s as one segment of a path. It escapes every byte except
// letters, digits and three marks: no proxy finds anything to rewrite.
func escapeSegment(path *strings.Builder, s string) {
	for i := range len(s) {
		c := s[i]
		if '0' <= c && c <= '9' || 'a' <= c|' ' && c|' ' <= 'z' || strings.IndexByte("-_~", c) >= 0 {
			path.WriteByte(c)
			continue
		}
		path.WriteByte('%')
		path.WriteByte(hexDigits[c>>4])
		path.WriteByte(hexDigits[c&15])
	}
}
