package upstash

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Command is one Redis command, encoded and ready to send. The zero value is
// not a command; Cmd and BitField.Command make one. It may be copied, sent any
// number of times, and used by several goroutines at once.
type Command struct {
	name string           // upper case
	json **hidden[[]byte] // the whole JSON array
	err  error            // why it cannot be sent

	traits traits
	binary bool

	raw     **hidden[rawForm] // of RawCmd, else nil
	timeout time.Duration     // of an attempt, if longer than the client's
}

// rawForm is a command whose last argument is the body of its request.
type rawForm struct {
	path string // with the other arguments
	body []byte
}

// Cmd makes any command. Every argument travels as a JSON string, so that no
// server takes a large number for a float. An empty name, or an argument that
// is not valid UTF-8, is reported by the call that sends the command.
//
// If the name and arguments make it certain that running the command twice in a
// row leaves the same state (all reads; SET without NX or GET; EXPIRE; SADD; a
// BITFIELD without INCRBY), the client repeats it when the outcome of an
// attempt is unknown. Repeatable overrules that.
func Cmd(name string, args ...string) Command {
	c := Command{name: strings.ToUpper(name)}
	if !isCommandName(c.name) {
		c.name = "?"
		c.err = argumentError("Cmd", "a command name has letters, digits, '.', '_' or '-', e.g. GET")
		return c
	}
	size := len(name) + 4
	for _, a := range args {
		size += len(a) + 3
	}
	b := appendString(append(make([]byte, 0, size), '['), c.name)
	for i, a := range args {
		if !utf8.ValidString(a) {
			c.err = argumentError(c.name, "argument %d is not valid UTF-8, which JSON cannot carry:"+
				" encode it first, e.g. as hex or base64", i+1)
			return c
		}
		b = appendString(append(b, ','), a)
	}
	b = append(b, ']')
	c.json = hide(b)
	c.traits = traitsOf(c.name, args)
	return c
}

// Name is the command's name in upper case.
func (c Command) Name() string { return c.name }

// Size is the length of the command's JSON in bytes.
func (c Command) Size() int { return len(c.body()) }

func (c Command) body() []byte {
	if c.json == nil {
		return nil
	}
	return (*c.json).v
}

// String returns the name alone: arguments may be secret.
func (c Command) String() string { return "upstash.Command(" + c.name + ")" }

// Format writes String for every verb, so that none shows an argument. Nor does
// fmt when it opens a struct that holds a Command.
func (c Command) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// Repeatable returns a copy that is, or is not, sent again when the outcome of
// an attempt is unknown. Say true only if running it twice leaves the same
// state as running it once.
func (c Command) Repeatable(ok bool) Command {
	c.traits &^= traitRepeatable
	if ok {
		c.traits |= traitRepeatable
	}
	return c
}

// AllOrNothing returns a copy whose error means that it changed nothing, as the
// error of any command but a script does. Say it of a script that fails, if it
// does, before its first write.
func (c Command) AllOrNothing() Command {
	c.traits &^= traitScript
	return c
}

// Binary returns a copy whose reply is asked for in a form that carries any
// bytes: RESP2 for Do, base64 for Pipeline and MultiExec. Without it, bytes
// that are not UTF-8 come back as U+FFFD, and Reply.Bytes refuses those.
func (c Command) Binary() Command {
	c.binary = true
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
