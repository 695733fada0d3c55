//go:build !wasm

package conn

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"

	"github.com/upbloom/upbloom/internal/dialctx"
)

// Dialer opens connections to one server, straight or through the proxy of
// HTTPS_PROXY, HTTP_PROXY and NO_PROXY. Make one with NewDialer. Its fields may
// be changed before the first dial; after that it is safe for concurrent use.
type Dialer struct {
	// ServerTLS is the configuration of TLS to the server, nil for http.
	ServerTLS *tls.Config
	// ProxyTLS is that of TLS to an https:// proxy.
	ProxyTLS *tls.Config
	// Open looks up a name and opens a socket, as a net.Dialer does.
	Open dialctx.Func

	host, port string
	proxy      *url.URL // nil to dial straight
	variable   string   // which has it
	proxyErr   error
}

// NewDialer makes a dialer for a host, without brackets, and port. It reads the
// environment's proxy, once; Dial reports an unusable setting.
func NewDialer(host, port string, secure bool) *Dialer {
	d := &Dialer{
		ProxyTLS: &tls.Config{MinVersion: tls.VersionTLS12},
		Open:     new(net.Dialer).DialContext,
		host:     host, port: port,
	}
	target := &url.URL{Scheme: "http", Host: d.addr()}
	if secure {
		target.Scheme = "https"
		d.ServerTLS = &tls.Config{
			ServerName: host, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			ClientSessionCache: tls.NewLRUClientSessionCache(8),
		}
	}
	d.proxy, d.proxyErr = ProxyFor(target)
	d.variable = proxyVariable(secure)
	if d.proxy != nil {
		d.ProxyTLS.ServerName = d.proxy.Hostname()
	}
	return d
}

func (d *Dialer) addr() string { return net.JoinHostPort(d.host, d.port) }

// Dial looks up the name, opens a socket, and adds the proxy's tunnel and TLS.
// It fails if a server without TLS speaks or closes before it was asked. If Dial
// fails, no request was sent.
func (d *Dialer) Dial(ctx context.Context) (*Conn, error) {
	if d.proxyErr != nil {
		return nil, d.proxyErr
	}
	var s net.Conn
	var err error
	if d.proxy == nil {
		s, err = d.dialHost(ctx, d.host, d.port)
	} else {
		s, err = d.dialHost(ctx, d.proxy.Hostname(), proxyPort(d.proxy))
		err = asProxyError(err, d.variable)
	}
	if err != nil {
		return nil, err
	}
	c := New(s)
	// One limit for all that follows, because not every step takes a context.
	c.Watch(ctx)
	err = d.addLayers(c)
	if !c.Unwatch() {
		err = ctx.Err()
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (d *Dialer) addLayers(c *Conn) error {
	peer := "the server"
	if d.proxy != nil {
		peer = "the proxy or the server"
		if err := tunnel(c, d.proxy, d.ProxyTLS, d.addr()); err != nil {
			return asProxyError(err, d.variable)
		}
	}
	if d.ServerTLS == nil {
		return c.checkSilent()
	}
	return brokenDuring("in the TLS handshake", peer, c.addTLS(d.ServerTLS))
}

// dialHost opens a socket to one of the host's addresses. A net.Dialer races both
// families, and shares a look-up among the calls that wait for one name.
func (d *Dialer) dialHost(ctx context.Context, host, port string) (net.Conn, error) {
	open := dialctx.From(ctx)
	if open == nil {
		open = d.Open
	}
	return open(ctx, "tcp", net.JoinHostPort(host, port))
}
