package httptransport_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

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

// The RoundTripper's error decides whether the command may have run.
func TestOutcomes(t *testing.T) {
	boom := errors.New("boom")
	dial := &net.OpError{Op: "dial", Err: boom}
	take := func(body io.Reader) { _, _ = io.ReadFull(body, make([]byte, 1)) }
	for name, tt := range map[string]struct {
		rt   roundTripper
		safe bool
	}{
		"unknown error": {func(*http.Request) (*http.Response, error) { return nil, boom }, false},
		"dial":          {func(*http.Request) (*http.Response, error) { return nil, dial }, true},
		"read": {func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "read", Err: boom}
		}, false},
		"DNS": {func(*http.Request) (*http.Response, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "db.example.test"}
		}, true},
		"no connection": {func(r *http.Request) (*http.Response, error) {
			httptrace.ContextClientTrace(r.Context()).GetConn("db.example.test:443")
			return nil, boom
		}, true},
		"a connection": {func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			trace.GetConn("db.example.test:443")
			trace.GotConn(httptrace.GotConnInfo{})
			return nil, boom
		}, false},
		"dialled again after sending": {func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			trace.GotConn(httptrace.GotConnInfo{})
			return nil, dial
		}, false},
		"a byte taken, then a dial": {func(r *http.Request) (*http.Response, error) {
			take(r.Body)
			return nil, dial
		}, false},
		"a byte taken, then no connection": {func(r *http.Request) (*http.Response, error) {
			take(r.Body)
			httptrace.ContextClientTrace(r.Context()).GetConn("db.example.test:443")
			return nil, boom
		}, false},
		"a byte of a copy taken, then a dial": {func(r *http.Request) (*http.Response, error) {
			body, _ := r.GetBody()
			take(body)
			return nil, dial
		}, false},
	} {
		err := do(t, tt.rt)
		var call *upstash.CallError
		if !errors.As(err, &call) || upstash.SafeToRetry(err) != tt.safe {
			t.Errorf("%s: got %v, SafeToRetry %v, want %v", name, err, !tt.safe, tt.safe)
		}
		for _, secret := range []string{"db.example.test/", "secret"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error shows %q: %v", name, secret, err)
			}
		}
		if u := new(url.Error); errors.As(err, &u) {
			t.Errorf("%s: a *url.Error is inside: %v", name, u)
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
