package bloom_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// filling is a filter in memory that fills up. Its handles are told of each
// write as if it had been answered, and their looks are answered from the
// cells.
type filling struct {
	t      *testing.T
	cfg    bloom.Config
	geo    bloom.Geometry
	client *upstash.Client
	header string

	cells []bool
	ones  int
	items int // added so far, all different
	pos   []uint64

	looks    int // commands that count the cells
	commands int // of all looks and warnings
	first    int // items at the first warning, 0 before it
}

func newFilling(t *testing.T, capacity uint64) *filling {
	t.Helper()
	cfg := bloom.Config{Capacity: capacity, FPRate: 0.01}
	geo, err := cfg.Geometry()
	noError(t, err)
	w := &filling{t: t, geo: geo, header: headerWordOf(cfg), cells: make([]bool, geo.Bits)}
	// A handle with the geometry given takes no time to size it.
	w.cfg = bloom.Config{Capacity: capacity, Bits: geo.Bits, Hashes: geo.Hashes, WarnFill: w.warned}
	w.client, err = upstash.New("https://db.example.com", "token", upstash.WithTransport(w))
	noError(t, err)
	return w
}

func (w *filling) warned(s bloom.Stats) {
	if !s.OverCapacity() || s.SetBits != uint64(w.ones) {
		w.t.Errorf("a warning of %d items in a filter for %d", s.Items, s.Capacity)
	}
	if w.first == 0 {
		w.first = w.items
	}
}

// RoundTrip answers a look, and the Stats after it.
func (w *filling) RoundTrip(_ context.Context, req *upstash.Request, resp *upstash.Response) error {
	resp.StatusCode = 200
	if !strings.HasSuffix(req.URL, "/multi-exec") {
		w.looks, w.commands = w.looks+1, w.commands+1
		resp.Body = fmt.Appendf(resp.Body, `{"result":%d}`, w.ones)
		return nil
	}
	w.commands += 4
	resp.Body = fmt.Appendf(resp.Body, `[{"result":[%s,0,0]},{"result":%d},{"result":%d},{"result":-1}]`,
		w.header, w.ones, w.geo.Bytes(bloom.LayoutHeaded))
	return nil
}

func (w *filling) handle() *bloom.Filter { return handle(w.t, w.client, w.cfg) }

// add adds n new items in one write of f. Each seed has other items.
func (w *filling) add(f *bloom.Filter, seed, n int) {
	newItems, newOnes := 0, 0
	for range n {
		w.items++
		item := strconv.Itoa(seed) + "/" + strconv.Itoa(w.items)
		w.pos = w.geo.Positions(w.pos[:0], item)
		old := 0
		for _, p := range w.pos {
			if w.cells[p] {
				old++
			} else {
				w.cells[p] = true
				w.ones++
			}
		}
		if old < len(w.pos) {
			newItems, newOnes = newItems+1, newOnes+old
		}
	}
	f.Wrote(w.t.Context(), n, newItems, newOnes)
}

// byLot takes the random numbers of the looks from draw.
func byLot(t *testing.T, draw func() float64) {
	old := bloom.SetLot(draw)
	t.Cleanup(func() { bloom.SetLot(old) })
}

// seeded takes them from a fixed seed. alwaysByLot has each write draw a look, and
// neverByLot none: then only answers cause looks.
func seeded(t *testing.T)      { byLot(t, rand.New(rand.NewPCG(1, 2)).Float64) }
func alwaysByLot(t *testing.T) { byLot(t, func() float64 { return 0 }) }
func neverByLot(t *testing.T)  { byLot(t, func() float64 { return 1 }) }

// fleets are the ways to spread writes over handles: of(w)(i) makes write i.
var fleets = []struct {
	name string
	of   func(w *filling) func(i int) *bloom.Filter
}{
	{"1 handle", func(w *filling) func(int) *bloom.Filter {
		f := w.handle()
		return func(int) *bloom.Filter { return f }
	}},
	{"8 handles", func(w *filling) func(int) *bloom.Filter {
		var all [8]*bloom.Filter
		for i := range all {
			all[i] = w.handle()
		}
		return func(i int) *bloom.Filter { return all[i%8] }
	}},
	{"a handle for each write", func(w *filling) func(int) *bloom.Filter {
		return func(int) *bloom.Filter { return w.handle() }
	}},
}

// In 99 of 100 runs the first warning comes in time, whatever the capacity and
// the handles, and not below nine tenths of the capacity. The large filters
// start nearly full, because an earlier look could not lead to a warning.
func TestWarnFillComesInTime(t *testing.T) {
	for _, c := range []struct {
		capacity, from, batch, runs int
		latest                      float64
	}{
		{200, 0, 1, 100, 1.6},
		{1000, 0, 1, 100, 1.3},
		{100_000, 99_000, 1, 100, 1.3},
		// A batch is one write, so overfilling a small filter is noticed later.
		{1000, 0, 10, 100, 2},
		{10_000, 9_000, 10, 100, 1.4},
		{10_000, 9_000, 100, 100, 1.3},
		{100_000, 99_000, 1000, 20, 1.3},
		{100_000, 99_000, 10_000, 20, 1.3},
	} {
		if !testenv.Long() && c.capacity == 100_000 {
			continue
		}
		filled := newFilling(t, uint64(c.capacity))
		if c.from > 0 {
			filled.add(filled.handle(), 0, c.from)
		}
		for _, fleet := range fleets {
			seeded(t)
			late, early, worst := 0, 0, 0
			for run := range c.runs {
				w := newFilling(t, uint64(c.capacity))
				copy(w.cells, filled.cells)
				w.ones, w.items = filled.ones, filled.items
				next := fleet.of(w)
				last := int(c.latest * float64(c.capacity))
				for i := 0; w.first == 0 && w.items < last; i++ {
					w.add(next(i), run+1, c.batch)
				}
				worst = max(worst, w.first)
				switch {
				case w.first == 0:
					late++
				case w.first < c.capacity*9/10:
					early++
				}
			}
			if late+early > c.runs/100 {
				t.Errorf("capacity %d, batches of %d, %s: of %d first warnings %d came late, %d early;"+
					" the latest in time at %d", c.capacity, c.batch, fleet.name, c.runs, late, early, worst)
			}
		}
	}
}

// Up to the first warning, looks cost at most one command for ten writes in a
// filter for 200, and one for a hundred from 10,000 on, batches or not.
func TestWarnFillCost(t *testing.T) {
	for _, c := range []struct {
		capacity, batch, runs int
		share                 float64
	}{
		{200, 1, 300, 0.1},
		{10_000, 1, 3, 0.01},
		{10_000, 10, 20, 0.01},
		{10_000, 100, 50, 0.01},
		{10_000, 1000, 70, 0.01},
		{100_000, 1000, 5, 0.01},
	} {
		if !testenv.Long() && c.runs*c.capacity > 100_000 {
			continue
		}
		for _, fleet := range fleets {
			seeded(t)
			writes, commands := 0, 0
			for run := range c.runs {
				w := newFilling(t, uint64(c.capacity))
				next := fleet.of(w)
				for ; w.items < c.capacity; writes++ {
					w.add(next(writes), run+1, c.batch)
				}
				commands += w.commands
			}
			if float64(commands) > c.share*float64(writes) {
				t.Errorf("capacity %d, batches of %d, %s: %d commands for %d writes",
					c.capacity, c.batch, fleet.name, commands, writes)
			}
		}
	}
}

// The answers of a real server lead to a warning, after single Adds and
// batches, without random looks.
func TestWarnFillFromAnswers(t *testing.T) {
	neverByLot(t)
	for _, batch := range warnBatches() {
		warnings := 0
		f := handle(t, upstashtest.NewServer(t).Client(), bloom.Config{
			Capacity: 4000, FPRate: 0.001, TTL: time.Hour, WarnFill: func(st bloom.Stats) {
				warnings++
				if !st.OverCapacity() || st.Capacity != 4000 || st.TTL <= 0 || st.Bytes == 0 || st.Items > 5200 {
					t.Errorf("batches of %d: a warning with %+v, want over 4,000 items, 5,200 at most, and a TTL", batch, st)
				}
			},
		})
		wantOneWarning(t, f, batch, &warnings)
	}
}

// warnBatches are sizes of batches. The long form adds items one by one too.
func warnBatches() []int {
	if testenv.Long() {
		return []int{1, 10, 1000}
	}
	return []int{10, 1000}
}

// wantOneWarning adds 8,000 items to a filter for 4,000, in batches, and wants one
// warning, and none before it is full.
func wantOneWarning(t *testing.T, f bloomtest.Set, batch int, warnings *int) {
	t.Helper()
	items := numbered("item", 8000)
	for n := 0; n < len(items); n += batch {
		if n == 4000 && *warnings != 0 {
			t.Errorf("batches of %d: a warning within the capacity", batch)
		}
		mustAdd(t, f, items[n:n+batch]...)
	}
	if *warnings != 1 {
		t.Errorf("batches of %d: %d warnings, want one", batch, *warnings)
	}
}

// A batch far beyond the capacity is noticed when it ends.
func TestWarnFillOfOneLargeBatch(t *testing.T) {
	neverByLot(t)
	s := upstashtest.NewServer(t)
	var warned uint64
	f := handle(t, s.Client(), bloom.Config{
		Capacity: 1000, FPRate: 0.01, BatchBytes: 50_000,
		WarnFill: func(st bloom.Stats) { warned = st.Items },
	})
	mustAdd(t, f, numbered("item", 3000)...)
	if warned < 2800 || warned > 3200 {
		t.Errorf("a warning of %d items, want about 3,000", warned)
	}
}

// A saturated filter reports every item as seen. If a handle has found nothing
// new for long, it looks. If its items are truly all seen, it rarely does.
func TestWarnFillOfASaturatedFilter(t *testing.T) {
	neverByLot(t)
	w := newFilling(t, 1000)
	for p := range w.cells {
		w.cells[p] = true
	}
	w.ones = len(w.cells)
	f := w.handle()
	for w.first == 0 && w.items < 1000 {
		w.add(f, 0, 1)
	}
	if w.first == 0 || w.first > 256 {
		t.Errorf("the first warning came after %d writes, want 256", w.first)
	}

	w = newFilling(t, 1000)
	w.add(w.handle(), 0, 500)
	f = w.handle()
	for range 10_000 {
		f.Wrote(t.Context(), 1, 0, 0)
	}
	if w.looks != 5 { // after 256, 512, 1,024, 2,048 and 4,096 writes more
		t.Errorf("%d looks in 10,000 writes of seen items, want 5", w.looks)
	}
}

// WarnFill runs once for a call, on its goroutine, after all of its requests.
func TestWarnFillIsCalledOncePerCall(t *testing.T) {
	alwaysByLot(t)
	s := upstashtest.NewServer(t)
	warnings, requests := 0, int64(0)
	f := handle(t, s.Client(), bloom.Config{
		Capacity: 100, FPRate: 0.01, BatchBytes: 10_000, BatchParallel: 4,
		WarnFill: func(bloom.Stats) { warnings, requests = warnings+1, s.Stats().Requests },
	})
	mustAdd(t, f, numbered("item", 2000)...)
	if n := s.Stats().Requests; warnings != 1 || requests != n || n < 10 {
		t.Errorf("%d warnings, want 1, after %d of %d requests, want all", warnings, requests, n)
	}
}

// While one goroutine is in WarnFill, the writes of others go on. So does an
// Add from within.
func TestWarnFillIsCalledByOneAtATime(t *testing.T) {
	alwaysByLot(t)
	s := upstashtest.NewServer(t)
	var f *bloom.Filter
	var warnings atomic.Int64
	entered, others := make(chan struct{}), make(chan struct{})
	f = handle(t, s.Client(), bloom.Config{
		Capacity: 100, FPRate: 0.01, WarnFill: func(bloom.Stats) {
			if warnings.Add(1) > 1 {
				return
			}
			if _, err := f.Add(t.Context(), "from within"); err != nil {
				t.Error(err)
			}
			close(entered)
			<-others
		},
	})
	done := make(chan error)
	go func() {
		_, err := f.AddAll(t.Context(), numbered("item", 300))
		done <- err
	}()
	<-entered
	for _, item := range numbered("other", 20) {
		noError(t, errorOf(f.Add(t.Context(), item)))
	}
	close(others)
	if err := <-done; err != nil || warnings.Load() != 1 {
		t.Errorf("%d calls, %v, want one", warnings.Load(), err)
	}
}

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
		noError(t, errorOf(f.Delete(ctx)))
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

// The answers to a handle's writes lead to a warning, after single Adds and
// batches, without random looks.
func TestWindowWarnFillFromAnswers(t *testing.T) {
	neverByLot(t)
	for _, batch := range warnBatches() {
		warnings := 0
		c, _ := timedClient(t, upstashtest.NewServer(t), newServerClock())
		w := window(t, c, bloom.WindowConfig{
			Capacity: 4000, FPRate: 0.001, Span: time.Hour, ExpireIdle: true, WarnFill: func(st bloom.WindowStats) {
				warnings++
				if !st.OverCapacity() || st.Capacity != 4000 || st.TTL <= 0 || st.Panes[1].Items > 5200 {
					t.Errorf("batches of %d: a warning with %+v, want over 4,000 items, 5,200 at most, and a TTL", batch, st)
				}
			},
		})
		wantOneWarning(t, w, batch, &warnings)
	}
}

// Each pane may take the Capacity. What counts is the pane that takes the
// items, even if an older pane holds them too.
func TestWindowWarnFillCountsByPane(t *testing.T) {
	neverByLot(t)
	for epochs := range 3 {
		for _, batch := range []int{1, 50} {
			if batch == 1 && epochs != 1 && !testenv.Long() {
				continue
			}
			clock := newServerClock()
			c, requests := timedClient(t, upstashtest.NewServer(t), clock)
			warnings := 0
			w := window(t, c, bloom.WindowConfig{
				Capacity: 1000, FPRate: 0.01, Span: 24 * time.Hour,
				WarnFill: func(bloom.WindowStats) { warnings++ },
			})
			items := numbered("item", 1300)
			for range epochs { // the same items in each of them
				wantAdds(t, w, items[:950], 950)
				clock.pass(dayPane)
			}
			wantAdds(t, w, items[:950], batch)
			if warnings != 0 || requests.count("BITCOUNT") > 1 {
				t.Errorf("epoch %d: %d warnings and %d looks, want none of a window within its capacity, one by chance",
					epochs, warnings, requests.count("BITCOUNT"))
			}
			wantAdds(t, w, items[950:], batch)
			if warnings != 1 {
				t.Errorf("epoch %d, batches of %d: %d warnings of 1,300 items in a pane, want 1",
					epochs, batch, warnings)
			}
		}
	}
}

// Items held by an older pane are seen, and fill the pane that takes them.
func TestWindowWarnFillOfSeenItems(t *testing.T) {
	neverByLot(t)
	clock := newServerClock()
	c, _ := timedClient(t, upstashtest.NewServer(t), clock)
	cfg := bloom.WindowConfig{Capacity: 1000, FPRate: 0.01, Span: 24 * time.Hour}
	items := numbered("item", 1300)
	wantAdds(t, window(t, c, cfg), items, 100)
	clock.pass(dayPane)
	warned := uint64(0)
	cfg.WarnFill = func(st bloom.WindowStats) { warned = max(warned, st.Panes[1].Items) }
	wantAdds(t, window(t, c, cfg), items, 100)
	if warned == 0 {
		t.Error("no warning of a pane with 1,300 items, all of which an older pane holds")
	}
}

// A handle for a single Add looks by chance: in time, and never more often than
// for one write in ten.
func TestWindowWarnFillByLot(t *testing.T) {
	seeded(t)
	late, looks, writes := 0, 0, 0
	runs := 10
	if testenv.Long() {
		runs = 30
	}
	for range runs {
		s := upstashtest.NewServer(t)
		c, requests := timedClient(t, s, newServerClock())
		var warned atomic.Bool
		cfg := bloom.WindowConfig{Capacity: 200, FPRate: 0.01, Span: 24 * time.Hour}
		geo, err := cfg.Geometry()
		noError(t, err)
		cfg.WarnFill = func(st bloom.WindowStats) {
			warned.Store(true)
			if !st.OverCapacity() || st.Geometry != geo {
				t.Errorf("a warning with %+v", st)
			}
		}
		for i, item := range numbered("item", 320) {
			if i == 200 {
				looks, writes = looks+requests.count("BITCOUNT"), writes+i
				if warned.Load() {
					t.Error("a warning within the capacity")
				}
			}
			noError(t, errorOf(window(t, c, cfg).Add(t.Context(), item)))
			if warned.Load() {
				break
			}
		}
		if !warned.Load() {
			late++
		}
	}
	if late > 1 {
		t.Errorf("%d of %d windows for 200 items had no warning before 320", late, runs)
	}
	if looks == 0 || looks > writes/10 {
		t.Errorf("%d looks in %d writes, want some, one in ten writes at most", looks, writes)
	}
}

// A failed look changes nothing of the Add.
func TestWindowWarnFillLookFails(t *testing.T) {
	alwaysByLot(t)
	s := upstashtest.NewServer(t)
	strikeEach(s, "BITCOUNT", upstashtest.CommandError("ERR no look"))
	c, requests := timedClient(t, s, newServerClock())
	w := window(t, c, bloom.WindowConfig{
		Capacity: 1, FPRate: 0.01, Span: 24 * time.Hour,
		WarnFill: func(bloom.WindowStats) { t.Error("a warning without a look") },
	})
	add(t, w, "a", true)
	add(t, w, "a", false)
	if n := requests.count("BITCOUNT"); n != 2 {
		t.Errorf("%d looks after two Adds, want 2", n)
	}
}

// The figures of WindowConfig.Capacity: both panes of a Span hold too many items.
func TestWindowOverFilled(t *testing.T) {
	for times, want := range map[int]float64{1: 0.001, 2: 0.04, 5: 0.72} {
		clock := newServerClock()
		c, _ := timedClient(t, upstashtest.NewServer(t), clock)
		w := window(t, c, bloom.WindowConfig{Capacity: 1000, FPRate: 0.001, Span: 24 * time.Hour})
		for _, epoch := range []string{"old", "new"} {
			wantAdds(t, w, numbered(epoch, times*1000), 1000)
			clock.pass(dayPane)
		}
		clock.pass(-dayPane)
		const others = 8000
		found, err := w.ExistsAll(t.Context(), numbered("other", others))
		noError(t, err)
		sigma := math.Sqrt(want * (1 - want) / others)
		if got := float64(count(found)) / others; math.Abs(got-want) > 5*sigma+0.1*want {
			t.Errorf("at %d times the capacity %.4f are found that were never added, want %v", times, got, want)
		}
	}
}

// wantAdds adds items in batches and takes any answer.
func wantAdds(t *testing.T, w *bloom.Window, items []string, batch int) {
	t.Helper()
	for part := range slices.Chunk(items, batch) {
		mustAdd(t, w, part...)
	}
}

// count returns how many requests of the command were sent.
func (w *timed) count(command string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, body := range w.requests {
		if strings.HasPrefix(body, `["`+command+`"`) {
			n++
		}
	}
	return n
}
