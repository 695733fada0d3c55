package upstash

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/upbloom/upbloom/upstash/internal/json"
)

// Reply is the answer to one command, or a part of it, and keeps the whole
// answer in memory. Its methods return [ErrNil] for null, and [ErrBadResponse]
// for another type. The zero value is null. It may be copied, and read by
// several goroutines at once. It prints as the command's name or its error.
type Reply struct {
	answer   **hidden[received] // nil is null
	from, to uint32             // its bytes in the answer's body
}

// received is the answer to one command. Replies read their values in its body
// when they are asked: an element of an array takes 16 bytes, however little
// the server sent for it.
type received struct {
	name string // of the command
	err  error
	body []byte // raw JSON, or RESP2; empty is null
	form replyForm
	errs map[uint32]*Error // the first errors of an array in RESP2, by their place

	status        int // of HTTP
	traits        traits
	maybeRepeated bool
	attempts      int32 // of its call
	sent          time.Time
}

type replyForm uint8

const (
	formJSON    replyForm = iota
	formBase64            // JSON whose strings are base64
	formIgnored           // JSON, though RESP2 was asked for
	formRESP2             // checked as a whole
)

// newReply returns the whole answer.
func newReply(a *hidden[received]) Reply {
	return Reply{answer: a.pointer(), to: uint32(len(a.v.body))}
}

// failedReply returns a reply with an error alone.
func failedReply(name string, err error) Reply {
	return newReply(&hidden[received]{v: received{name: name, err: err}})
}

// Err returns the command's own error in a batch, or that of an element of
// [Reply.Array]: a [*Error], or a [*CallError] if a [Script] sent once more got
// no answer.
func (r Reply) Err() error {
	a := r.of()
	if a.err == nil && a.form == formRESP2 && r.raw()[0] == '-' {
		return a.errorAt(r.from)
	}
	return a.err
}

// IsNil reports whether the result is null: for example, there is no such key.
func (r Reply) IsNil() bool { return r.check() == ErrNil }

// MaybeRepeated reports whether an earlier attempt of the call may have run.
func (r Reply) MaybeRepeated() bool { return r.of().maybeRepeated }

// Sent returns when the answered attempt began, or the zero time if no call
// returned r.
func (r Reply) Sent() time.Time { return r.of().sent }

// Int64 returns an integer.
func (r Reply) Int64() (int64, error) {
	if err := r.check(); err != nil {
		return 0, err
	}
	var n int64
	rest, ok := r.raw(), false
	if r.of().form == formRESP2 {
		n, rest, ok = respInt(rest)
	} else {
		n, rest, ok = parseInt(rest)
	}
	if !ok || len(rest) != 0 {
		return 0, r.bad("not an integer")
	}
	return n, nil
}

// Text returns a string, such as a stored value or "OK".
func (r Reply) Text() (string, error) {
	if err := r.check(); err != nil {
		return "", err
	}
	if r.of().form == formRESP2 {
		b, ok := respText(r.raw())
		if !ok {
			return "", r.bad("not a string")
		}
		return string(b), nil
	}
	if r.raw()[0] != '"' {
		return "", r.bad("not a string")
	}
	s, err := json.String(r.raw())
	if err != nil {
		return "", r.bad("not a JSON string")
	}
	// A server does not encode the status OK. No text is "OK" in base64: this
	// is the status.
	if r.of().form != formBase64 || s == "OK" {
		return s, nil
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return "", r.bad("not base64, which was asked for")
	}
	return string(b), nil
}

// Bytes returns a string as bytes, or [ErrBadResponse] if some may have been
// replaced on the way: see [Command.Binary].
func (r Reply) Bytes() ([]byte, error) {
	s, err := r.Text()
	if err != nil {
		return nil, err
	}
	form := r.of().form
	if form == formRESP2 || form == formBase64 || !strings.ContainsRune(s, '\uFFFD') {
		return []byte(s), nil
	}
	if form == formIgnored {
		return nil, r.bad("bytes that are not UTF-8 were replaced, and the server ignores the request" +
			" for RESP2: send the command with Binary() in a Pipeline, which asks for base64")
	}
	return nil, r.bad("bytes that are not UTF-8 were replaced: send the command with Binary()")
}

// Array returns the elements of an array. If one is an error, its Err returns
// it after [Command.Binary]; in JSON it may be a string.
func (r Reply) Array() ([]Reply, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	elements := jsonElements
	if r.of().form == formRESP2 {
		elements = respElements
	}
	n := 0
	if !elements(r.raw(), func(int, int) { n++ }) {
		return nil, r.bad("not an array")
	}
	list := make([]Reply, 0, n)
	elements(r.raw(), func(from, to int) {
		list = append(list, Reply{r.answer, r.from + uint32(from), r.from + uint32(to)})
	})
	return list, nil
}

// Map returns an array of names and values in turn, as HGETALL answers, with
// numbers as text. An odd number of elements, or one that is null or an array, is
// [ErrBadResponse]. If a name comes twice, the last value counts.
func (r Reply) Map() (map[string]string, error) {
	list, err := r.Array()
	if err != nil {
		return nil, err
	}
	if len(list)%2 != 0 {
		return nil, r.bad("%d elements, which are not pairs of a name and a value", len(list))
	}
	pairs := make(map[string]string, len(list)/2)
	for i := 0; i < len(list); i += 2 {
		name, err := list[i].textOrNumber()
		if err != nil {
			return nil, err
		}
		value, err := list[i+1].textOrNumber()
		if err != nil {
			return nil, err
		}
		pairs[name] = value
	}
	return pairs, nil
}

// textOrNumber returns an element that is a string, or a number as it stands.
func (r Reply) textOrNumber() (string, error) {
	raw := r.raw()
	switch c := raw[0]; {
	case c == ':':
		line, _ := respLine(raw)
		return string(line), nil
	case r.of().form != formRESP2 && (c == '-' || '0' <= c && c <= '9'):
		return string(raw), nil
	}
	text, err := r.Text()
	if err == ErrNil {
		err = r.bad("null in place of a string")
	}
	return text, err
}

func jsonElements(raw []byte, each func(from, to int)) bool { return json.Array(raw, each) == nil }

// Ints appends an array of integers and nulls, as BITFIELD answers, to dst.
func (r Reply) Ints(dst []NullInt64) ([]NullInt64, error) {
	if err := r.check(); err != nil {
		return dst, err
	}
	appendTo := appendInts
	if r.of().form == formRESP2 {
		appendTo = appendRESPInts
	}
	out, ok := appendTo(dst, r.raw())
	if !ok {
		return dst, r.bad("not an array of integers")
	}
	return out, nil
}

// Decode stores a value in v, as encoding/json does: the JSON in a string (GET,
// JSON.GET), or else the result itself. But a null leaves the older value of a
// []byte, and of a slice or map with a method UnmarshalText: decode into a new v. In
// an any, numbers are float64: above 2^53 they are rounded. A string that is not JSON fits a *string or a *[]byte; use Text
// if it may look like JSON, such as 12. If the value does not fit, the error is
// [ErrBadResponse], and v is undefined. On wasm it is errors.ErrUnsupported: pass
// the Text to encoding/json.
func (r Reply) Decode(v any) error {
	if err := r.check(); err != nil {
		return err
	}
	text, err := r.document()
	if err != nil {
		return err
	}
	err = json.Unmarshal(text, v)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errors.ErrUnsupported):
		return r.failed(fmt.Errorf("Decode: %w", err))
	case err == json.ErrTarget:
		return r.failed(fmt.Errorf("%w: Decode: want a pointer that is not nil, not %T", ErrArgument, v))
	case err == json.ErrSyntax && isText(r.raw()):
		return r.decodeText(v)
	}
	return r.bad("Decode into %T: %v", v, err)
}

// decodeText stores a text that is not JSON.
func (r Reply) decodeText(v any) (err error) {
	switch v := v.(type) {
	case *string:
		*v, err = r.Text()
		return err
	case *[]byte:
		*v, err = r.Bytes()
		return err
	}
	return r.bad("Decode into %T: the text is not JSON: use Text", v)
}

// document returns the JSON that Decode reads.
func (r Reply) document() ([]byte, error) {
	if isText(r.raw()) {
		s, err := r.Text()
		return []byte(s), err
	}
	return r.appendJSON(nil, maxRESPDepth)
}

// isText reports whether an answer, or a part of it, is a string.
func isText(raw []byte) bool { return raw[0] == '"' || raw[0] == '$' || raw[0] == '+' }

// appendJSON appends the result as JSON: texts are no base64 in it.
func (r Reply) appendJSON(dst []byte, depth int) ([]byte, error) {
	if form := r.of().form; form == formJSON || form == formIgnored {
		return append(dst, r.raw()...), nil
	}
	if r.IsNil() {
		return append(dst, "null"...), nil
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	switch r.raw()[0] {
	case '"', '$', '+':
		s, err := r.Text()
		if err == nil && !utf8.ValidString(s) {
			err = r.bad("a text in the array is not valid UTF-8, which JSON cannot carry")
		}
		return appendString(dst, s), err
	case ':':
		n, err := r.Int64()
		return strconv.AppendInt(dst, n, 10), err
	case '[', '*':
		return r.appendArray(dst, depth)
	}
	return append(dst, r.raw()...), nil // a number, true or false
}

func (r Reply) appendArray(dst []byte, depth int) ([]byte, error) {
	list, err := r.Array()
	if err == nil && depth == 0 {
		err = r.bad("arrays are nested too deep")
	}
	if err != nil {
		return nil, err
	}
	dst = append(dst, '[')
	for i, each := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = each.appendJSON(dst, depth-1); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func (r Reply) Format(f fmt.State, _ rune) {
	text := "upstash.Reply(" + r.of().name + ")"
	if err := r.Err(); err != nil {
		text = err.Error()
	}
	_, _ = io.WriteString(f, text)
}

// of returns the answer, which must not be changed.
func (r Reply) of() *received {
	if r.answer == nil {
		return &noAnswer
	}
	return &(*r.answer).v
}

var noAnswer received

// raw returns the reply's own part of the answer.
func (r Reply) raw() []byte { return r.of().body[r.from:r.to] }

// check returns the reply's error, or ErrNil for null.
func (r Reply) check() error {
	if err := r.Err(); err != nil {
		return err
	}
	raw := r.raw()
	if len(raw) == 0 || raw[0] == 'n' || r.of().form == formRESP2 && isRESPNull(raw) {
		return ErrNil
	}
	return nil
}

// bad returns the error of a whole answer that does not fit the command.
func (r Reply) bad(format string, args ...any) error {
	return r.failed(fmt.Errorf("%w: %s", ErrBadResponse, fmt.Sprintf(format, args...)))
}

// uncertain returns the error of a write that may have run before.
func (r Reply) uncertain() error { return r.failed(ErrMaybeRepeated) }

func (r Reply) failed(err error) error {
	a := r.of()
	return &CallError{
		Command: a.name, Attempts: int(a.attempts), StatusCode: a.status, Err: err,
		outcome: judge(a.traits, a.maybeRepeated, outcomeRan),
	}
}

// errorAt returns the error at a place of an array.
func (a *received) errorAt(at uint32) *Error {
	if e := a.errs[at]; e != nil {
		return e
	}
	line, _ := respLine(a.body[at:])
	message := string(line[:min(len(line), maxMessage)])
	// The rest could quote the request, which is no longer known.
	return a.errorOf(codeOf(message)+" "+redacted, serverError{words: message})
}

// errorOf makes an error of a command from words that may be shown.
func (a *received) errorOf(words string, server serverError) *Error {
	e := &Error{
		StatusCode: a.status, Message: words, Command: a.name, attempts: int(a.attempts),
		matches: kindOf(a.status, server.words), refusal: server.refusal,
	}
	e.outcome = judge(a.traits, a.maybeRepeated, answerOutcome(a.traits, e))
	return e
}
