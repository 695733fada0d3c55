package upstashtest

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

const textUnauthorized = "WRONGPASS invalid or missing auth token"

// authorize reads the token from the header or, if there is none, from the
// query, and reports what it allows.
func (s *Server) authorize(r *http.Request) (readOnly, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = queryToken(r.URL.RawQuery)
	}
	switch {
	case same(token, s.cfg.token):
		return false, true
	case same(token, s.cfg.readOnlyToken):
		return true, true
	}
	return false, false
}

func queryToken(query string) string {
	for part := range strings.SplitSeq(query, "&") {
		if v, ok := strings.CutPrefix(part, wire.TokenParameter+"="); ok {
			token, _ := url.QueryUnescape(v)
			return token
		}
	}
	return ""
}

// same reports whether a token is the wanted one. It never accepts an empty
// token, because a server may have no read-only token.
func same(got, want string) bool {
	return want != "" && subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
}

func randomToken() string { return rand.Text() }
