package bloom_test

import (
	"errors"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// midday returns a server whose clock stands in the midst of a pane of day.
func midday(t *testing.T) *upstashtest.Server {
	s := upstashtest.NewServer(t)
	s.FastForward(dayPane*3/2 - time.Duration(time.Now().UnixNano())%dayPane)
	return s
}

// A window with ExpireIdle expires four panes after its last turn. One look-up a
// pane, by a client that knows the time, turns it every second time, so it stays
// although nothing is added. A read-only client turns nothing.
func TestWindowExpiresAfterItsLastTurn(t *testing.T) {
	ctx := t.Context()
	for name, c := range map[string]struct {
		client func(*upstashtest.Server) *upstash.Client
		look   func(w *bloom.Window) error
		stays  bool
	}{
		"Exists": {
			func(s *upstashtest.Server) *upstash.Client { return s.Client() },
			func(w *bloom.Window) error { return errorOf(w.Exists(ctx, "b")) }, true,
		},
		"ExistsAll": {
			func(s *upstashtest.Server) *upstash.Client { return s.Client() },
			func(w *bloom.Window) error { return errorOf(w.ExistsAll(ctx, []string{"b", "c"})) }, true,
		},
		"Exists, read-only": {
			func(s *upstashtest.Server) *upstash.Client { return s.ReadOnlyClient() },
			func(w *bloom.Window) error { return errorOf(w.Exists(ctx, "b")) }, false,
		},
		"Stats": {
			func(s *upstashtest.Server) *upstash.Client { return s.Client() },
			func(w *bloom.Window) error { return errorOf(w.Stats(ctx)) }, false,
		},
	} {
		s, cfg := midday(t), day()
		cfg.ExpireIdle = true
		add(t, window(t, s.Client(), cfg), "a", true)
		client := c.client(s)
		w := window(t, client, cfg)
		for day := 1; day <= 40; day++ {
			s.FastForward(dayPane)
			there := c.stays || day < 4
			noError(t, errorOf(client.ServerTime(ctx)))
			if err := c.look(w); err != nil && (there || !errors.Is(err, bloom.ErrNotFound)) {
				t.Fatalf("%s on day %d: %v", name, day, err)
			}
			if _, err := w.Stats(ctx); (err == nil) != there {
				t.Fatalf("%s on day %d: Stats ends with %v, want a window: %v", name, day, err, there)
			}
			if turned := day%2 == 0; c.stays && turned {
				wantTTL(t, s, 4*dayPane)
			}
		}
	}
}

// An Add that makes a window with ExpireIdle sets its TTL, four commands in a
// request more.
func TestWindowFirstAddCost(t *testing.T) {
	for _, c := range []struct {
		idle             bool
		requests, billed int64
	}{{false, 1, 1}, {true, 2, 5}} {
		s := midday(t)
		client := s.Client()
		noError(t, errorOf(client.ServerTime(t.Context())))
		cfg := day()
		cfg.ExpireIdle = c.idle
		for name, add := range map[string]func(w *bloom.Window) error{
			"Add":    func(w *bloom.Window) error { return errorOf(w.Add(t.Context(), "a")) },
			"AddAll": func(w *bloom.Window) error { return errorOf(w.AddAll(t.Context(), []string{"a", "b"})) },
		} {
			s.FlushAll()
			w := window(t, client, cfg)
			for i, want := range [][2]int64{{c.requests, c.billed}, {1, 1}} {
				s.ResetStats()
				noError(t, add(w))
				if n := s.Stats(); n.Requests != want[0] || n.Billed != want[1] {
					t.Errorf("ExpireIdle %v, %s number %d: %d requests and %d commands, want %v", c.idle, name, i+1,
						n.Requests, n.Billed, want)
				}
			}
		}
	}
}
