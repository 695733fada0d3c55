package httptransport_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestNewCopiesTheClient(t *testing.T) {
	follow := func(*http.Request, []*http.Request) error { return errors.New("asked") }
	client := &http.Client{CheckRedirect: follow}
	tr := httptransport.New(client)
	if client.Transport != nil || client.CheckRedirect(nil, nil).Error() != "asked" {
		t.Error("the caller's client was changed")
	}
	client.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
		t.Error("a change of the caller's client had an effect")
		return nil, io.EOF
	})
	s := httptest.NewServer(http.RedirectHandler("/elsewhere", http.StatusTemporaryRedirect))
	defer s.Close()
	var resp upstash.Response
	err := tr.RoundTrip(t.Context(), &upstash.Request{URL: s.URL, MaxResponse: 100, Body: []byte("[]")}, &resp)
	if err != nil || resp.StatusCode != http.StatusTemporaryRedirect {
		t.Errorf("status %d, %v; want the redirect itself", resp.StatusCode, err)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
}

// TestLateReaderGetsNothing: if a RoundTripper reads the request's body after
// its answer, it gets an error. io.EOF would look like the end of the request.
// Before it has read the whole, the server can only have refused.
func TestLateReaderGetsNothing(t *testing.T) {
	const text = `["GET","k"]`
	for _, tt := range []struct{ read, status, want int }{
		{0, 200, 200}, {2, 200, 0}, {len(text) - 1, 204, 0}, {len(text), 200, 200}, {2, 307, 307}, {2, 413, 413},
	} {
		var late io.ReadCloser
		tr := httptransport.New(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			late = r.Body
			_, _ = io.ReadFull(r.Body, make([]byte, tt.read))
			return &http.Response{StatusCode: tt.status, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		})})
		req := &upstash.Request{URL: "https://db.example.test", MaxResponse: 100, Body: []byte(text)}
		var resp upstash.Response
		err := tr.RoundTrip(context.Background(), req, &resp)
		if resp.StatusCode != tt.want || (err == nil) != (tt.want != 0) || upstash.SafeToRetry(err) != (tt.want == 0) {
			t.Errorf("status %d once %d bytes were read: got %d, %v", tt.status, tt.read, resp.StatusCode, err)
		}
		mustReadNothing(t, late)
	}
}

func mustReadNothing(t *testing.T, body io.Reader) {
	t.Helper()
	if n, err := body.Read(make([]byte, 10)); n != 0 || err == nil || err == io.EOF {
		t.Errorf("read %d bytes, %v; want none and an error", n, err)
	}
}

// TestBodyIsLentOnce: once a RoundTripper has read a byte of the request, by
// any reader, it gets no other reader. Until then it gets one, and earlier
// readers return nothing.
func TestBodyIsLentOnce(t *testing.T) {
	const text = `["INCR","k"]`
	tr := httptransport.New(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		again, err := r.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		mustReadNothing(t, r.Body)
		if b, err := io.ReadAll(again); string(b) != text || err != nil {
			t.Errorf("the body read again: %q, %v", b, err)
		}
		_, err = r.GetBody()
		return nil, err
	})})
	req := &upstash.Request{URL: "https://db.example.test", MaxResponse: 100, Body: []byte(text)}
	var resp upstash.Response
	err := tr.RoundTrip(t.Context(), req, &resp)
	if err == nil || !strings.Contains(err.Error(), "no request is sent twice") {
		t.Errorf("got %v, want the refusal of a second body", err)
	}
}

func TestBadURLIsNotSent(t *testing.T) {
	var resp upstash.Response
	req := &upstash.Request{URL: "https://secret\x7f/", MaxResponse: 1}
	err := httptransport.New(nil).RoundTrip(t.Context(), req, &resp)
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// do runs one INCR, once, over rt.
func do(t *testing.T, rt http.RoundTripper) error {
	t.Helper()
	c, err := upstash.New("https://db.example.test", "secret-token", upstash.WithRetry(0),
		upstash.WithTransport(httptransport.New(&http.Client{Transport: rt})))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Do(t.Context(), upstash.Cmd("INCR", "secret-key"))
	return err
}

// The RoundTripper's error, the hooks of httptrace that it called, and what it took
// of the body decide whether the command may have run.
func TestOutcomes(t *testing.T) {
	const none, wanted, got, both = "", "wanted a connection", "got one", "wanted and got one"
	const body, clone = "the body", "a copy of the body"
	boom := errors.New("boom")
	dial := &net.OpError{Op: "dial", Err: boom}
	for _, tt := range []struct {
		name  string
		hooks string
		taken string // a byte of it
		err   error
		safe  bool
	}{
		{"unknown error", none, none, boom, false},
		{"dial", none, none, dial, true},
		{"read", none, none, &net.OpError{Op: "read", Err: boom}, false},
		{"DNS", none, none, &net.DNSError{Err: "no such host", Name: "db.example.test"}, true},
		{"no connection", wanted, none, boom, true},
		{"a connection", both, none, boom, false},
		{"dialled again after sending", got, none, dial, false},
		{"a byte taken, then a dial", none, body, dial, false},
		{"a byte taken, then no connection", wanted, body, boom, false},
		{"a byte of a copy taken, then a dial", none, clone, dial, false},
	} {
		err := do(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			if tt.hooks == wanted || tt.hooks == both {
				trace.GetConn("db.example.test:443")
			}
			if tt.hooks == got || tt.hooks == both {
				trace.GotConn(httptrace.GotConnInfo{})
			}
			from := r.Body
			if tt.taken == clone {
				from, _ = r.GetBody()
			}
			if tt.taken != none {
				_, _ = io.ReadFull(from, make([]byte, 1))
			}
			return nil, tt.err
		}))
		var call *upstash.CallError
		if !errors.As(err, &call) || upstash.SafeToRetry(err) != tt.safe {
			t.Errorf("%s: got %v, SafeToRetry %v, want %v", tt.name, err, !tt.safe, tt.safe)
		}
		for _, secret := range []string{"db.example.test/", "secret"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error shows %q: %v", tt.name, secret, err)
			}
		}
		if u := new(url.Error); errors.As(err, &u) {
			t.Errorf("%s: a *url.Error is inside: %v", tt.name, u)
		}
	}
}

// TestFallbackIsNotRepeated has a RoundTripper with two legs. The first carries
// the request without httptrace's hooks and loses the answer. The second cannot
// dial. The command ran: it must not be repeated, nor called unsent.
func TestFallbackIsNotRepeated(t *testing.T) {
	db := upstashtest.NewServer(t)
	db.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		return upstashtest.Drop(upstashtest.AfterExec)
	})
	legs := &http.Transport{}
	t.Cleanup(legs.CloseIdleConnections)
	var attempts atomic.Int64
	rt := roundTripper(func(r *http.Request) (*http.Response, error) {
		attempts.Add(1)
		first := r.Clone(context.WithoutCancel(t.Context())) // hides the hooks
		if resp, err := legs.RoundTrip(first); err == nil {
			return resp, nil
		}
		second := r.Clone(r.Context())
		second.URL.Host = "127.0.0.1:1"
		second.Body, _ = r.GetBody()
		return legs.RoundTrip(second)
	})
	c, err := upstash.New(db.URL, db.Token, upstash.WithBackoff(0, 0),
		upstash.WithTransport(httptransport.New(&http.Client{Transport: rt})))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Do(t.Context(), upstash.Cmd("INCR", "n"))
	if err == nil || upstash.SafeToRetry(err) {
		t.Errorf("got %v, SafeToRetry %v; want an error that leaves the outcome open",
			err, upstash.SafeToRetry(err))
	}
	if n, err := db.Exec("GET", "n"); n != "1" || err != nil {
		t.Errorf("INCR ran %v times in %d attempts, %v; want once", n, attempts.Load(), err)
	}
}

func TestMain(m *testing.M) {
	testenv.ClearProxies()
	goleak.VerifyTestMain(m)
}
