//go:build !wasm

package httptransport

import (
	"context"
	"fmt"
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

// tunnelled says who refused a tunnel: the error of net/http has the text of
// the status alone.
func tunnelled(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	return fmt.Errorf("the proxy answered CONNECT with status %d: does it allow this host,"+
		" has its URL in HTTPS_PROXY the right user and password?", answer.StatusCode)
}
