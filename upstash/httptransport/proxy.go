//go:build !wasm

package httptransport

import (
	"net/http"
	"net/url"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/internal/conn"
)

// environmentProxy is http.ProxyFromEnvironment, but returns an error for a
// setting that cannot be used. http.ProxyFromEnvironment ignores some of them,
// and the request would go around the proxy.
func environmentProxy(r *http.Request) (*url.URL, error) {
	proxy, err := conn.ProxyFor(r.URL)
	return proxy, upstash.NotSent(err)
}
