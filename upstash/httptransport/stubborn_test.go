package httptransport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
)

// ping runs one request over rt. The request's buffer is the caller's again.
func ping(ctx context.Context, rt http.RoundTripper) (resp upstash.Response, err error) {
	req := &upstash.Request{URL: "https://db.example.test/", MaxResponse: 100, Body: []byte(`["PING"]`)}
	err = httptransport.New(&http.Client{Transport: rt}).RoundTrip(ctx, req, &resp)
	clear(req.Body)
	return resp, err
}

func responding(body io.Reader) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{}, ContentLength: -1, Body: io.NopCloser(body)}
}

// waiting is a body whose reads return when until is closed.
type waiting struct{ until <-chan struct{} }

func (w waiting) Read([]byte) (int, error) {
	<-w.until
	return 0, io.EOF
}

// TestContextEndsStubbornCalls: a call ends with its context, even if the
// RoundTripper or the body ignores the context.
func TestContextEndsStubbornCalls(t *testing.T) {
	for name, answer := range map[string]func(free <-chan struct{}) *http.Response{
		"RoundTripper": func(free <-chan struct{}) *http.Response {
			<-free
			return responding(http.NoBody)
		},
		"body": func(free <-chan struct{}) *http.Response { return responding(waiting{free}) },
	} {
		synctest.Test(t, func(t *testing.T) {
			free, left := make(chan struct{}), make(chan struct{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := ping(ctx, roundTripper(func(r *http.Request) (*http.Response, error) {
				defer close(left)
				_, _ = io.ReadAll(r.Body)
				return answer(free), nil
			}))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: got %v, want the context's error", name, err)
			}
			if upstash.SafeToRetry(err) {
				t.Errorf("%s: taken as never sent, though the body was read", name)
			}
			close(free)
			<-left
		})
	}
}

// empty is a body that returns no bytes and never ends.
type empty struct{}

func (empty) Read([]byte) (int, error) { return 0, nil }

func TestBodyWithoutProgress(t *testing.T) {
	resp, err := ping(t.Context(), roundTripper(func(*http.Request) (*http.Response, error) {
		return responding(empty{}), nil
	}))
	if !errors.Is(err, io.ErrNoProgress) || resp.StatusCode != 200 {
		t.Errorf("status %d, %v; want 200 and io.ErrNoProgress", resp.StatusCode, err)
	}
}

// TestBadLocation: the transport does not follow, parse or show the target of a
// redirect.
func TestBadLocation(t *testing.T) {
	header := http.Header{"Location": {"http://secret-host\x7f:port/%zz"}, "Retry-After": {"7"}}
	for _, status := range []int{301, 302, 303, 307, 308} {
		rt := roundTripper(func(*http.Request) (*http.Response, error) {
			resp := responding(strings.NewReader("moved"))
			resp.StatusCode, resp.Header = status, header
			return resp, nil
		})
		resp, err := ping(t.Context(), rt)
		if err != nil || resp.StatusCode != status || string(resp.Body) != "moved" {
			t.Errorf("status %d, body %q, %v; want %d", resp.StatusCode, resp.Body, err, status)
		}
		var server *upstash.Error
		err = do(t, rt)
		if !errors.As(err, &server) || server.StatusCode != status || server.RetryAfter != 7*time.Second ||
			strings.Contains(err.Error(), "secret-host") {
			t.Errorf("got %v, want an Error with status %d that does not quote the place", err, status)
		}
	}
	if header.Get("Location") == "" {
		t.Error("the RoundTripper's own header was changed")
	}
}

// TestPanicReachesTheCaller: the caller can recover from a RoundTripper's
// panic, although it runs on another goroutine.
func TestPanicReachesTheCaller(t *testing.T) {
	defer func() {
		if r := recover(); r != "boom" {
			t.Errorf("recovered %v, want the RoundTripper's own value", r)
		}
	}()
	_ = do(t, roundTripper(func(*http.Request) (*http.Response, error) { panic("boom") }))
	t.Error("no panic")
}

// TestGoexitReachesTheCaller: a mock that calls t.FailNow ends the test.
func TestGoexitReachesTheCaller(t *testing.T) {
	var group sync.WaitGroup
	ended := true
	group.Go(func() {
		_ = do(t, roundTripper(func(*http.Request) (*http.Response, error) {
			runtime.Goexit()
			return nil, nil
		}))
		ended = false
	})
	group.Wait()
	if !ended {
		t.Error("the call returned")
	}
}
