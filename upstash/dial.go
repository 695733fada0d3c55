//go:build !wasm

package upstash

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"

	"golang.org/x/net/http/httpproxy"
)

// dialer opens connections to one host, straight or through the proxy that
// HTTPS_PROXY, HTTP_PROXY and NO_PROXY name. It tries IPv6 and IPv4 at once.
type dialer struct {
	addr  string
	tls   *tls.Config // nil for http
	proxy func() (*url.URL, error)
	net   net.Dialer
}

func newDialer(e endpoint) dialer {
	d := dialer{addr: net.JoinHostPort(e.host, e.port)}
	target := &url.URL{Scheme: "http", Host: d.addr}
	if e.tls {
		target.Scheme = "https"
		d.tls = &tls.Config{
			ServerName: e.host, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			RootCAs: testRootCAs, ClientSessionCache: tls.NewLRUClientSessionCache(8),
		}
	}
	proxyFor := httpproxy.FromEnvironment().ProxyFunc()
	d.proxy = func() (*url.URL, error) { return proxyFor(target) }
	return d
}

func (d *dialer) dial(ctx context.Context) (*conn, error) {
	proxy, err := d.proxy()
	if err != nil {
		return nil, errBadProxy
	}
	var socket net.Conn
	if proxy == nil {
		socket, err = d.net.DialContext(ctx, "tcp", d.addr)
	} else {
		socket, err = d.dialProxy(ctx, proxy)
	}
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: socket, socket: socket}
	if d.tls != nil {
		t := tls.Client(socket, d.tls)
		if err := t.HandshakeContext(ctx); err != nil {
			_ = socket.Close()
			return nil, err
		}
		c.Conn = t
	}
	newBuffers(c)
	return c, nil
}
