package recording

import (
	"bytes"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// secrets is what must not get into a recording: what requests were sent to,
// and with. It learns them from the requests themselves.
type secrets struct {
	values map[string]string // to a word for it
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

// hostOf is the name alone, with which a database is found. Of this machine
// it is name and port: 127.0.0.1 tells nothing, and tests are full of it.
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
