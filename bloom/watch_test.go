package bloom_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A handle that lives notices an overfull filter from its own answers, with
// single Adds and with batches, before it is a fifth beyond its capacity, and
// rarely looks before.
func TestWarnFillNoticesOverCapacity(t *testing.T) {
	for _, batch := range []int{1, 10, 1000} {
		s := upstashtest.NewServer(t)
		var warned atomic.Uint64
		cfg := bloom.Config{Capacity: 4000, FPRate: 0.001, WarnFill: func(st bloom.Stats) {
			if !st.OverCapacity() {
				t.Errorf("a warning of %d items in a filter for %d", st.Items, st.Capacity)
			}
			warned.CompareAndSwap(0, st.Items)
		}}
		f := handle(t, s.Client(), cfg)
		items := numbered("item", 8000)
		for n := 0; n < len(items); n += batch {
			if n == 4000 {
				if warned.Load() != 0 {
					t.Errorf("batches of %d: a warning within the capacity", batch)
				}
				// A look is four commands; ten are far more than chance brings.
				writes := float64(n/batch) + 1
				if more := float64(s.Stats().Commands) - writes; more > 40 {
					t.Errorf("batches of %d: %v commands more for %v writes", batch, more, writes)
				}
			}
			if _, err := f.AddAll(t.Context(), items[n:n+batch]); err != nil {
				t.Fatal(err)
			}
		}
		if got := warned.Load(); got == 0 || got > 4000*13/10 && batch < 1000 {
			t.Errorf("batches of %d: the first warning came at %d items", batch, got)
		}
	}
}

// At its capacity a filter is healthy, and chance makes its answers look fuller
// now and then: that costs less than a command in a thousand. Counted beyond the
// client, with as much room as chance may take: 16,000 writes draw two looks by
// lot.
func TestWarnFillCost(t *testing.T) {
	const capacity, writes = 400_000, 16_000
	cfg := bloom.Config{Capacity: capacity, FPRate: 0.01, WarnFill: func(st bloom.Stats) {
		t.Errorf("a warning of %d items in a filter for %d", st.Items, st.Capacity)
	}}
	geo, err := cfg.Geometry()
	if err != nil {
		t.Fatal(err)
	}
	db := &oneFilter{header: headerWordOf(cfg), cells: make([]bool, geo.Bits)}
	var pos []uint64
	for _, item := range numbered("old", capacity-writes) {
		pos = geo.Positions(pos[:0], item)
		for _, p := range pos {
			db.set(p)
		}
	}
	c, err := upstash.New("https://db.example.com", "token", upstash.WithTransport(db))
	if err != nil {
		t.Fatal(err)
	}
	f := handle(t, c, cfg)
	for _, item := range numbered("new", writes) {
		if _, err := f.Add(t.Context(), item); err != nil {
			t.Fatal(err)
		}
	}
	if db.writes != writes || db.looks > 10 {
		t.Errorf("%d looks for %d writes, of %d", db.looks, db.writes, writes)
	}
	// The filter is as full as it should be for this.
	if st, err := f.Stats(t.Context()); err != nil || st.Items < capacity*99/100 || st.Items > capacity*101/100 {
		t.Errorf("%d items, %v, want about %d", st.Items, err, capacity)
	}
}

// oneFilter is a transport to a database of one filter with a header, which
// knows Add and Stats. The embedded server copies the string with each Add.
type oneFilter struct {
	header        string
	cells         []bool
	ones          int
	writes, looks int
}

func (o *oneFilter) set(p uint64) (old int) {
	if o.cells[p] {
		return 1
	}
	o.cells[p] = true
	o.ones++
	return 0
}

func (o *oneFilter) RoundTrip(_ context.Context, req *upstash.Request, resp *upstash.Response) error {
	resp.StatusCode = 200
	offsets := strings.Split(string(req.Body), `"SET","u1","`)[1:]
	if len(offsets) == 0 {
		o.looks++
		resp.Body = fmt.Appendf(resp.Body, `[{"result":[%s]},{"result":%d},{"result":%d},{"result":-1}]`,
			o.header, o.ones, 16+(len(o.cells)+7)/8)
		return nil
	}
	o.writes++
	resp.Body = fmt.Appendf(resp.Body, `{"result":[null,%s,null`, o.header)
	for _, rest := range offsets {
		offset, _, _ := strings.Cut(rest, `"`)
		p, err := strconv.ParseUint(offset, 10, 64)
		if err != nil {
			return err
		}
		resp.Body = fmt.Appendf(resp.Body, ",%d", o.set(p-192))
	}
	resp.Body = append(resp.Body, "]}"...)
	return nil
}

// A filter over its capacity leads to about one warning in 8,192 writes, not to
// one with each.
func TestWarnFillDoesNotRepeatItself(t *testing.T) {
	s := upstashtest.NewServer(t)
	warnings := 0
	cfg := bloom.Config{Capacity: 100, FPRate: 0.001, WarnFill: func(bloom.Stats) { warnings++ }}
	f := handle(t, s.Client(), cfg)
	for _, item := range numbered("item", 3000) {
		if _, err := f.Add(t.Context(), item); err != nil {
			t.Fatal(err)
		}
	}
	if warnings == 0 || warnings > 8 {
		t.Errorf("%d warnings in 3,000 writes", warnings)
	}
}
