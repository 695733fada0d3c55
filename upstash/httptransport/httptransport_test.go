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
	"testing"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
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

// What is known of a RoundTripper's error decides whether the command may have
// run.
func TestOutcomes(t *testing.T) {
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		rt   roundTripper
		safe bool
	}{
		"unknown error": {func(*http.Request) (*http.Response, error) { return nil, boom }, false},
		"dial": {func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: boom}
		}, true},
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
			return nil, &net.OpError{Op: "dial", Err: boom}
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

// TestLateReaderGetsNothing: a RoundTripper that goes on reading the body after
// it answered finds it gone, and never sees an end that looks whole.
func TestLateReaderGetsNothing(t *testing.T) {
	var late, again io.ReadCloser
	tr := httptransport.New(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		late = r.Body
		_, _ = io.ReadFull(r.Body, make([]byte, 2))
		// net/http asks for it again where a connection took no byte.
		again, _ = r.GetBody()
		if b, err := io.ReadAll(again); string(b) != `["GET","k"]` || err != nil {
			t.Errorf("the body read again: %q, %v", b, err)
		}
		again, _ = r.GetBody()
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})})
	req := &upstash.Request{URL: "https://db.example.test", MaxResponse: 100, Body: []byte(`["GET","k"]`)}
	var resp upstash.Response
	if err := tr.RoundTrip(context.Background(), req, &resp); err != nil {
		t.Fatal(err)
	}
	for _, body := range []io.Reader{late, again} {
		if n, err := body.Read(make([]byte, 10)); n != 0 || err == nil || err == io.EOF {
			t.Errorf("read %d bytes, %v; want none and an error", n, err)
		}
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
