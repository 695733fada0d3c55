package httptransport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/internal/conn"
	"github.com/upbloom/upbloom/upstash/internal/quiet"
)

// tracer records, by httptrace, whether a request ever had a connection. A
// RoundTripper without httptrace, such as that of an edge platform, calls
// neither hook. Then classify concludes nothing from them.
type tracer struct {
	wanted, got atomic.Bool
	reused      atomic.Bool // the connection
	answered    atomic.Bool // a byte of the answer has come
	handshake   atomic.Bool // one of TLS has begun, and not succeeded
	handshakes  atomic.Int64
	own         bool // the RoundTripper was made by New(nil), and calls the hooks
}

func (t *tracer) attach(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { t.wanted.Store(true) },
		GotConn: func(info httptrace.GotConnInfo) {
			t.got.Store(true)
			t.reused.Store(info.Reused)
			if t.own {
				_ = info.Conn.SetDeadline(time.Time{}) // if it has passed, the exchange fails
			}
		},
		GotFirstResponseByte: func() { t.answered.Store(true) },

		TLSHandshakeStart: func() {
			t.handshake.Store(true)
			t.handshakes.Add(1)
		},
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) { t.handshake.Store(err != nil) },
	})
}

// vanished reports whether the peer of a kept connection may be gone without a
// word: no byte of an answer came, and err says that a limit or the system's
// silence ended the attempt, which had begun then. A caller's deadline says so
// only if it left the system time to notice, alone or with those before it.
func (t *tracer) vanished(ctx context.Context, r *renewable, begun time.Time, err error) bool {
	switch {
	case err == nil || !t.reused.Load():
		return false
	case ctx.Err() == nil:
		return conn.IsSilence(err)
	case context.Cause(ctx) == door.ErrLimit:
		return true
	}
	deadline, ok := ctx.Deadline()
	return ok && ctx.Err() == context.DeadlineExceeded && deadline.Sub(r.silentSince(begun)) >= conn.MaxSilence
}

// classify marks err as NotSent if that is certain. A RoundTripper may send a
// request in more than one way, with the hooks or without. So if a byte of the
// body was taken, it may have been sent, whatever the hooks and the error say.
// http.Transport takes the first byte when it has a connection.
func (t *tracer) classify(to *http.Request, err error, bodyTaken bool) error {
	if bodyTaken || t.got.Load() {
		return err
	}
	atProxy := t.atProxy(to)
	if t.handshake.Load() && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)) {
		if atProxy {
			err = fmt.Errorf("the proxy did not complete the TLS handshake: %w", err)
		} else {
			err = conn.SilentHandshake(err)
		}
	}
	if atProxy {
		err = fmt.Errorf("through the environment's proxy: %w", err)
	}
	if t.own || t.wanted.Load() || isDialError(err) {
		return upstash.NotSent(err)
	}
	return err
}

// atProxy reports whether an attempt that got no connection is still between here
// and the environment's proxy. To an https:// one the first handshake is its own.
func (t *tracer) atProxy(to *http.Request) bool {
	if !t.own {
		return false
	}
	proxy, _ := ProxyFromEnvironment(to)
	return proxy != nil && (t.handshakes.Load() == 0 || proxy.Scheme == "https" && t.handshakes.Load() == 1)
}

// quieted returns err without what net/http quotes of a malformed answer, which
// may repeat the request, and without the mark of NotSent: the cause of a context
// may be such an error, of another request, and net/http returns causes.
func quieted(err error) error {
	text := err.Error()
	var field textproto.ProtocolError
	if errors.As(err, &field) { // quotes without quotation marks
		text, _, _ = strings.Cut(text, string(field))
		text += "malformed header"
	}
	if !quiet.Known(err) {
		if before, _, quotes := strings.Cut(text, `"`); quotes {
			text = before + "…"
		}
	}
	return quiet.Error(text, err)
}

func isDialError(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &dns)
}

// withoutURL unwraps every *url.Error of net/http, because its text has the
// URL. After a redirect the server would have chosen that text. http.Client
// adds the outermost one; another one may hold the error of another request.
func withoutURL(err error) error {
	if u, ok := err.(*url.Error); ok {
		err = u.Err
	}
	for u := new(url.Error); errors.As(err, &u); {
		err = fmt.Errorf("%w", u.Err)
	}
	return err
}
