package upstash

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/upbloom/upbloom/internal/lots"
)

// Command is one Redis command. It may be copied, sent again, and used by
// several goroutines at once. It prints as its name. The zero value cannot be
// sent.
type Command struct {
	name string           // upper case
	json **hidden[[]byte] // the whole JSON array
	err  error            // why it cannot be sent

	traits traits
	binary bool

	raw     **hidden[rawForm] // of RawCmd, else nil
	script  *Script           // of Script.Cmd, else nil
	form    scriptForm        // of json
	keysEnd int               // of json: behind the keys of the script
	timeout time.Duration     // of an attempt, if longer than the client's
	birth   int64             // the birth number that the first attempt carries, or 0
}

// rawForm is a command whose last argument is the body of its request.
type rawForm struct {
	path string // with the other arguments
	body []byte
}

// Cmd makes a command. The name may be in any letter case. Arguments must be
// valid UTF-8: mistakes are reported when it is sent, as [ErrArgument].
func Cmd(name string, args ...string) Command {
	c := Command{name: strings.ToUpper(name)}
	if !isCommandName(c.name) {
		c.name = "?"
		c.err = argumentError("Cmd", "a command name has 1 to %d letters, digits, '.', '_' or '-', e.g. GET",
			maxName)
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
				" encode it first, e.g. as hex or base64, or send a last one by RawCmd", before+i+1)
		}
		dst = appendString(append(dst, ','), a)
	}
	return dst, nil
}

// numbered returns the body of a command for the n-th repetition of its call, with
// the birth number of that attempt.
func numbered(body []byte, birth int64, n int) []byte {
	if birth == 0 || lots.OfAttempt(birth, n) == birth {
		return body
	}
	was, is := strconv.AppendInt(nil, birth, 10), strconv.AppendInt(nil, lots.OfAttempt(birth, n), 10)
	return bytes.Replace(body, was, is, 1) // a copy: an earlier attempt may still read the other
}

// Name returns the name in upper case.
func (c Command) Name() string { return c.name }

// Size returns the length of the JSON in bytes: with the whole text of a
// [Script], without the body of a [RawCmd].
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

func (c Command) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "upstash.Command(%s)", c.name) }

// Repeatable returns a copy that may, or may not, be sent again after an
// attempt of unknown outcome. Pass true only if running it twice leaves the
// same state. A repetition overwrites what others wrote in between, and a late
// attempt may run after its call: a SET delayed past a DEL makes the key again.
//
// The default is true for reads, SET without NX or GET, SETBIT, SADD, HSET,
// EXPIRE of at least 1, a BITFIELD without INCRBY, and the like.
func (c Command) Repeatable(ok bool) Command {
	c.traits &^= traitRepeatable
	if ok {
		c.traits |= traitRepeatable
	}
	return c
}

// AllOrNothing returns a copy that changed nothing if the server returns an
// error. Use it for a script that can fail only before its first write.
func (c Command) AllOrNothing() Command {
	c.traits &^= traitScript
	return c
}

// Binary returns a copy whose reply may hold any bytes, in RESP2 or, in a
// batch, in base64. In JSON, bytes that are not UTF-8 become U+FFFD. It is not for
// a server that ignores the request for base64, the header Upstash-Encoding: a
// text that looks like base64 then comes as other bytes, without an error. The
// program upbloom finds such a server: "upbloom doctor".
func (c Command) Binary() Command {
	c.binary = true
	return c
}

// Timeout returns a copy whose attempts may take d, if that is longer than
// [WithTimeout]. In a batch the longest counts.
func (c Command) Timeout(d time.Duration) Command {
	c.timeout = d
	return c
}

// maxName bounds what errors and events say, in bytes. No command has a longer
// name.
const maxName = 64

func isCommandName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= maxName
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

// RawCmd makes a command whose last argument is the body of the request: any
// bytes. body must not be empty, nor change until the call has returned. No other
// argument may be empty, "." or "..". Send it with Do alone.
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

// Script is a Lua script, which the server runs as one atomic step. Make it
// once and share it: it is safe for concurrent use and must not be copied. The
// zero value is an empty script.
//
// A client sends the text once, and then its SHA-1 (EVALSHA). If the server
// refuses that, the same call sends the text. With "#!lua
// flags=allow-key-locking" as its first line, the service locks the script's
// keys and not the whole database; other servers get the text without it.
//
// A script must not return, by redis.error_reply, the words by which Redis
// itself refuses one, such as "NOSCRIPT No matching script." or a NOPERM for
// EVALSHA: it would run twice, or [SafeToRetry] be true.
type Script struct {
	text string

	once  sync.Once
	heads [8][]byte // the beginning of the command's JSON, by scriptForm
	err   error
}

// NewScript makes a script.
func NewScript(text string) *Script { return &Script{text: text} }

// Cmd makes the EVAL of the script. It is not repeated after an attempt of
// unknown outcome, unless [Command.Repeatable] allows it. A [Client.MultiExec]
// sends its whole text, with the first line only if the server has taken it
// before.
func (s *Script) Cmd(keys []string, args ...string) Command {
	return s.command("EVAL", shortForm, keys, args)
}

// ReadOnlyCmd is [Script.Cmd] for a script that changes nothing, as EVAL_RO:
// any region may run it, and it is repeated.
func (s *Script) ReadOnlyCmd(keys []string, args ...string) Command {
	return s.command("EVAL_RO", shortForm|readOnly, keys, args)
}

func (s *Script) command(name string, form scriptForm, keys, args []string) Command {
	s.once.Do(s.encode)
	c := Command{name: name, traits: commandTraits()[name], script: s, form: form, err: s.err}
	if c.err != nil {
		return c
	}
	head := s.heads[form]
	b := make([]byte, 0, len(head)+encodedSize(keys)+encodedSize(args)+12)
	b = appendString(append(append(b, head...), ','), strconv.Itoa(len(keys)))
	if b, c.err = appendArgs(b, c.name, 2, keys); c.err == nil {
		c.keysEnd = len(b)
		b, c.err = appendArgs(b, c.name, 2+len(keys), args)
	}
	c.json = hide(append(b, ']'))
	return c
}

// scriptForm is how a command carries its script.
type scriptForm uint8

const (
	withFlags scriptForm = 1 << iota // with the first line, if the text has it
	bySum                            // as EVALSHA
	readOnly                         // as EVAL_RO or EVALSHA_RO

	shortForm = withFlags | bySum // the one that Command.json has
)

func (s *Script) encode() {
	if !utf8.ValidString(s.text) {
		s.err = argumentError("EVAL", "the script is not valid UTF-8, which JSON cannot carry")
		return
	}
	for form := range scriptForm(len(s.heads)) {
		text, name := s.textIn(form), `["EVAL`
		if form&bySum != 0 {
			sum := sha1.Sum([]byte(text))
			text, name = hex.EncodeToString(sum[:]), name+"SHA"
		}
		if form&readOnly != 0 {
			name += "_RO"
		}
		s.heads[form] = appendString([]byte(name+`",`), text)
	}
}

func (s *Script) textIn(form scriptForm) string {
	if form&withFlags == 0 {
		return strings.TrimPrefix(s.text, keyLocking)
	}
	return s.text
}

// sent returns the command that carries the script in a form, and its first
// argument.
func (s *Script) sent(form scriptForm) (command, first string) {
	head := strings.SplitN(string(s.heads[form]), `"`, 5) // ["EVALSHA","SHA-1"
	if form&bySum == 0 {
		return head[1], s.textIn(form)
	}
	return head[1], head[3]
}

// as converts the JSON of a command of the script from the form of Command.json
// to another one.
func (s *Script) as(form scriptForm, short []byte) []byte {
	if form&shortForm == shortForm {
		return short
	}
	head, tail := s.heads[form], short[len(s.heads[form|shortForm]):]
	return append(append(make([]byte, 0, len(head)+len(tail)), head...), tail...)
}

// joinCommands returns the JSON of several commands, for the n-th repetition of
// their call.
func joinCommands(cmds []Command, forms []scriptForm, n int) []byte {
	bodies, size := make([][]byte, len(cmds)), 1
	for i, cmd := range cmds {
		bodies[i] = cmd.body()
		if cmd.script != nil {
			bodies[i] = cmd.script.as(forms[i], bodies[i])
		}
		bodies[i] = numbered(bodies[i], cmd.birth, n)
		size += len(bodies[i]) + 1
	}
	dst := append(make([]byte, 0, size), '[')
	for i, b := range bodies {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, b...)
	}
	return append(dst, ']')
}
