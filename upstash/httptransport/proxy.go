//go:build !wasm

package httptransport

import (
	"net/http"
	"net/url"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/internal/conn"
)

// environmentProxy is http.ProxyFromEnvironment, but for a setting that cannot
// be parsed: that one takes it for no proxy at all.
func environmentProxy(r *http.Request) (*url.URL, error) {
	proxy, err := conn.ProxyFor(r.URL)
	return proxy, upstash.NotSent(err)
}
