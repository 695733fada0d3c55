package httptransport

import (
	"bytes"
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// Transport carries requests over an http.Client. Make one with New. It is
// safe for concurrent use and must not be copied.
type Transport struct {
	client http.Client
	owned  bool // the RoundTripper was made here
}

var _ upstash.Transport = (*Transport)(nil)

// New makes a transport over client, of which it keeps a copy: timeout, cookie
// jar and RoundTripper are the caller's, while redirects are never followed,
// because they would carry the token to another host. With nil it makes a
// client of its own, whose settings are those of the native default: TLS 1.2
// and later, the proxy of the environment, HTTP/2 where the server offers it.
func New(client *http.Client) *Transport {
	t := &Transport{}
	if client == nil {
		t.client.Transport, t.owned = newRoundTripper(), true
	} else {
		t.client = *client
	}
	t.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return t
}

// maxIdleConns and maxIdleTime are those of the native default. An idle time
// below that of servers and NAT gateways makes it rare that a request goes
// into a connection that is already dead.
const (
	maxIdleConns = 64
	maxIdleTime  = 30 * time.Second
)

func newRoundTripper() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{}).DialContext,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true, // as on the native default: answers are short
		MaxIdleConns:          maxIdleConns,
		MaxIdleConnsPerHost:   maxIdleConns,
		IdleConnTimeout:       maxIdleTime,
		ExpectContinueTimeout: time.Second,
	}
}

// Close closes the idle connections of a transport made with New(nil). It
// leaves those of a caller's client alone.
func (t *Transport) Close() error {
	if t.owned {
		t.client.CloseIdleConnections()
	}
	return nil
}

// RoundTrip sends req once.
func (t *Transport) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	lent := &loan{bytes: req.Body}
	defer lent.callBack()
	body, _ := lent.reader()

	trace := new(tracer)
	out, err := http.NewRequestWithContext(trace.attach(ctx), http.MethodPost, req.URL, body)
	if err != nil {
		return upstash.NotSent(withoutURL(err))
	}
	out.ContentLength, out.GetBody = int64(len(req.Body)), lent.reader
	out.Header = make(http.Header, len(req.Header))
	for _, h := range req.Header {
		out.Header.Set(h.Name, h.Value)
	}
	in, err := t.client.Do(out)
	if err != nil {
		return trace.classify(withoutURL(err))
	}
	defer in.Body.Close()
	return read(in, req.MaxResponse, resp)
}

const maxPrealloc = 1 << 20

func read(in *http.Response, limit int, resp *upstash.Response) error {
	resp.StatusCode = in.StatusCode
	for name, values := range in.Header {
		if len(values) > 0 && resp.WantsHeader([]byte(name)) {
			resp.SetHeader(name, values[0])
		}
	}
	if in.ContentLength > int64(limit) {
		return upstash.ErrResponseTooLarge
	}
	// An announced length is a promise; it may not make this allocate much
	// before anything came.
	if n := min(in.ContentLength, maxPrealloc); n > 0 {
		resp.Body = make([]byte, 0, n+bytes.MinRead) // as much as Buffer.ReadFrom wants
	}
	// One byte over the limit tells that there is more.
	upTo := int64(limit)
	if upTo < math.MaxInt64 {
		upTo++
	}
	buf := bytes.NewBuffer(resp.Body)
	n, err := buf.ReadFrom(io.LimitReader(in.Body, upTo))
	resp.Body = buf.Bytes()
	if err != nil {
		return withoutURL(err)
	}
	if n > int64(limit) {
		return upstash.ErrResponseTooLarge
	}
	return nil
}
