package systemtest

import (
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A turn is a script of 4 billed commands, 5 with ExpireIdle, and one for each
// begun MiB of each pane that it clears. If it clears several, the Add is sent
// again.
func TestWindowTurnCost(t *testing.T) {
	const pane = 24*time.Hour + 5*time.Second
	for _, c := range []struct {
		capacity uint64
		idle     bool
		panes    time.Duration // passed since the last write
		want     int64
	}{
		{1000, false, 0, 1},
		{1000, false, 1, 1 + 4 + 1},
		{1000, true, 1, 1 + 5 + 1},
		{1000, false, 2, 2 + 4 + 2},
		{700_000, false, 1, 1 + 4 + 2}, // of 1.4 MiB each
		{700_000, false, 2, 2 + 4 + 2*2},
	} {
		s := upstashtest.NewServer(t)
		s.FastForward(pane*3/2 - time.Duration(time.Now().UnixNano())%pane) // the midst of a pane
		client := s.Client()
		w, err := bloom.NewWindow(client, "w", bloom.WindowConfig{
			Capacity: c.capacity, FPRate: 0.001, Span: 24 * time.Hour, Panes: 1, ExpireIdle: c.idle,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.FastForward(c.panes * pane)
		if _, err := client.ServerTime(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.ResetStats()
		if _, err := w.Add(t.Context(), "item"); err != nil {
			t.Fatal(err)
		}
		if n := s.Stats(); n.Billed != c.want {
			t.Errorf("%+v: %d commands, want %d", c, n.Billed, c.want)
		}
	}
}
