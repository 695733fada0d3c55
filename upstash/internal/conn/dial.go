//go:build !wasm

package conn

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
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
	// Lookup finds the addresses of a host, and Open opens a socket to one of
	// them, as a net.Resolver and a net.Dialer do.
	Lookup lookupFunc
	Open   openFunc

	host, port string
	proxy      *url.URL // nil to dial straight
	variable   string   // which has it
	proxyErr   error
	lookups    lookups // of the only host that d dials
}

// NewDialer makes a dialer for a host, without brackets, and port. It reads the
// environment's proxy, once; Dial reports an unusable setting.
func NewDialer(host, port string, secure bool) *Dialer {
	d := &Dialer{
		ProxyTLS: &tls.Config{MinVersion: tls.VersionTLS12},
		host:     host, port: port,
		Lookup: net.DefaultResolver.LookupNetIP,
		Open:   (&net.Dialer{}).DialContext,
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
		err = ofProxy(err, d.variable)
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
			return ofProxy(err, d.variable)
		}
	}
	if d.ServerTLS == nil {
		return c.unasked()
	}
	return c.addTLS(d.ServerTLS, peer)
}

// dialHost opens a socket to one of the host's addresses.
func (d *Dialer) dialHost(ctx context.Context, host, port string) (net.Conn, error) {
	if dial := dialctx.From(ctx); dial != nil {
		return dial(ctx, "tcp", net.JoinHostPort(host, port))
	}
	ip, err := netip.ParseAddr(host)
	ips := []netip.Addr{ip}
	if err != nil {
		if ips, err = d.lookups.find(ctx, d.Lookup, host); err != nil {
			return nil, err
		}
	}
	addrs := make([]string, len(ips))
	for i, ip := range byTurns(ips) {
		addrs[i] = net.JoinHostPort(ip.String(), port)
	}
	return race(ctx, d.Open, addrs)
}
