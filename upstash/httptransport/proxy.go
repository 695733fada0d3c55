//go:build !wasm

package httptransport

import (
	"net/http"
	"net/url"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/internal/conn"
)

// environmentProxy is http.ProxyFromEnvironment, except that it returns an
// error for a setting that cannot be parsed, which that one ignores.
func environmentProxy(r *http.Request) (*url.URL, error) {
	proxy, err := conn.ProxyFor(r.URL)
	return proxy, upstash.NotSent(err)
}
