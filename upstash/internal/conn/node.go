package conn

import (
	"os"
	"strings"
)

// proxyOfNode reports whether Node's environment has a proxy for a host, which its fetch
// would go around. If NODE_USE_ENV_PROXY is 1, fetch uses it from Node 24 on. In NO_PROXY
// it knows names and "*", and no ports or networks.
func proxyOfNode(host string, secure bool) bool {
	name := "HTTP_PROXY"
	if secure {
		name = "HTTPS_PROXY"
	}
	if env(name) == "" || os.Getenv("NODE_USE_ENV_PROXY") == "1" {
		return false
	}
	for except := range strings.SplitSeq(env("NO_PROXY"), ",") {
		except = strings.ToLower(strings.TrimSpace(except))
		below := "." + strings.TrimPrefix(except, ".")
		if except == "*" || except == host || except != "" && strings.HasSuffix(host, below) {
			return false
		}
	}
	return true
}

// env reads a variable that may have a name in capitals or in small letters.
func env(name string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return os.Getenv(strings.ToLower(name))
}
