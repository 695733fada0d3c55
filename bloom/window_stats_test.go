package bloom_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestWindowStats(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		c, requests := timedClient(t, s, clock)
		cfg := bloom.WindowConfig{Capacity: 1000, FPRate: 0.01, Span: 24 * time.Hour, Seed: 7}
		w := window(t, c, cfg)
		if _, err := w.Stats(t.Context()); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("Stats of no window: %v, want ErrNotFound", err)
		}
		mustAdd(t, w, numbered("old", 500)...)
		clock.pass(dayPane)
		mustAdd(t, w, numbered("new", 900)...)
		requests.sent()
		st, err := w.Stats(t.Context())
		if err != nil || requests.sent() != 1 {
			t.Fatalf("Stats: %v, want no error and one request", err)
		}
		if len(st.Panes) != 3 || math.Abs(float64(st.Panes[1].Items)-900) > 40 ||
			math.Abs(float64(st.Panes[2].Items)-500) > 25 || st.Panes[0].Items != 0 {
			t.Errorf("panes %+v, want about 0, 900 and 500 items", st.Panes)
		}
		if st.PaneSpan != dayPane || st.Span != 24*time.Hour || st.Capacity != 1000 ||
			st.FPRate > 0.01 || st.FPRate < 0.009 ||
			!st.Seeded || st.OverCapacity() || st.TTL != 0 || st.LiveFPRate <= 0 || st.LiveFPRate > 0.01 {
			t.Errorf("%+v, want a seeded window for 1,000 items at 1 in 100", st)
		}
		text := strings.Split(st.String(), "\n")
		if len(text) != 7 || text[0] != "window           finds an item for 24h, and forgets it within 3d15s" ||
			text[1] != "panes            3 of 24h5s, the next to be filled first, each "+st.Geometry.String() ||
			!strings.HasPrefix(text[3], "pane             [") || !strings.Contains(text[5], " at capacity") ||
			!strings.HasSuffix(text[6], " bytes, no expiry") {
			t.Errorf("String:\n%v", st)
		}
		for i, p := range st.Panes {
			if want := fmt.Sprintf(" %.1f%%, about %s items", 100*p.Fill, human.Count(p.Items)); !strings.HasSuffix(text[2+i], want) {
				t.Errorf("pane %d is %q, want %q", i, text[2+i], want)
			}
		}
		if st.Capacity = 800; !st.OverCapacity() {
			t.Error("a pane with 900 items for 800 is not over its capacity")
		}
		in, err := bloom.Inspect(t.Context(), c, key)
		if err != nil || in.Kind != bloom.KindWindow || in.Parts != 3 || !in.Seeded || in.Bytes != st.Bytes ||
			in.Geometry.Bits != st.Geometry.Bits || in.Items != 0 {
			t.Errorf("Inspect: %+v, %v", in, err)
		}
	})
}

func TestOpenWindow(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		c, _ := timedClient(t, s, clock)
		if _, err := bloom.OpenWindow(t.Context(), c, key); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("OpenWindow of no window: %v, want ErrNotFound", err)
		}
		cfg := day()
		cfg.Panes, cfg.Seed = 3, 42
		add(t, window(t, c, cfg), "a", true)
		opened, err := bloom.OpenWindow(t.Context(), c, key, bloom.WindowConfig{Seed: 42})
		noError(t, err)
		exists(t, opened, "a", true)
		add(t, opened, "b", true)
		add(t, window(t, c, cfg), "b", false)
		if got, want := opened.String(), window(t, c, cfg).String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		var m *bloom.MismatchError
		var bad *bloom.ConfigError
		if _, err := bloom.OpenWindow(t.Context(), c, key, bloom.WindowConfig{Seed: 1}); !errors.As(err, &m) || !m.OtherSeed {
			t.Errorf("OpenWindow with another seed: %v, want a mismatch of seeds", err)
		}
		if _, err := bloom.Open(t.Context(), c, key, bloom.Config{Seed: 42}); !errors.As(err, &m) ||
			m.GotKind != bloom.KindWindow {
			t.Errorf("Open: %v, want a MismatchError of a window", err)
		}
		do(t, s, "DEL", key)
		cfg.ExpireIdle = true
		add(t, window(t, c, cfg), "a", true)
		if _, err := bloom.OpenWindow(t.Context(), c, key, bloom.WindowConfig{Seed: 42, MustExist: true}); !errors.As(err, &bad) {
			t.Errorf("MustExist with a window that an Add makes again: %v, want a ConfigError", err)
		}
		do(t, s, "DEL", key)
		noError(t, errorOf(handle(t, c, small()).Add(t.Context(), "a")))
		if _, err := bloom.OpenWindow(t.Context(), c, key); !errors.As(err, &m) || m.WantKind != bloom.KindWindow {
			t.Errorf("OpenWindow of a filter: %v, want a mismatch of kinds", err)
		}
	})
}

// A window with an item has false positives, however few.
func TestWindowStatsOfAFewItems(t *testing.T) {
	s := upstashtest.NewServer(t)
	w := window(t, s.Client(), bloom.WindowConfig{Capacity: 100_000, FPRate: 1e-8, Span: time.Hour})
	mustAdd(t, w, "a", "b")
	st, err := w.Stats(t.Context())
	if err != nil || st.LiveFPRate <= 0 || !strings.Contains(st.String(), "less than 1 in a billion now") {
		t.Errorf("%+v, %v", st, err)
	}
}
