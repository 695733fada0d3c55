//go:build !wasm

package httptransport

import (
	"context"
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

// tunnelled returns the native default's error if the proxy refused a tunnel.
func tunnelled(_ context.Context, proxy *url.URL, _ *http.Request, answer *http.Response) error {
	return conn.Connected(proxy, answer.StatusCode)
}
