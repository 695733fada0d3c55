package conn

import "errors"

// HasProxy reports false: the host makes the connections.
func HasProxy(host, port string, secure bool) bool { return false }

// Permanent reports false, because the errors of a host do not say whether they
// would come again.
func Permanent(error) bool { return false }

// Unreached is the error of a host that made no connection, with a question for
// the reader to look into.
type Unreached struct {
	Err      error
	Question string
}

func (e *Unreached) Error() string { return e.Err.Error() }

// Question returns a question for the reader of err, or "".
func Question(err error) string {
	var u *Unreached
	if errors.As(err, &u) {
		return u.Question
	}
	return ""
}
