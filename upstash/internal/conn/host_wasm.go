package conn

import (
	"errors"
	"runtime"
)

// HasProxy reports whether Node's environment has a proxy for a host: see proxyOfNode.
// Other hosts have no environment.
func HasProxy(host, _ string, secure bool) bool {
	return runtime.GOOS == "js" && proxyOfNode(host, secure)
}

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
