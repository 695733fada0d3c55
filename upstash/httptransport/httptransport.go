package httptransport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// Transport carries requests over an [http.Client]. Make one with [New]: the zero
// value must not be used. It is safe for concurrent use and must not be copied.
type Transport struct {
	client http.Client
	owned  *renewable // the RoundTripper, if New made it
}

var _ upstash.Transport = (*Transport)(nil)

// New makes a transport over a copy of client, with its timeout, cookie jar and
// RoundTripper. If client is nil, New makes one with the settings of the native
// default (TLS 1.2 and later), with HTTP/2 if the server offers it, and with the
// proxy of the environment: HTTPS_PROXY, HTTP_PROXY and NO_PROXY. A dial with all
// its handshakes ends with the deadline of its attempt, and after 10 s. On wasip1
// each call of New(nil) is [upstash.ErrNoTransport]: pass the client of the SDK.
//
// After an attempt over a kept connection that vanished without a word, the next
// one of New(nil) opens a new connection, if [upstash.WithTimeout] ended it, or a
// deadline that left it 3 s or more. If deadlines leave less, it does so once no
// attempt has brought a byte for 3 s. A caller's client keeps its
// connections, because they may serve other hosts and callers: close them there,
// or set a ping ([http.HTTP2Config]).
func New(client *http.Client) *Transport {
	t := &Transport{}
	if client == nil {
		t.owned = new(renewable)
		t.owned.current.Store(newRoundTripper())
		t.client.Transport = t.owned
	} else {
		t.client = *client
	}
	t.client.Transport = unredirected{t.client.Transport}
	return t
}

// renewable is an http.Transport that is replaced if its connections may have
// vanished: over HTTP/2 nothing else keeps new requests away from one of them.
type renewable struct {
	current atomic.Pointer[http.Transport]
	// silent is when the first attempt began of those that brought no byte within
	// their callers' deadlines; nil after an answer.
	silent atomic.Pointer[time.Time]
}

func (r *renewable) RoundTrip(req *http.Request) (*http.Response, error) {
	return r.current.Load().RoundTrip(req)
}

// renew replaces old, unless another attempt has done so. It closes the idle
// connections of old; those in use close when they become idle, or, over HTTP/2,
// 30 s later.
func (r *renewable) renew(old *http.Transport) {
	if r.current.CompareAndSwap(old, old.Clone()) {
		r.silent.Store(nil)
		old.CloseIdleConnections()
	}
}

// silentSince notes an attempt that brought no byte, and returns when the first of
// those began. It is for callers who each leave less time than a silence takes.
func (r *renewable) silentSince(begun time.Time) time.Time {
	if first := r.silent.Load(); first != nil && first.Before(begun) {
		return *first
	}
	r.silent.Store(&begun)
	return begun
}

// unredirected hides the Location of a redirect. Without one, http.Client
// follows no redirect. If it could not parse one, its error would quote it and
// lack the status.
type unredirected struct{ http.RoundTripper }

func (u unredirected) RoundTrip(r *http.Request) (*http.Response, error) {
	rt := u.RoundTripper
	if rt == nil {
		rt = http.DefaultTransport
	}
	resp, err := rt.RoundTrip(r)
	if err != nil || resp == nil || resp.Header.Get("Location") == "" {
		return resp, err
	}
	hidden := *resp // mocks return the same response, or header, to several
	hidden.Header = resp.Header.Clone()
	hidden.Header.Del("Location")
	return &hidden, nil
}

// maxConns and maxIdleTime are as in the native default. Servers and NAT
// gateways have longer idle times, so a request is rarely sent over a dead
// connection.
const (
	maxConns    = 256
	maxIdleTime = 30 * time.Second
)

func newRoundTripper() *http.Transport {
	return &http.Transport{
		Proxy:                  ProxyFromEnvironment,
		OnProxyConnectResponse: tunnelled,
		DialContext:            dialInTime,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // as on the native default: answers are short
		MaxConnsPerHost:        maxConns,
		MaxIdleConnsPerHost:    maxConns,
		IdleConnTimeout:        maxIdleTime,
		ExpectContinueTimeout:  time.Second,
	}
}

// tunnelled says who refused a tunnel: the error of net/http has the text of
// the status alone.
func tunnelled(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	return fmt.Errorf("the proxy answered CONNECT with status %d: does it allow this host,"+
		" has its URL in HTTPS_PROXY the right user and password?", answer.StatusCode)
}

// Close closes the idle connections of a transport made with New(nil). It
// leaves those of a caller's client alone.
func (t *Transport) Close() error {
	if t.owned != nil {
		t.owned.current.Load().CloseIdleConnections()
	}
	return nil
}

// RoundTrip sends req once. If ctx is done and the RoundTripper goes on, RoundTrip
// returns 0.1 s later, and a goroutine stays behind until the RoundTripper returns.
// A RoundTripper that sent nothing may return an error of [upstash.NotSent] as it is.
func (t *Transport) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	if err := ctx.Err(); err != nil {
		return upstash.NotSent(err) // net/http would return it without a hook called
	}
	lent := &loan{bytes: req.Body}
	defer lent.callBack()
	trace := &tracer{own: t.owned != nil}
	out, err := newRequest(trace.attach(withDialEnd(ctx)), req, lent)
	if err != nil {
		return upstash.NotSent(withoutURL(err))
	}
	limit := req.MaxResponse
	open := new(openBody)
	var used *http.Transport
	if t.owned != nil {
		used = t.owned.current.Load()
	}
	begun := time.Now()
	a := await(ctx, func() answer { return t.exchange(out, limit, open) }, open.leave)
	if used != nil {
		if trace.answered.Load() {
			t.owned.silent.Store(nil)
		} else if trace.vanished(ctx, t.owned, begun, a.err) {
			t.owned.renew(used)
		}
	}
	taken, cut := lent.callBack()
	if cut && a.err == nil && a.status < http.StatusMultipleChoices {
		return upstash.NotSent(errEarly)
	}
	resp.StatusCode, resp.Body = a.status, a.body
	for name, values := range a.header {
		if len(values) > 0 {
			resp.SetHeader(name, values[0])
		}
	}
	if a.err == nil {
		return nil
	}
	failed := withoutURL(a.err)
	if a.status != 0 {
		return quieted(failed) // there was an answer: the request was sent
	}
	if ctx.Err() != nil || !upstash.SafeToRetry(failed) {
		failed = quieted(failed)
	}
	return trace.classify(out, failed, taken)
}

// errEarly is the error of a success that came while net/http still sent the
// request: that is the answer to another. The rest of the request stays here.
var errEarly = errors.New("an answer came before the request was whole")

func newRequest(ctx context.Context, req *upstash.Request, lent *loan) (*http.Request, error) {
	body, _ := lent.reader()
	out, err := http.NewRequestWithContext(ctx, http.MethodPost, req.URL, body)
	if err != nil {
		return nil, err
	}
	out.ContentLength, out.GetBody = int64(len(req.Body)), lent.reader
	out.Header = make(http.Header, len(req.Header))
	for _, h := range req.Header {
		out.Header.Set(h.Name, h.Value)
	}
	return out, nil
}

// exchange sends the request and reads the answer. It may outlive its caller,
// so it gets nothing the caller may change after the end of the context.
func (t *Transport) exchange(out *http.Request, limit int, open *openBody) answer {
	in, err := t.client.Do(out)
	if err != nil {
		return answer{err: err}
	}
	defer in.Body.Close()
	open.set(in.Body)
	a := answer{status: in.StatusCode, header: in.Header}
	a.body, a.err = read(out.Context(), in, limit)
	return a
}

const maxPrealloc = 1 << 20

func read(ctx context.Context, in *http.Response, limit int) ([]byte, error) {
	if in.ContentLength > int64(limit) {
		return nil, upstash.ErrResponseTooLarge
	}
	var buf bytes.Buffer
	// A server may announce more than it sends, so this allocates little before
	// anything has come.
	if n := min(in.ContentLength, maxPrealloc); n > 0 {
		buf.Grow(int(n) + bytes.MinRead) // as much as ReadFrom wants
	}
	// One byte over the limit shows a body that is too long.
	upTo := int64(limit)
	if upTo < math.MaxInt64 {
		upTo++
	}
	n, err := buf.ReadFrom(io.LimitReader(&steadyReader{ctx: ctx, body: in.Body}, upTo))
	if err == nil && n > int64(limit) {
		err = upstash.ErrResponseTooLarge
	}
	return buf.Bytes(), err
}
