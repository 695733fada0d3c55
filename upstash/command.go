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

// scriptSupport is what a client knows of how its server takes scripts.
type scriptSupport struct {
	mu      sync.Mutex
	noFlags bool                // it refuses the first line
	noSums  bool                // it refuses EVALSHA, or keeps no text
	stored  map[string]struct{} // the heads that name its texts
	misses  int                 // how often it had lost a stored text
	worked  bool                // an EVALSHA has run
}

const (
	// maxStored bounds the memory of a client whose scripts are ever new.
	maxStored = 1000
	// maxMisses is how often a server is asked again if it never ran an
	// EVALSHA.
	maxMisses = 3
)

// form returns the form the server takes the command's script in, as far as
// known.
func (k *scriptSupport) form(c Command) scriptForm {
	k.mu.Lock()
	defer k.mu.Unlock()
	form := c.form
	if k.noFlags {
		form &^= withFlags
	}
	if _, ok := k.stored[string(c.script.heads[form])]; !ok || k.noSums {
		form &^= bySum
	}
	return form
}

// ran notes that the server has run the script in a form.
func (k *scriptSupport) ran(s *Script, form scriptForm) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if form&bySum != 0 {
		k.worked = true
	} else if !k.noSums && len(k.stored) < maxStored {
		if k.stored == nil {
			k.stored = map[string]struct{}{}
		}
		k.stored[string(s.heads[form|bySum])] = struct{}{}
	}
}

// note keeps what a refusal says of the server. One that may be the script's own
// words says only that the text may be gone.
func (k *scriptSupport) note(s *Script, form, refused scriptForm, e *Error, certain bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case refused == bySum && e.Code() == "NOSCRIPT":
		if _, ok := k.stored[string(s.heads[form])]; ok {
			delete(k.stored, string(s.heads[form]))
			k.misses++
		}
		k.noSums = k.noSums || !k.worked && k.misses >= maxMisses
	case !certain:
	case refused == bySum:
		k.noSums = true
	default:
		k.noFlags = true
	}
}

// refused returns what of a form an error refuses, or may refuse: bySum or
// withFlags, or 0.
func (s *Script) refused(form scriptForm, e *Error) scriptForm {
	words := strings.ToLower(e.Message)
	switch {
	case e.StatusCode != 200 && e.StatusCode != 400:
	case form&bySum != 0:
		if e.refusal == refusedCommand || e.Code() == "NOSCRIPT" || strings.Contains(words, "evalsha") {
			return bySum
		}
	case form&withFlags != 0 && len(s.heads[0]) < len(s.heads[withFlags]):
		if e.refusal == refusedFirstLine || strings.Contains(words, "shebang") || strings.Contains(words, "'#'") {
			return withFlags
		}
	}
	return 0
}
