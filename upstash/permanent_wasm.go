//go:build wasm

package upstash

import "errors"

// hasProxy reports false: the host makes the connections.
func hasProxy(endpoint) bool { return false }

// isPermanent reports false, because the errors of a host do not say whether
// they would come again.
func isPermanent(error) bool { return false }

// unreached is the error of a host that made no connection, with a question for
// the reader to look into.
type unreached struct {
	error
	question string
}

// question returns what the reader of an error should look into, or "".
func question(err error) string {
	var u *unreached
	if errors.As(err, &u) {
		return u.question
	}
	return ""
}
