//go:build wasm

package httptransport

import (
	"net/http"
	"net/url"
)

// ProxyFromEnvironment returns nil: there are no sockets.
func ProxyFromEnvironment(*http.Request) (*url.URL, error) { return nil, nil }
