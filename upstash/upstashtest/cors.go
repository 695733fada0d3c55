package upstashtest

import (
	"net/http"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

// Web pages call the service from any origin, with a read-only token. Which
// headers it sends for that is not documented: these let a browser do what the
// other forms of a request can.

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
