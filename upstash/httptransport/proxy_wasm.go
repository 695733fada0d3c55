//go:build wasm

package httptransport

import "net/http"

// environmentProxy has no effect without sockets.
var environmentProxy = http.ProxyFromEnvironment
