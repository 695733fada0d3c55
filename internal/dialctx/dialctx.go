// Package dialctx replaces the network below the default transport of package
// upstash, for tests in memory and on a virtual clock.
package dialctx

import (
	"context"
	"net"
)

// Func opens a connection, as net.Dialer's DialContext does.
type Func func(ctx context.Context, network, addr string) (net.Conn, error)

// TryReader is a connection, other than a socket, with a read that does not
// wait. The transport reads it so before it uses it again, to find stray bytes.
type TryReader interface {
	net.Conn
	// TryRead is Read, but returns 0 and nil if nothing has arrived.
	TryRead(p []byte) (n int, err error)
}

type key struct{}

// With returns a context under which calls dial with f.
func With(ctx context.Context, f Func) context.Context {
	return context.WithValue(ctx, key{}, f)
}

// From returns the function of With in ctx, or nil.
func From(ctx context.Context) Func {
	f, _ := ctx.Value(key{}).(Func)
	return f
}
