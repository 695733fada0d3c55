package bloomtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
)

// ErrCut is the error of a request that a Wire loses.
var ErrCut = errors.New("lost")

// A Wire is a transport whose requests and replies a test may hold back, keep for
// later, or lose.
type Wire struct {
	Next upstash.Transport

	mu   sync.Mutex
	seen int
	next []*Held
	down bool
}

// NewWire makes a Wire over HTTP, until the end of the test.
func NewWire(t *testing.T) *Wire {
	next := httptransport.New(nil)
	t.Cleanup(func() { _ = next.Close() })
	return &Wire{Next: next}
}

// Held is a request that a test holds back, from when it is Here until it is let
// go, by nil, or lost, by an error. If it has run, its reply is.
type Held struct {
	Here chan bool
	Free chan error

	wire    *Wire
	matches func(n int, body string) bool
	ran     bool
	kept    bool // it is lost, and may arrive later
	request *upstash.Request
}

func (w *Wire) hold(ran, kept bool, matches func(n int, body string) bool) *Held {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := &Held{Here: make(chan bool), Free: make(chan error, 1), wire: w, matches: matches, ran: ran, kept: kept}
	w.next = append(w.next, h)
	return h
}

// Hold holds back the next request with a command, after those that are to be held
// before it: its reply if it is to have run.
func (w *Wire) Hold(command string, ran bool) *Held {
	return w.hold(ran, false, func(_ int, body string) bool { return strings.Contains(body, `"`+command) })
}

// HoldReply holds back the reply to the n-th request of all.
func (w *Wire) HoldReply(n int) *Held {
	return w.hold(true, false, func(i int, _ string) bool { return i == n })
}

// Keep loses the next request with one of the words, until it is to arrive.
func (w *Wire) Keep(words ...string) *Held {
	return w.hold(false, true, func(_ int, body string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(body, word) })
	})
}

// Arrive has a kept request run.
func (h *Held) Arrive(t testing.TB) {
	t.Helper()
	if h.request == nil {
		t.Fatal("no request was kept")
	}
	var resp upstash.Response
	err := h.wire.Next.RoundTrip(context.Background(), h.request, &resp)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("the late request: %v, %s, want status 200", err, resp.Body)
	}
}

// Cut loses all requests that are not held, or no more.
func (w *Wire) Cut(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
}

// take returns what holds a request back, if anything does.
func (w *Wire) take(req *upstash.Request) (h *Held, down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen++
	if len(w.next) == 0 || !w.next[0].matches(w.seen, string(req.Body)) {
		return nil, w.down
	}
	h, w.next = w.next[0], w.next[1:]
	if h.kept {
		r := *req
		r.Body, r.Header = slices.Clone(req.Body), slices.Clone(req.Header)
		h.request = &r
	}
	return h, w.down
}

// RoundTrip passes a request on to Next, or not.
func (w *Wire) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	h, down := w.take(req)
	switch {
	case h == nil && down, h != nil && h.kept:
		return ErrCut
	case h == nil:
		return w.Next.RoundTrip(ctx, req, resp)
	case h.ran:
		if err := w.Next.RoundTrip(ctx, req, resp); err != nil {
			return err
		}
	}
	close(h.Here)
	select {
	case err := <-h.Free:
		if err != nil || h.ran {
			return err
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return w.Next.RoundTrip(ctx, req, resp)
}
