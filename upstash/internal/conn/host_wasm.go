package conn

import (
	"errors"
	"os"
	"runtime"
	"strings"
)

// HasProxy reports whether Node's environment has a proxy for a host, which its fetch
// would go around. If NODE_USE_ENV_PROXY is 1, fetch uses it from Node 24 on. In NO_PROXY
// it knows names and "*", and no ports or networks. Other hosts have no environment.
func HasProxy(host, port string, secure bool) bool {
	name := "HTTP_PROXY"
	if secure {
		name = "HTTPS_PROXY"
	}
	if runtime.GOOS != "js" || env(name) == "" || os.Getenv("NODE_USE_ENV_PROXY") == "1" {
		return false
	}
	for except := range strings.SplitSeq(env("NO_PROXY"), ",") {
		except = strings.ToLower(strings.TrimSpace(except))
		below := "." + strings.TrimPrefix(except, ".")
		if except == "*" || except == host || except != "" && strings.HasSuffix(host, below) {
			return false
		}
	}
	return true
}

// env reads a variable that may have a name in capitals or in small letters.
func env(name string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return os.Getenv(strings.ToLower(name))
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
