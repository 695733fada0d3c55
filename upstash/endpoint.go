package upstash

import (
	"fmt"
	"strconv"
	"strings"
)

// endpoint is a checked base URL.
type endpoint struct {
	base string // without a slash at the end
	tls  bool
	host string // without port and brackets
	port string
	path string // before that of a request: "", or the prefix of a proxy
}

// parseEndpoint checks a URL as the console shows it under "REST API". Its
// errors never quote the URL, because it may hold a secret.
func parseEndpoint(raw string, allowHTTP bool) (endpoint, error) {
	u, why := readURL(raw)
	if why == "" {
		why = u.refused(allowHTTP)
	}
	if why != "" {
		return endpoint{}, fmt.Errorf("%w: URL: %s", ErrArgument, why)
	}
	e := endpoint{
		tls: u.scheme == "https", host: u.host, port: u.port, path: strings.TrimRight(u.path, "/"),
	}
	e.base = u.scheme + "://" + u.authority + e.path
	if e.port == "" {
		e.port = "80"
		if e.tls {
			e.port = "443"
		}
	}
	return e, nil
}

const wantURL = "use the REST URL of the database, e.g. https://eu1-name-12345.upstash.io"

// readURL returns the parts of a URL, or why it cannot be read.
func readURL(raw string) (u urlParts, why string) {
	if raw == "" {
		return u, "it is empty: pass UPSTASH_REDIS_REST_URL (or KV_REST_API_URL)," +
			" found in the console under REST API"
	}
	if why := copiedAlong(raw); why != "" {
		return u, why
	}
	u, ok := splitURL(raw)
	if !ok {
		return u, "it cannot be parsed: " + wantURL
	}
	return u, ""
}

// refused returns why the URL cannot be the address of a database, else "".
func (u *urlParts) refused(allowHTTP bool) string {
	switch u.scheme {
	case "https", "http":
	case "redis", "rediss":
		return u.scheme + ":// is the address for Redis clients: " + wantURL
	case "":
		return "it has no https:// before the host: " + wantURL
	default:
		return "it must begin with https://: " + wantURL
	}
	service := strings.HasSuffix(strings.TrimRight(u.host, "."), ".upstash.io")
	switch {
	case u.user:
		return "it has a user or password in it: pass the token by itself"
	case u.host == "console.upstash.com":
		return "it is that of a page of the console: use the one that the page shows under REST API"
	case service && u.port == "6379":
		return "port 6379 is Redis' own: leave it out"
	case u.host == "":
		return "it has no host: " + wantURL
	case u.more:
		return "it has a query or fragment: " + wantURL
	case hasDots(u.path):
		return "its path has . or .. in it: write it without them"
	case isMethod(u.path):
		return "it ends in /pipeline or /multi-exec: leave that out, the client adds it"
	case service && strings.Trim(u.path, "/") != "":
		// The service would read it as a command: a batch sent to /set/key would
		// be stored at a key.
		return "it has a path: leave out what follows the host"
	case !isPort(u.port):
		return "its port must be from 1 to 65535: " + wantURL
	case u.scheme == "http" && !allowHTTP && !isLoopback(u.host):
		return "http:// would send the token in clear text: use https://," +
			" or WithInsecureHTTP on a network you trust"
	}
	return ""
}

// hasDots reports whether a segment of the path is "." or "..", plain or
// escaped. Some transports resolve such segments, and others send them as they
// are.
func hasDots(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		plain := strings.ReplaceAll(strings.ToLower(segment), "%2e", ".")
		if plain == "." || plain == ".." {
			return true
		}
	}
	return false
}

// isMethod reports whether the path names a batch of commands, and not the
// database.
func isMethod(path string) bool {
	path = strings.TrimRight(path, "/")
	return strings.HasSuffix(path, "/pipeline") || strings.HasSuffix(path, "/multi-exec")
}

// isPort reports whether s is a port, or "" for the scheme's own.
func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return s == "" || err == nil && n > 0
}

// isLoopback reports whether host, in lower case, is localhost, ::1 in any of its
// forms, or in 127.0.0.0/8. A name below .localhost is not enough: DNS can resolve it to any
// address, and the environment's proxy is used for it. Nor is an address whose
// parts begin with a 0.
func isLoopback(host string) bool {
	v4, isV6 := host, strings.Contains(host, ":")
	if isV6 {
		v4 = strings.TrimPrefix(strings.TrimLeft(host, "0:"), "ffff:")
	}
	if host == "localhost" || isV6 && v4 == "1" {
		return true
	}
	parts := strings.Split(v4, ".")
	for _, part := range parts {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil || part != strconv.FormatUint(n, 10) {
			return false
		}
	}
	return len(parts) == 4 && parts[0] == "127"
}

// copiedAlong returns why a setting cannot be used if something was copied along
// with it, else "".
func copiedAlong(setting string) string {
	name, _, assigned := strings.Cut(setting, "=")
	switch {
	case assigned && (strings.HasSuffix(name, "_TOKEN") || strings.HasSuffix(name, "_URL")):
		return "it has the name of a variable in it: pass what follows the ="
	case strings.ContainsAny(setting, " \t\r\n"):
		return "it has white space or a line break in it: trim it"
	case strings.ContainsAny(setting, "\"'`"):
		return "it has a quote in it: pass it without the shell's quotes"
	}
	return ""
}

// notToken returns why a text cannot be a token, without quoting it, else "".
func notToken(token string) string {
	if token == "" {
		return "it is empty: pass UPSTASH_REDIS_REST_TOKEN (or KV_REST_API_TOKEN)," +
			" found in the console under REST API"
	}
	if scheme, _, ok := strings.Cut(token, " "); ok && strings.EqualFold(scheme, "Bearer") {
		return "it begins with Bearer, which the client adds: pass what follows"
	}
	if why := copiedAlong(token); why != "" {
		return why
	}
	if strings.Contains(token, "://") {
		return "it is a URL: pass UPSTASH_REDIS_REST_TOKEN (or KV_REST_API_TOKEN)"
	}
	for i := range len(token) {
		if c := token[i]; c < '!' || c > '~' {
			return fmt.Sprintf("byte %d is not printable ASCII: copy the token again", i)
		}
	}
	return ""
}

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

// splitURL splits a text as the URL of a database. It accepts printable ASCII
// alone, and a host of letters, digits, '.', '-' and '_', or an IPv6 address in
// brackets. It stands in for net/url, which is less strict and adds 150 KB to a
// wasm module.
func splitURL(raw string) (u urlParts, ok bool) {
	for i := range len(raw) {
		if c := raw[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"'`<>\\^{|}", c) >= 0 {
			return u, false
		}
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return u, true // without a scheme: the caller refuses it
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

// validEscapes reports whether two hex digits follow each percent sign.
func validEscapes(path string) bool {
	for _, part := range strings.Split(path, "%")[1:] {
		if len(part) < 2 || !onlyOf(part[:2], hexa) {
			return false
		}
	}
	return true
}
