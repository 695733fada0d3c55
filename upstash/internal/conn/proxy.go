//go:build !wasm

package conn

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// The proxy's URL may hold a password, so it is never quoted.
var errBadProxy = errors.New("the URL of the environment's proxy cannot be used: set HTTPS_PROXY (for http://" +
	" HTTP_PROXY) to http://, https:// or socks5:// with host and port, and escape what is special in the" +
	" password (%23 for #)")

// HasProxy reports whether the environment has a proxy for a host and port, or one
// whose URL cannot be used. A loopback address never has one.
func HasProxy(host, port string, secure bool) bool {
	target := &url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}
	if secure {
		target.Scheme = "https"
	}
	p, err := ProxyFor(target)
	return p != nil || err != nil
}

// ProxyFor returns the environment's proxy for target, or nil. If the setting
// cannot be used, it returns an error: a client must not go around the proxy.
func ProxyFor(target *url.URL) (*url.URL, error) {
	env := httpproxy.FromEnvironment()
	setting := &env.HTTPProxy
	if target.Scheme == "https" {
		setting = &env.HTTPSProxy
	}
	raw := *setting
	if raw == "" {
		return nil, nil
	}
	// httpproxy ignores a proxy if it cannot parse its URL. So it only says
	// whether this host has a proxy, with another URL in place of the real one.
	*setting = "http://proxy.invalid"
	p, err := env.ProxyFunc()(target)
	if p == nil || err != nil {
		return nil, err
	}
	if !strings.Contains(raw, "://") {
		raw = "http://" + raw
	}
	// A part after the host most often belongs to an unescaped password.
	p, err = url.Parse(raw)
	if err != nil || p.Hostname() == "" || strings.Trim(p.Path, "/") != "" || strings.ContainsAny(raw, "?#") ||
		!slices.Contains([]string{"http", "https", "socks5", "socks5h"}, p.Scheme) {
		return nil, errBadProxy
	}
	return p, nil
}
