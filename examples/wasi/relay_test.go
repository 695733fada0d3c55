package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// loseFirst returns a transport that loses the answer to the first request,
// and the next answer whenever lose is set. It does not call the hooks of
// httptrace.
func loseFirst(t *testing.T, lose *bool) http.RoundTripper {
	var below http.Transport
	t.Cleanup(below.CloseIdleConnections)
	*lose = true
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := below.RoundTrip(r.Clone(context.WithoutCancel(t.Context())))
		if err == nil && *lose {
			*lose = false
			_ = resp.Body.Close()
			return nil, errors.New("the answer was lost")
		}
		return resp, err
	})
}

// TestLostAnswerIsUncertain: any Config.Transport may lose the answer to a new
// id. The repetition finds the id in the filter, and the event must not count
// as seen.
func TestLostAnswerIsUncertain(t *testing.T) {
	srv := upstashtest.NewServer(t)
	lose := new(bool)
	g, err := Load(t.Context(), Config{
		Wasm: module(t, "./reactor"), CacheDir: filepath.Join(scratch, "cache"),
		URL: srv.URL, Token: srv.Token, Transport: loseFirst(t, lose),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close(context.Background()) })
	// The lost attempt made the filter, but nothing proves whose attempt it
	// was.
	if got := seen(t, g, "the first of all"); got != Uncertain {
		t.Errorf("%v, want %v", got, Uncertain)
	}
	*lose = true
	for _, want := range []Verdict{Uncertain, Seen} {
		if got := seen(t, g, "never met"); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

func TestRelayOutcomes(t *testing.T) {
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		rt   roundTripper
		want string
	}{
		"nothing taken": {
			func(*http.Request) (*http.Response, error) { return nil, boom }, "not sent: boom",
		},
		"a byte taken": {func(r *http.Request) (*http.Response, error) {
			_, _ = io.ReadFull(r.Body, make([]byte, 1))
			return nil, boom
		}, "failed: boom"},
		"a copy taken": {func(r *http.Request) (*http.Response, error) {
			body, err := r.GetBody()
			if err == nil {
				_, _ = io.ReadAll(body)
			}
			return nil, boom
		}, "failed: boom"},
		"taken and late": {func(r *http.Request) (*http.Response, error) {
			_, _ = io.ReadAll(r.Body)
			<-r.Context().Done()
			return nil, boom
		}, "timeout: context deadline exceeded"},
		"given up": {func(r *http.Request) (*http.Response, error) {
			return nil, boom
		}, "canceled: context canceled"},
	} {
		r := relay{base: "http://127.0.0.1:1", transport: tt.rt}
		ctx, cancel := context.WithCancel(t.Context())
		if strings.HasPrefix(tt.want, "timeout") {
			ctx, cancel = context.WithTimeout(t.Context(), 1)
		} else if strings.HasPrefix(tt.want, "canceled") {
			cancel()
		}
		got := string(r.answer(ctx, []byte("http://127.0.0.1:1/\nA: b\n\n[]"), 10))
		cancel()
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
