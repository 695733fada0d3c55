package bloom_test

import (
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Load and Merge report when they overfill a filter, be it new or not. They do
// not count bits behind its last cell.
func TestLoadOverCapacity(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		warned := uint64(0)
		cfg := small()
		cfg.WarnFill = func(st bloom.Stats) { warned = st.Items }
		f := handle(t, c, cfg)
		const within, over = false, true // its capacity
		load := func(from, to int, want bool) {
			t.Helper()
			warned = 0
			r, err := f.Load(ctx, mails(from, to))
			if err != nil || r.OverCapacity != want || (warned != 0) != want {
				t.Errorf("Load of %d to %d: over %t, warned of %d, %v; want %t",
					from, to, r.OverCapacity, warned, err, want)
			}
		}
		load(0, 900, within)
		do(t, s, "SETRANGE", key, "1400", strings.Repeat("x", 400))
		load(900, 950, within)
		load(950, 2000, over)
		if warned < 1900 || warned > 2100 {
			t.Errorf("a warning of %d items, want about 2,000", warned)
		}
		if _, err := f.Delete(ctx); err != nil {
			t.Fatal(err)
		}
		load(0, 100_000, over)
		r, err := handle(t, c, small()).Merge(ctx, localOf(f, 0, 3000))
		if err != nil || !r.OverCapacity {
			t.Errorf("Merge: over capacity %t, want true: %v", r.OverCapacity, err)
		}
	})
}

// While one goroutine is in WarnFill, the Loads of others do not call it.
func TestLoadWarnsOneAtATime(t *testing.T) {
	s := upstashtest.NewServer(t)
	var f *bloom.Filter
	warnings := 0
	cfg := small()
	cfg.WarnFill = func(bloom.Stats) {
		if warnings++; warnings > 1 {
			return
		}
		if r, err := f.Load(t.Context(), mails(0, 3000)); err != nil || !r.OverCapacity {
			t.Errorf("a Load within WarnFill: over capacity %t, %v, want true", r.OverCapacity, err)
		}
	}
	f = handle(t, s.Client(), cfg)
	for n := range 2 {
		if _, err := f.Load(t.Context(), mails(0, 2000)); err != nil || warnings != 1 {
			t.Errorf("Load %d: %d warnings, %v, want 1", n, warnings, err)
		}
		warnings = 0
	}
}
