//go:build wasm

package httptransport

import (
	"context"
	"net/http"
	"net/url"
)

// environmentProxy and tunnelled have no effect without sockets.
var (
	environmentProxy = http.ProxyFromEnvironment
	tunnelled        func(context.Context, *url.URL, *http.Request, *http.Response) error
)
