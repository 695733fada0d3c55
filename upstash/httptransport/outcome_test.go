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
