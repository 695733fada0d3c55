package bloom_test

import (
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// An opened handle does not know the Capacity, and so does not say that the
// filter is over it. A configured one of the same filter does.
func TestOpenedHandleDoesNotKnowTheCapacity(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c := t.Context(), s.Client()
	cfg := bloom.WindowConfig{Capacity: 100, FPRate: 0.01, Span: time.Hour, ExpireIdle: true}
	items := numbered("item", 1000)

	configured := handle(t, c, small())
	if r, err := configured.Load(ctx, mails(0, 2000)); err != nil || !r.OverCapacity {
		t.Fatalf("Load: over capacity %t, %v, want true", r.OverCapacity, err)
	}
	opened, err := bloom.Open(ctx, c, key)
	if err != nil {
		t.Fatal(err)
	}
	for f, over := range map[*bloom.Filter]bool{configured: true, opened: false} {
		st, err := f.Stats(ctx)
		if err != nil || st.OverCapacity() != over || (st.Capacity != 0) != over || st.Items < 1900 {
			t.Errorf("Stats: %+v, %v, want about 2,000 items, and over capacity %t", st, err, over)
		}
		if r, err := f.Load(ctx, mails(0, 1)); err != nil || r.OverCapacity != over {
			t.Errorf("Load: over capacity %t, %v, want %t", r.OverCapacity, err, over)
		}
	}

	do(t, s, "DEL", key)
	made := window(t, c, cfg)
	if _, err := made.AddAll(ctx, items); err != nil {
		t.Fatal(err)
	}
	reader, err := bloom.OpenWindow(ctx, c, key)
	if err != nil {
		t.Fatal(err)
	}
	for w, over := range map[*bloom.Window]bool{made: true, reader: false} {
		if st, err := w.Stats(ctx); err != nil || st.OverCapacity() != over || (st.Capacity != 0) != over {
			t.Errorf("Stats of the window: %+v, %v, want over capacity %t", st, err, over)
		}
	}
}
