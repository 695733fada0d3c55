package upstash

import (
	"slices"
	"strings"

	"github.com/upbloom/upbloom/internal/json"
)

const redacted = "…"

// redact takes out of a server's words what it quoted of a request: the token
// and every argument that could be a key or an item. Errors are rare, so this
// may decode the request again.
func redact(message, token string, body []byte) string {
	// Redis quotes the arguments of an unknown command, cut at 128 bytes.
	if head, _, ok := strings.Cut(message, ", with args beginning with:"); ok {
		message = head
	}
	message = strings.ReplaceAll(message, token, redacted)
	quoted := quotedArgs(nil, message, body)
	// The longest first: one may be the beginning of another.
	slices.SortFunc(quoted, func(a, b string) int { return len(b) - len(a) })
	for _, arg := range quoted {
		for _, quote := range []string{"'", "\"", "`"} {
			message = strings.ReplaceAll(message, quote+arg+quote, quote+redacted+quote)
		}
		if len(arg) >= 4 && !isKeyword(arg) {
			message = strings.ReplaceAll(message, arg, redacted)
		}
	}
	return message
}

// quotedArgs appends the arguments in body, one command or several, that occur
// in message.
func quotedArgs(dst []string, message string, body []byte) []string {
	list, _ := json.Array(body)
	for i, raw := range list {
		arg, err := json.String(raw)
		switch {
		case err != nil:
			dst = quotedArgs(dst, message, raw)
		case i > 0 && arg != "" && strings.Contains(message, arg): // 0 is the command's name
			dst = append(dst, arg)
		}
	}
	return dst
}

// isKeyword spares words of the command language, such as INCRBY, and numbers.
func isKeyword(arg string) bool {
	for i := 0; i < len(arg); i++ {
		if c := arg[i]; (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(arg) <= 9
}
