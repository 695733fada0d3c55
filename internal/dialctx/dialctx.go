// Package dialctx puts another network under the default transport, for tests
// that run in memory and on a virtual clock.
package dialctx

import (
	"context"
	"net"
)

// Func opens a connection, as net.Dialer's DialContext does.
type Func func(ctx context.Context, network, addr string) (net.Conn, error)

// TryReader is a connection that is no socket, but can be read without waiting,
// so that what nobody asked for is seen before the connection is used again.
type TryReader interface {
	net.Conn
	// TryRead is Read, but returns 0 and nil if nothing has arrived.
	TryRead(p []byte) (n int, err error)
}

type key struct{}

// With makes calls under ctx dial by f.
func With(ctx context.Context, f Func) context.Context {
	return context.WithValue(ctx, key{}, f)
}

// From returns what With was given, or nil.
func From(ctx context.Context) Func {
	f, _ := ctx.Value(key{}).(Func)
	return f
}
