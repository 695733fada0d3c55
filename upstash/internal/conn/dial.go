//go:build !wasm

package conn

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/upbloom/upbloom/internal/dialctx"
)

// Dialer opens connections to one server. Make one with NewDialer. Its fields
// may be changed before the first dial; after that it is safe for concurrent use.
type Dialer struct {
	// ServerTLS is the configuration of TLS to the server, nil for http.
	ServerTLS *tls.Config
	// Open looks up a name and opens a socket, as a net.Dialer does.
	Open dialctx.Func

	addr string
}

// NewDialer makes a dialer for a host, without brackets, and port.
func NewDialer(host, port string, secure bool) *Dialer {
	d := &Dialer{Open: new(net.Dialer).DialContext, addr: net.JoinHostPort(host, port)}
	if secure {
		d.ServerTLS = &tls.Config{
			ServerName: host, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			ClientSessionCache: tls.NewLRUClientSessionCache(8),
		}
	}
	return d
}

// Dial looks up the name, opens a socket, and adds TLS. A net.Dialer races both
// families of addresses, and shares a look-up among the calls that wait for one
// name. Dial fails if a server without TLS speaks or closes before it was asked.
// If Dial fails, no request was sent.
func (d *Dialer) Dial(ctx context.Context) (*Conn, error) {
	open := dialctx.From(ctx)
	if open == nil {
		open = d.Open
	}
	s, err := open(ctx, "tcp", d.addr)
	if err != nil {
		return nil, err
	}
	c := New(s)
	// One limit for all that follows, because not every step takes a context.
	c.Watch(ctx)
	if d.ServerTLS == nil {
		err = c.checkSilent()
	} else {
		err = brokenInHandshake(c.addTLS(d.ServerTLS))
	}
	if !c.Unwatch() {
		err = ctx.Err()
		if d.ServerTLS != nil {
			err = SilentHandshake(err)
		}
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}
