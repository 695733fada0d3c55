package database

import "errors"

// Reply is one Redis Reply: nil, int64, status, bulk, array or failure.
type Reply any

type (
	// Status is a simple string such as OK: never base64 if it is OK.
	Status string
	// Bulk is a binary-safe string.
	Bulk string
	// Array holds replies of any kind, failures among them.
	Array []Reply
	// Failure is an error reply, its code word first: "ERR syntax error".
	Failure string
)

func (f Failure) Error() string { return string(f) }

// The replies of more than one command.
const (
	errSyntax    = Failure("ERR syntax error")
	errNotInt    = Failure("ERR value is not an integer or out of range")
	ErrWrongType = Failure("WRONGTYPE Operation against a key holding the wrong kind of value")
)

// Plain turns a reply into the types that Exec documents.
func Plain(r Reply) any {
	switch r := r.(type) {
	case Status:
		return string(r)
	case Bulk:
		return string(r)
	case Failure:
		return errors.New(string(r))
	case Array:
		out := make([]any, len(r))
		for i := range r {
			out[i] = Plain(r[i])
		}
		return out
	}
	return r
}
