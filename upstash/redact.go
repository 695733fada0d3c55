package upstash

import (
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
	var doc any
	if err := json.Unmarshal(body, &doc); err != nil {
		return message
	}
	return redactArgs(message, doc)
}

func redactArgs(message string, doc any) string {
	list, _ := doc.([]any)
	for i, e := range list {
		arg, ok := e.(string)
		if !ok {
			message = redactArgs(message, e)
			continue
		}
		if i == 0 || arg == "" {
			continue // the command's name
		}
		for _, quote := range []string{"'", "\"", "`"} {
			message = strings.ReplaceAll(message, quote+arg+quote, quote+redacted+quote)
		}
		if len(arg) >= 4 && !isKeyword(arg) {
			message = strings.ReplaceAll(message, arg, redacted)
		}
	}
	return message
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
