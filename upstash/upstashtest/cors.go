package upstashtest

import (
	"net/http"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

// The service lets web pages of any origin call it with a read-only token. It
// does not document the headers it sends for that. These let a browser send
// every form of a request.

// allowOrigins lets pages of any origin read the answer.
func allowOrigins(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", wire.HeaderSyncToken+", Retry-After")
}

// preflight answers OPTIONS, which a browser sends first, without a token.
func preflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "HEAD, GET, POST, PUT, OPTIONS")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	h.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
}
