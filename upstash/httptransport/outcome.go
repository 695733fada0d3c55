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

// classify marks err as NotSent if that is certain. A RoundTripper may send a
// request by several ways, with the hooks or without: so whatever the hooks
// and the error say, a body of which a byte was taken may have been sent.
// http.Transport takes the first byte when it has a connection.
func (t *tracer) classify(err error, bodyTaken bool) error {
	if bodyTaken || t.got.Load() {
		return err
	}
	if t.wanted.Load() || isDialError(err) {
		return upstash.NotSent(err)
	}
	return err
}

func isDialError(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &dns)
}

// withoutURL unwraps every *url.Error of net/http: its text is the URL, and a
// redirect's would be the server's choice.
func withoutURL(err error) error {
	for u := new(url.Error); errors.As(err, &u); {
		err = u.Err
	}
	return err
}
