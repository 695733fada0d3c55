package upstash

import (
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/upbloom/upbloom/internal/json"
)

// Reply is the answer to one command. The zero value is null. It may be
// copied, and read by several goroutines at once.
type Reply struct {
	name  string // of the command
	err   error
	value **hidden[value] // nil is null

	status        int // of HTTP
	traits        traits
	maybeRepeated bool
	attempts      int32 // of its call
	sent          time.Time
}

// value is a result that no method of Reply has read yet: raw JSON, or a
// decoded RESP2 answer.
type value struct {
	json   []byte // nil for RESP2, which has its value in the fields below
	base64 bool   // the strings in json are base64
	resp2  bool   // RESP2 was asked for, and the server sent JSON

	kind  valueKind
	int   int64
	text  string
	array []Reply
}

type valueKind uint8

const (
	kindInt valueKind = 1 + iota
	kindString
	kindArray
)

// Err returns the command's own error in a Pipeline or MultiExec, or that of an
// element of an array: a *Error, or nil. Do returns the error itself. It is a
// *CallError if a [Script] of a Pipeline had to be sent once more, and that
// brought no answer.
func (r Reply) Err() error { return r.err }

// IsNil reports whether the result is null. That means, for example, that there
// is no such key, or that a condition such as NX was not met.
func (r Reply) IsNil() bool { return r.err == nil && r.val().isNull() }

// MaybeRepeated reports whether an earlier attempt of the same call may have
// been executed, so that this may be the answer to a repetition.
func (r Reply) MaybeRepeated() bool { return r.maybeRepeated }

// Sent returns the time at which the attempt that brought this answer began. The
// answer says what held at some time after it. An attempt before it, whose
// answer was lost, does not count. Sent is the zero time for a Reply that no
// call returned.
func (r Reply) Sent() time.Time { return r.sent }

// Int64 returns an integer, which passed through no float. It returns ErrNil
// for null, and ErrBadResponse for a reply of another type.
func (r Reply) Int64() (int64, error) {
	if err := r.check(); err != nil {
		return 0, err
	}
	n, rest, ok := r.val().parseInt()
	if !ok || len(rest) != 0 {
		return 0, r.bad("not an integer")
	}
	return n, nil
}

// Text returns a string, e.g. a stored value or the status "OK". It returns
// ErrNil for null, and ErrBadResponse for a reply of another type.
func (r Reply) Text() (string, error) {
	if err := r.check(); err != nil {
		return "", err
	}
	if r.val().json == nil {
		if r.val().kind != kindString {
			return "", r.bad("not a string")
		}
		return r.val().text, nil
	}
	if r.val().json[0] != '"' {
		return "", r.bad("not a string")
	}
	s, err := json.String(r.val().json)
	if err != nil {
		return "", r.bad("not a JSON string")
	}
	// A server does not encode the status OK. No text is "OK" in base64, so
	// this is the status.
	if !r.val().base64 || s == "OK" {
		return s, nil
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return "", r.bad("not base64, which was asked for")
	}
	return string(b), nil
}

// Bytes returns a string as bytes. It returns ErrBadResponse if bytes may have
// been replaced on the way: to get any bytes, send the command with
// Command.Binary.
func (r Reply) Bytes() ([]byte, error) {
	s, err := r.Text()
	if err != nil {
		return nil, err
	}
	v := r.val()
	switch {
	case v.json == nil, v.base64, !strings.ContainsRune(s, '\uFFFD'):
		return []byte(s), nil
	case v.resp2:
		return nil, r.bad("bytes that are not UTF-8 were replaced, and the server ignores the request" +
			" for RESP2: send the command with Binary() in a Pipeline, which asks for base64")
	}
	return nil, r.bad("bytes that are not UTF-8 were replaced: send the command with Binary()")
}

// Array returns the elements of an array. If an element is an error, as in the
// answer to EXEC, its Err returns it. Array returns ErrNil for null, and
// ErrBadResponse for a reply of another type.
func (r Reply) Array() ([]Reply, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if r.val().json == nil {
		if r.val().kind != kindArray {
			return nil, r.bad("not an array")
		}
		return slices.Clone(r.val().array), nil
	}
	if r.val().json[0] != '[' {
		return nil, r.bad("not an array")
	}
	raw, err := json.Array(r.val().json)
	if err != nil {
		return nil, r.bad("not a JSON array")
	}
	out, values := make([]Reply, len(raw)), make([]hidden[value], len(raw))
	for i, m := range raw {
		values[i].v = value{json: orNull(m), base64: r.val().base64, resp2: r.val().resp2}
		out[i] = Reply{name: r.name, value: values[i].pointer()}
		out[i].status, out[i].traits = r.status, r.traits
		out[i].maybeRepeated, out[i].attempts, out[i].sent = r.maybeRepeated, r.attempts, r.sent
	}
	return out, nil
}

// Ints appends an array of integers and nulls to dst, as BITFIELD answers. It
// allocates only if dst has too little room. Its errors are those of Array.
func (r Reply) Ints(dst []NullInt64) ([]NullInt64, error) {
	if err := r.check(); err != nil {
		return dst, err
	}
	if r.val().json != nil {
		out, ok := appendInts(dst, r.val().json)
		if !ok {
			return dst, r.bad("not an array of integers")
		}
		return out, nil
	}
	if r.val().kind != kindArray {
		return dst, r.bad("not an array of integers")
	}
	out := dst
	for _, e := range r.val().array {
		if e.IsNil() {
			out = append(out, NullInt64{})
			continue
		}
		if e.err != nil || e.val().kind != kindInt {
			return dst, r.bad("not an array of integers")
		}
		out = append(out, NullInt64{e.val().int, true})
	}
	return out, nil
}

// String returns the command's name, or the text of Err, and never the result.
func (r Reply) String() string {
	if r.err != nil {
		return r.err.Error()
	}
	return "upstash.Reply(" + r.name + ")"
}

// Format writes String for every verb, so that none shows a stored value. Nor
// does fmt when it opens a struct that holds a Reply.
func (r Reply) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.String()) }

// val returns what the reply holds, nil for null.
func (r Reply) val() *value {
	if r.value == nil {
		return nil
	}
	return &(*r.value).v
}

func (r Reply) check() error {
	if r.err != nil {
		return r.err
	}
	if r.val().isNull() {
		return ErrNil
	}
	return nil
}

// bad returns the error of a whole answer that is not one to the command.
func (r Reply) bad(format string, args ...any) error {
	return r.failed(fmt.Errorf("%w: %s", ErrBadResponse, fmt.Sprintf(format, args...)))
}

// uncertain returns the error of a write that may have run before.
func (r Reply) uncertain() error { return r.failed(ErrUncertain) }

func (r Reply) failed(err error) error {
	return &CallError{
		Command: r.name, Attempts: int(r.attempts), StatusCode: r.status, Err: err,
		outcome: judge(r.traits, r.maybeRepeated, outcomeRan),
	}
}

func (v *value) isNull() bool {
	return v == nil || len(v.json) > 0 && v.json[0] == 'n'
}

func (v *value) parseInt() (n int64, rest []byte, ok bool) {
	if v.json == nil {
		return v.int, nil, v.kind == kindInt
	}
	return parseInt(v.json)
}

func orNull(m json.RawMessage) []byte {
	if len(m) == 0 {
		return []byte("null")
	}
	return m
}
