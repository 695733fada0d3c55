package upstash

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// A Script is a Lua script. The server runs it as one atomic step. Make it
// once, with [NewScript], and share it: it is safe for concurrent use. The zero
// value is an empty script. A Script must not be copied.
//
// A client sends the text once and names it by its SHA-1 afterwards, with
// EVALSHA. If the server does not have the text any more, the client sends it
// again, within the same call. If the server keeps no texts, or refuses
// EVALSHA, the client remembers it and sends the text each time. An attempt
// that was refused for its form counts as an attempt in errors and events, but
// not towards [WithRetry].
//
// The text may begin with the line "#!lua flags=allow-key-locking". The service
// then locks the script's keys alone, instead of the database. Other servers
// refuse this line: they get the text without it, within the same call and from
// then on.
type Script struct {
	text string

	once  sync.Once
	heads [8][]byte // the beginning of the command's JSON, by scriptForm
	err   error
}

// NewScript makes a script of its text. It sends nothing.
func NewScript(text string) *Script { return &Script{text: text} }

// Cmd makes the command that runs the script with these keys and arguments. It
// is an EVAL, and Size counts its whole text. Sending it returns [ErrArgument]
// if the text, a key or an argument is not valid UTF-8.
//
// Like an EVAL it is not repeated after an attempt of unknown outcome, unless
// [Command.Repeatable] allows it. In a [Client.MultiExec] it is always sent
// with its text, and an error because of its first line is returned.
func (s *Script) Cmd(keys []string, args ...string) Command {
	return s.command("EVAL", shortForm, keys, args)
}

// ReadOnlyCmd is [Script.Cmd] for a script that changes nothing. It is an
// EVAL_RO: the nearest region of a global database may run it, and it is
// repeated like any read.
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

// keyLocking is the first line. A server may refuse it.
const keyLocking = "#!lua flags=allow-key-locking\n"

func (s *Script) encode() {
	if !utf8.ValidString(s.text) {
		s.err = argumentError("EVAL", "the script is not valid UTF-8, which JSON cannot carry")
		return
	}
	for form := range scriptForm(len(s.heads)) {
		text, name := s.text, `["EVAL`
		if form&withFlags == 0 {
			text = strings.TrimPrefix(text, keyLocking)
		}
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
	switch {
	case form&bySum != 0:
		k.worked = true
	case !k.noSums && len(k.stored) < maxStored:
		if k.stored == nil {
			k.stored = map[string]struct{}{}
		}
		k.stored[string(s.heads[form|bySum])] = struct{}{}
	}
}

// next judges the error of a script that was sent in a form. If the server
// refused the form, nothing of the script ran, and next returns the form to
// send instead. It decides by what this very command carried, because others
// may have learned the same meanwhile.
func (k *scriptSupport) next(s *Script, form scriptForm, e *Error) (next scriptForm, again bool) {
	if e.StatusCode != 200 && e.StatusCode != 400 {
		return form, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	text := strings.ToLower(e.Message)
	switch {
	case form&bySum != 0 && e.Code() == "NOSCRIPT":
		if _, ok := k.stored[string(s.heads[form])]; ok {
			delete(k.stored, string(s.heads[form]))
			k.misses++
		}
		k.noSums = k.noSums || !k.worked && k.misses >= maxMisses
		return form &^ bySum, true
	case form&bySum != 0 && strings.Contains(text, "evalsha"): // it is unknown, or not allowed
		k.noSums = true
		return form &^ bySum, true
	case form&shortForm == withFlags && len(s.heads[0]) < len(s.heads[withFlags]) && refusesFlags(text):
		k.noFlags = true
		return form &^ withFlags, true
	}
	return form, false
}

// refusesFlags reports whether a server's words, in lower case, say that it
// does not know the first line of a script. There is no code for this. A
// running script's error names the script as well.
func refusesFlags(text string) bool {
	return (strings.Contains(text, "shebang") || strings.Contains(text, "'#'")) &&
		!strings.Contains(text, "running script") && !strings.Contains(text, " script: ")
}
