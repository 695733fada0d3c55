package bloom_test

import (
	"context"
	"math/big"
	"strings"
	"sync"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// watched sees every request on its way out, and how many are under way at
// once.
type watched struct {
	next upstash.Transport
	// arrive, if set, is called while the request counts as under way.
	arrive func(underWay int)

	mu             sync.Mutex
	bodies         []string
	underWay, most int
}

func (w *watched) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	w.mu.Lock()
	w.bodies = append(w.bodies, string(req.Body))
	w.underWay++
	w.most = max(w.most, w.underWay)
	n := w.underWay
	w.mu.Unlock()
	if w.arrive != nil {
		w.arrive(n)
	}
	err := w.next.RoundTrip(ctx, req, resp)
	w.mu.Lock()
	w.underWay--
	w.mu.Unlock()
	return err
}

// watch makes a client of s whose requests are seen.
func watch(t *testing.T, s *upstashtest.Server) (*upstash.Client, *watched) {
	t.Helper()
	next := httptransport.New(nil)
	t.Cleanup(func() { _ = next.Close() })
	w := &watched{next: next}
	return s.Client(upstash.WithTransport(w)), w
}

// answers is a transport without a network: it returns its bodies in turn, and
// the last one from then on.
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

// canned makes a client that always gets these answers, with status 200.
func canned(t *testing.T, bodies ...string) *upstash.Client {
	t.Helper()
	c, _ := cannedWatched(t, bodies...)
	return c
}

func cannedWatched(t *testing.T, bodies ...string) (*upstash.Client, *watched) {
	t.Helper()
	w := &watched{next: &answers{bodies: bodies}}
	c, err := upstash.New("https://db.example.com", "token", upstash.WithTransport(w), upstash.WithRetry(0))
	if err != nil {
		t.Fatal(err)
	}
	return c, w
}

// headerWordOf is the header of a filter as the decimal number that BITFIELD
// returns.
func headerWordOf(cfg bloom.Config) string {
	g, err := cfg.Geometry()
	if err != nil {
		panic(err)
	}
	word := new(big.Int).SetBytes([]byte(headerOf(0, 1, g)[:8]))
	return word.Rsh(word, 11).String()
}

// operations is how many times a BITFIELD says GET, SET or INCRBY.
func operations(body, op string) int { return strings.Count(body, `"`+op+`"`) }
