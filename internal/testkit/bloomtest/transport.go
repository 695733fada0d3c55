package bloomtest

import (
	"context"
	"math/big"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// AfterCommand makes a client that calls f once, after the nth attempt at a
// command.
func AfterCommand(s *upstashtest.Server, name string, n int64, f func()) *upstash.Client {
	var seen atomic.Int64
	return Impatient(s, upstash.WithObserver(func(_ context.Context, e upstash.Event) {
		if e.Command == name && seen.Add(1) == n {
			f()
		}
	}))
}

// Watched sees every request before it is sent, and counts how many are under
// way.
type Watched struct {
	Next upstash.Transport
	// Arrive, if set, is called while the request counts as under way.
	Arrive func(underWay int)

	mu       sync.Mutex
	Bodies   []string // of the requests so far
	Most     int      // how many were under way at once
	underWay int
}

// RoundTrip passes a request on to Next.
func (w *Watched) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	w.mu.Lock()
	w.Bodies = append(w.Bodies, string(req.Body))
	w.underWay++
	w.Most = max(w.Most, w.underWay)
	n := w.underWay
	w.mu.Unlock()
	if w.Arrive != nil {
		w.Arrive(n)
	}
	err := w.Next.RoundTrip(ctx, req, resp)
	w.mu.Lock()
	w.underWay--
	w.mu.Unlock()
	return err
}

// Watch makes a client of s and the Watched of its requests. The client has no
// timeout: on a busy machine a repeated attempt would be one request more.
func Watch(t *testing.T, s *upstashtest.Server) (*upstash.Client, *Watched) {
	t.Helper()
	next := httptransport.New(nil)
	t.Cleanup(func() { _ = next.Close() })
	w := &Watched{Next: next}
	return s.Client(upstash.WithTransport(w), upstash.WithTimeout(0)), w
}

// answers is a transport without a network. It returns its bodies in turn, and
// then always the last one.
type answers struct {
	mu     sync.Mutex
	bodies []string
}

func (a *answers) RoundTrip(_ context.Context, _ *upstash.Request, resp *upstash.Response) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	resp.StatusCode = 200
	resp.Body = append(resp.Body, a.bodies[0]...)
	if len(a.bodies) > 1 {
		a.bodies = a.bodies[1:]
	}
	return nil
}

// Canned makes a client that gets these answers in turn, with status 200, and
// then always the last one.
func Canned(t *testing.T, bodies ...string) *upstash.Client {
	t.Helper()
	c, _ := CannedWatched(t, bodies...)
	return c
}

// CannedWatched is Canned. The Watched sees the requests.
func CannedWatched(t *testing.T, bodies ...string) (*upstash.Client, *Watched) {
	t.Helper()
	w := &Watched{Next: &answers{bodies: bodies}}
	c, err := upstash.New("https://db.example.com", "token", upstash.WithTransport(w), upstash.WithRetry(0))
	if err != nil {
		t.Fatal(err)
	}
	return c, w
}

// HeaderWordOf returns the header of a filter in decimal, as BITFIELD does.
func HeaderWordOf(cfg bloom.Config) string {
	g, err := cfg.Geometry()
	if err != nil {
		panic(err)
	}
	word := new(big.Int).SetBytes([]byte(HeaderOf(bloom.KindFilter, g)[:8]))
	return word.Rsh(word, 11).String()
}

// Operations returns how often op, one of GET, SET and INCRBY, occurs in a
// BITFIELD.
func Operations(body, op string) int { return strings.Count(body, `"`+op+`"`) }
