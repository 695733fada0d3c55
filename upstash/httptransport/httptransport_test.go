package httptransport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
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
func TestLateReaderGetsNothing(t *testing.T) {
	var late io.ReadCloser
	tr := httptransport.New(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		late = r.Body
		_, _ = io.ReadFull(r.Body, make([]byte, 2))
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})})
	req := &upstash.Request{URL: "https://db.example.test", MaxResponse: 100, Body: []byte(`["GET","k"]`)}
	var resp upstash.Response
	if err := tr.RoundTrip(context.Background(), req, &resp); err != nil {
		t.Fatal(err)
	}
	mustReadNothing(t, late)
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
