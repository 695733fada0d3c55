//go:build !wasm

package httptransport

import (
	"net/http"
	"net/url"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/internal/conn"
)

// ProxyFromEnvironment is [http.ProxyFromEnvironment] for an http.Transport of your
// own, as New(nil) has it. It reads the environment anew each time. If the setting
// cannot be used, it returns an error: http.ProxyFromEnvironment, which
// http.DefaultTransport has, ignores some of those, and the token would go around
// the proxy.
func ProxyFromEnvironment(r *http.Request) (*url.URL, error) {
	proxy, err := conn.ProxyFor(r.URL)
	return proxy, upstash.NotSent(err)
}
