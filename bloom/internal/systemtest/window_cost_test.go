package systemtest

import (
	"errors"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestWindowRequestsAndCommands counts at the server what each call costs, over
// turns and pauses. The steps build on one another. The server's clock is real;
// the client's moves when a step says so.
func TestWindowRequestsAndCommands(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg    bloom.WindowConfig
		expiry int64 // billed commands that set it
	}{
		"one pane":   {bloom.WindowConfig{Panes: 1}, 0},
		"four panes": {bloom.WindowConfig{Panes: 4}, 0},
		"idle":       {bloom.WindowConfig{ExpireIdle: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
				windowCosts(t, s, tt.cfg, 4+tt.expiry, 5+tt.expiry)
			})
		})
	}
}

// midst returns a number of seconds for a pane, with now in its midst. Six of
// them are less than the ten minutes after which a client asks for the time
// again.
func midst(now time.Time) (seconds int64) {
	const shortest, longest = 45, 99
	best := int64(0)
	for n := int64(shortest); n <= longest; n++ {
		at := now.Unix() % n
		if left := min(at, n-at); left > best {
			best, seconds = left, n
		}
	}
	return seconds
}

// windowCosts is the test of one Config. The last arguments are the billed
// commands of Create and of a turn that clears one pane.
func windowCosts(t *testing.T, s *upstashtest.Server, cfg bloom.WindowConfig, creation, turn int64) {
	ctx, start := t.Context(), time.Now()
	panes := int64(max(cfg.Panes, 1))
	pane := time.Duration(midst(start)) * time.Second
	cfg.Capacity, cfg.FPRate, cfg.Span = 1000, 0.01, time.Duration(panes)*pane-5*time.Second
	passed := time.Duration(0)
	client := func() *upstash.Client {
		return s.Client(upstash.WithClock(
			func() time.Time { return start.Add(passed) }, func() time.Duration { return passed },
		))
	}
	c := client()
	handle := func(c *upstash.Client, change func(*bloom.WindowConfig)) *bloom.Window {
		own := cfg
		change(&own)
		w, err := bloom.NewWindow(c, bloomtest.Key, own)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	same := func(*bloom.WindowConfig) {}
	w := handle(c, same)
	strict := w
	strictCost := int64(1)
	if !cfg.ExpireIdle {
		strict, strictCost = handle(c, func(c *bloom.WindowConfig) { c.MustExist = true }), 3
	}
	parts := handle(c, func(c *bloom.WindowConfig) { c.BatchBytes, c.BatchParallel = 1, 1 })

	three, thousand := bloomtest.Numbered("x", 3), bloomtest.Numbered("item", 1000)
	add := func(w *bloom.Window, item string) func() error {
		return func() error { _, err := w.Add(ctx, item); return err }
	}
	addAll := func(w *bloom.Window, items []string) func() error {
		return func() error { _, err := w.AddAll(ctx, items); return err }
	}
	look := func(w *bloom.Window, item string) func() error {
		return func() error { _, err := w.Exists(ctx, item); return err }
	}
	exists := func(w *bloom.Window) func() error { return look(w, "a") }
	existsAll := func(w *bloom.Window) func() error {
		return func() error { _, err := w.ExistsAll(ctx, thousand); return err }
	}
	create := func() error { _, err := w.Create(ctx); return err }
	for _, step := range []struct {
		name             string
		after            time.Duration
		requests, billed int64
		do               func() error
	}{
		{"Exists, no window", 0, 1, 1, func() error {
			if _, err := w.Exists(ctx, "a"); !errors.Is(err, bloom.ErrNotFound) && !cfg.ExpireIdle {
				return errors.New("there is one")
			}
			return nil
		}},
		{"Create, and the first TIME", 0, 2, 1 + creation, create},
		{"Create, existing", 0, 1, 2, create},
		{"Add", 0, 1, 1, add(w, "a")},
		{"Add again", 0, 1, 1, add(w, "a")},
		{"Add, MustExist", 0, 1, strictCost, add(strict, "b")},
		{"Exists", 0, 1, 1, exists(w)},
		{"AddAll of 1,000", 0, 1, 1, addAll(w, thousand)},
		{"AddAll, MustExist", 0, 1, strictCost, addAll(strict, three)},
		{"AddAll in three requests", 0, 3, 3, addAll(parts, three)},
		{"ExistsAll of 1,000", 0, 1, 1, existsAll(w)},
		{"none", 0, 0, 0, addAll(w, nil)},
		{"Stats", 0, 1, 3 + panes + 2, func() error { _, err := w.Stats(ctx); return err }},
		{"Add of a new client", 0, 2, 2, add(handle(client(), same), "c")},
		// What it does not find is in no pane. Else it asks for the time.
		{"Exists of a new client, not found", 0, 1, 1, look(handle(client(), same), "never added")},
		{"Exists of a new client", 0, 2, 2, exists(handle(client(), same))},
		{"ExistsAll of a new client", 0, 2, 2, existsAll(handle(client(), same))},
		{"OpenWindow", 0, 1, 2, func() error { _, err := bloom.OpenWindow(ctx, c, bloomtest.Key); return err }},
		{"Rename", 0, 1, 3, func() error { return w.Rename(ctx, "elsewhere") }},
		{"Rename back", 0, 1, 3, func() error {
			moved, err := bloom.OpenWindow(ctx, c, "elsewhere")
			if err != nil {
				return err
			}
			s.ResetStats()
			return moved.Rename(ctx, bloomtest.Key)
		}},

		{"Exists in the next epoch", pane, 1, 1, exists(w)},
		{"the first Add", 0, 2, 1 + turn, add(w, "a")},
		{"the next Add", 0, 1, 1, add(w, "a")},
		{"the first AddAll of the next epoch, in three requests", pane, 4, 3 + turn, addAll(parts, three)},
		// The turn clears two panes, and the Add is sent again.
		{"Add after a pause", 2 * pane, 3, 2 + turn + 1, add(w, "a")},
		{"Add after it", 0, 1, 1, add(w, "a")},
		{"Exists after a pause", 2 * pane, 2, 1 + turn + 1, exists(w)},
		{"Exists after it", 0, 1, 1, exists(w)},
		{"Delete", 0, 1, 3, func() error { _, err := w.Delete(ctx); return err }},
	} {
		passed += step.after
		bloomtest.Costs(t, s, step.name, step.requests, step.billed, step.do)
	}
}
