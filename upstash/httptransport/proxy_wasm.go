//go:build wasm

package httptransport

import "net/http"

// environmentProxy is of no use without sockets.
var environmentProxy = http.ProxyFromEnvironment
