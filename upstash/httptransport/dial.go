package httptransport

import (
	"context"
	"net"
	"runtime"
	"time"

	"github.com/upbloom/upbloom/internal/dialctx"
	"github.com/upbloom/upbloom/upstash"
)

// maxDial is how long a dial and all its handshakes may take. net/http goes on
// with a dial whose caller has left, and counts it as a connection. Its own limits
// do not cover the handshake of SOCKS5.
const maxDial = 10 * time.Second

// dialEnd is the key of the time when the dials of an attempt end. net/http hides
// the deadline of its caller from them, and keeps the values.
type dialEnd struct{}

// withDialEnd lets the dials of an attempt end with it. They get a grace more, so
// that the error of the attempt itself is the one that is told.
func withDialEnd(ctx context.Context) context.Context {
	if end, ok := ctx.Deadline(); ok {
		return context.WithValue(ctx, dialEnd{}, end.Add(grace))
	}
	return ctx
}

// endOfDial returns when a dial ends that begins now.
func endOfDial(ctx context.Context, now time.Time) time.Time {
	end := now.Add(maxDial)
	if own, ok := ctx.Value(dialEnd{}).(time.Time); ok && own.Before(end) {
		return own
	}
	return end
}

// dialInTime is the DialContext of New(nil). net.Dialer divides the time among the
// addresses of a name. What follows the dial until the connection is used ends in
// time too: GotConn lifts the deadline.
func dialInTime(ctx context.Context, network, addr string) (net.Conn, error) {
	open := dialctx.From(ctx)
	switch {
	case open != nil:
	case runtime.GOOS == "wasip1": // whose net dials within the process
		return nil, upstash.ErrNoTransport
	default:
		open = new(net.Dialer).DialContext
	}
	end := endOfDial(ctx, time.Now())
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	c, err := open(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(end)
	return c, nil
}
