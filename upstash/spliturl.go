package upstash

import "strings"

// urlParts is a URL in its parts.
type urlParts struct {
	scheme    string // lower case, "" if there is none
	authority string // host and port as they stand
	host      string // without brackets
	port      string
	path      string
	user      bool // there is a user or password
	more      bool // there is a query or fragment
}

// splitURL splits a text that may be the URL of a database. It accepts
// printable ASCII alone, and a host of letters, digits, '.', '-' and '_', or an
// IPv6 address in brackets. It stands in for net/url, which is less strict and
// adds 150 KB to a wasm module.
func splitURL(raw string) (u urlParts, ok bool) {
	for i := range len(raw) {
		if c := raw[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"'`<>\\^{|}", c) >= 0 {
			return u, false
		}
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return u, true // without a scheme, which the caller refuses
	}
	u.scheme = strings.ToLower(scheme)
	u.authority, u.path = rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		u.authority, u.path = rest[:i], rest[i:]
	}
	// One form for all who compare it: "Localhost" is a loopback address to one
	// and has a proxy for another.
	u.authority = strings.ToLower(u.authority)
	u.more = strings.ContainsAny(u.path, "?#")
	if strings.Contains(u.authority, "@") {
		u.user = true
		return u, true
	}
	return u, u.splitHost() && validEscapes(u.path)
}

const (
	digits  = "0123456789"
	hexa    = digits + "abcdefABCDEF"
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

func (u *urlParts) splitHost() bool {
	rest, valid := u.authority, false
	if v6, ok := strings.CutPrefix(rest, "["); ok {
		u.host, rest, ok = strings.Cut(v6, "]")
		valid = ok && strings.Contains(u.host, ":") && onlyOf(u.host, hexa+":.")
	} else {
		end := strings.IndexByte(rest+":", ':')
		u.host, rest = rest[:end], rest[end:]
		valid = onlyOf(u.host, letters+digits+".-_")
	}
	if rest == "" {
		return valid
	}
	u.port = rest[1:]
	return valid && rest[0] == ':' && u.port != "" && onlyOf(u.port, digits)
}

func onlyOf(s, chars string) bool { return strings.Trim(s, chars) == "" }

// validEscapes reports whether two hex digits follow each percent sign.
func validEscapes(path string) bool {
	for _, part := range strings.Split(path, "%")[1:] {
		if len(part) < 2 || !onlyOf(part[:2], hexa) {
			return false
		}
	}
	return true
}
