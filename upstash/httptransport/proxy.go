//go:build !wasm

package httptransport

import (
	"net/http"
	"net/url"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/internal/conn"
)

// environmentProxy is http.ProxyFromEnvironment, but returns an error for a
// setting it cannot parse. http.ProxyFromEnvironment ignores such a setting.
func environmentProxy(r *http.Request) (*url.URL, error) {
	proxy, err := conn.ProxyFor(r.URL)
	return proxy, upstash.NotSent(err)
}
