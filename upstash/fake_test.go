package upstash

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/errtext"
)

// answer is what fakeTransport does with one request.
type answer struct {
	status     int // 200 if it is 0
	body       string
	syncToken  string
	retryAfter string
	err        error
	hook       func(ctx context.Context)
}

// fakeTransport plays the answers of a script, repeats the last one for ever,
// and keeps copies of the requests.
type fakeTransport struct {
	mu       sync.Mutex
	script   []answer
	requests []Request
}

func (f *fakeTransport) RoundTrip(ctx context.Context, req *Request, resp *Response) error {
	f.mu.Lock()
	a := f.script[min(len(f.requests), len(f.script)-1)]
	sent := *req
	sent.Header, sent.Body = slices.Clone(req.Header), slices.Clone(req.Body)
	f.requests = append(f.requests, sent)
	f.mu.Unlock()
	if a.hook != nil {
		a.hook(ctx)
	}
	if a.err != nil {
		return a.err
	}
	resp.StatusCode = a.status
	if a.status == 0 {
		resp.StatusCode = 200
	}
	resp.SetHeader("UPSTASH-Sync-Token", a.syncToken)
	resp.SetHeader("Retry-After", a.retryAfter)
	resp.Body = append(resp.Body, a.body...)
	return nil
}

func (f *fakeTransport) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.requests)
}

// last returns a header field of the last request, and whether it had one.
func (f *fakeTransport) last(name string) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.requests[len(f.requests)-1].Header {
		if h.Name == name {
			return h.Value, true
		}
	}
	return "", false
}

// transportFunc is another transport. Unless it sets one, its answers have the
// status 200.
type transportFunc func(*Request, *Response) error

func (f transportFunc) RoundTrip(_ context.Context, req *Request, resp *Response) error {
	resp.StatusCode = 200
	return f(req, resp)
}

const (
	testToken = "tok3n-of-the-test"
	testURL   = "https://db.example.test"
)

// newFake makes a client without pauses whose server follows script.
func newFake(tb testing.TB, script []answer, opts ...Option) (*Client, *fakeTransport) {
	tb.Helper()
	f := &fakeTransport{script: script}
	return clientOver(tb, f, append([]Option{WithBackoff(0, time.Millisecond)}, opts...)...), f
}

// clientOver makes a client over a transport.
func clientOver(tb testing.TB, tr Transport, opts ...Option) *Client {
	tb.Helper()
	c, err := New(testURL, testToken, append(opts, WithTransport(tr))...)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// texts checks each error of this suite's calls and attempts, but for those of
// clients with observers of their own.
var texts errtext.Collector

func checkText(_ context.Context, e Event) { texts.Add(e.Err) }

// unobserved takes off the observers that the suite gives each client.
func unobserved(s *settings) { s.observer, s.callObserver = nil, nil }

// always answers every request with the same body.
func always(body string) []answer { return []answer{{body: body}} }

// observing makes an observer that calls f without a context.
func observing(f func(Event)) Option {
	return WithObserver(func(_ context.Context, e Event) { f(e) })
}
