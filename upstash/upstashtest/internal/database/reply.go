package database

import "errors"

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
	// may have run. It replaces a whole reply, and is in no Array but those of
	// [DB.Multi].
	Lost string
)

func (f Failure) Error() string { return string(f) }
func (l Lost) Error() string    { return string(l) }

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
