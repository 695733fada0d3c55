package httptransport

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"

	"github.com/upbloom/upbloom/upstash"
)

// tracer learns from httptrace whether a request ever had a connection. A
// RoundTripper that knows no httptrace, such as that of an edge platform,
// calls neither hook, and nothing is concluded.
type tracer struct {
	wanted, got atomic.Bool
}

func (t *tracer) attach(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { t.wanted.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { t.got.Store(true) },
	})
}

// classify marks err as NotSent where that is certain.
func (t *tracer) classify(err error) error {
	if t.wanted.Load() && !t.got.Load() || isDialError(err) && !t.got.Load() {
		return upstash.NotSent(err)
	}
	return err
}

func isDialError(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &dns)
}

// withoutURL unwraps the *url.Error of net/http: its text is the URL, and a
// redirect's would be the server's choice.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
