//go:build wasm

package httptransport

import "net/http"

var environmentProxy = http.ProxyFromEnvironment // without effect: there are no sockets
