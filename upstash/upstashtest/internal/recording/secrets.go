package recording

import (
	"bytes"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// secrets are the values that a recording must not contain: the token and the
// host. They come from the requests.
type secrets struct {
	values map[string]string // from a value to the word for it
}

func (s *secrets) learn(req *http.Request) {
	if s.values == nil {
		s.values = make(map[string]string)
	}
	if token := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "); token != "" {
		s.values[token] = "the token"
	}
	s.values[hostOf(req.URL)] = "the host"
}

// hostOf returns the host's name, by which a database can be found. For a
// loopback address it returns name and port: 127.0.0.1 alone is no secret, and
// occurs in many tests.
func hostOf(u *url.URL) string {
	name := u.Hostname()
	addr, err := netip.ParseAddr(name)
	if name == "localhost" || err == nil && addr.IsLoopback() {
		return u.Host
	}
	return name
}

// in returns the word for a secret that data holds, or "".
func (s *secrets) in(data []byte) string {
	lower := bytes.ToLower(data)
	for value, word := range s.values {
		if bytes.Contains(lower, []byte(strings.ToLower(value))) {
			return word
		}
	}
	return ""
}
