package upstashtest

import "errors"

// reply is one Redis reply: nil, int64, status, bulk, array or failure.
type reply any

type (
	// status is a simple string such as OK: never base64 where it is OK.
	status string
	// bulk is a binary-safe string.
	bulk string
	// array holds replies of any kind, failures among them.
	array []reply
	// failure is an error reply, its code word first: "ERR syntax error".
	failure string
)

func (f failure) Error() string { return string(f) }

// The replies that Redis gives from more than one command.
const (
	errSyntax    = failure("ERR syntax error")
	errNotInt    = failure("ERR value is not an integer or out of range")
	errWrongType = failure("WRONGTYPE Operation against a key holding the wrong kind of value")
)

// plain turns a reply into the types that Exec documents.
func plain(r reply) any {
	switch r := r.(type) {
	case status:
		return string(r)
	case bulk:
		return string(r)
	case failure:
		return errors.New(string(r))
	case array:
		out := make([]any, len(r))
		for i := range r {
			out[i] = plain(r[i])
		}
		return out
	}
	return r
}
