package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// newServerClock makes a clock of a server, which TIME returns, and of its
// clients.
func newServerClock() *clock { return &clock{now: time.Unix(1_800_000_000, 0)} }

// A timed transport answers TIME from a clock, and records all requests. before
// and after, if set, are called around every other request, and can return an
// error in place of its answer; errTooMany is a 429. time is called before TIME.
type timed struct {
	next   upstash.Transport
	clock  *clock
	before func(body string) error
	after  func(body string) error
	time   func() error
	// refuseTime refuses TIME for good.
	refuseTime bool

	mu       sync.Mutex
	requests []string
}

func (w *timed) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	body := string(req.Body)
	w.mu.Lock()
	w.requests = append(w.requests, body)
	w.mu.Unlock()
	if body == `["TIME"]` {
		if w.time != nil {
			return w.time()
		}
		if w.refuseTime {
			resp.StatusCode, resp.Body = 400, []byte(`{"error":"NOPERM this user has no permissions to run the 'time' command"}`)
			return nil
		}
		resp.StatusCode = 200
		resp.Body = fmt.Appendf(nil, `{"result":["%d","0"]}`, w.clock.Now().Unix())
		return nil
	}
	if w.before != nil {
		err := w.before(body)
		if err == errTooMany {
			resp.StatusCode, resp.Body = 429, []byte(`{"error":"ERR too many requests"}`)
			return nil
		}
		if err != nil {
			return err
		}
	}
	err := w.next.RoundTrip(ctx, req, resp)
	if err == nil && w.after != nil {
		err = w.after(body)
	}
	return err
}

var errTooMany = errors.New("too many requests")

// sent returns the number of requests since its last call.
func (w *timed) sent() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.requests)
	w.requests = nil
	return n
}

// timedClient makes a client that lives by clock, as its server does.
func timedClient(t *testing.T, s *upstashtest.Server, clock *clock, opts ...upstash.Option,
) (*upstash.Client, *timed) {
	t.Helper()
	w := &timed{next: overHTTP(t), clock: clock}
	start := clock.Now()
	opts = append([]upstash.Option{
		upstash.WithTransport(w), upstash.WithBackoff(0, 0),
		door.WithClock(clock.Now, func() time.Duration { return clock.Now().Sub(start) }).(upstash.Option),
	}, opts...)
	return s.Client(opts...), w
}

// day is a window of a day. A pane lasts 86,405 s.
func day() bloom.WindowConfig {
	return bloom.WindowConfig{Capacity: 1000, FPRate: 1e-6, Span: 24 * time.Hour}
}

const dayPane = 86_405 * time.Second

func window(t *testing.T, c *upstash.Client, cfg bloom.WindowConfig) *bloom.Window {
	t.Helper()
	return windowAt(t, c, key, cfg)
}

// If the clock is set back, nothing is forgotten, unless by a sixteenth of the
// cycle. That is shortest with the shortest panes, of 12 s.
func TestWindowSetBack(t *testing.T) {
	for back, found := range map[time.Duration]bool{145 * 24 * time.Hour: true, 146 * 24 * time.Hour: false} {
		clock := newServerClock()
		c, _ := timedClient(t, upstashtest.NewServer(t), clock)
		w := window(t, c, bloom.WindowConfig{Capacity: 100, FPRate: 1e-6, Span: 40 * time.Second, Panes: 4})
		add(t, w, "a", true)
		clock.pass(-back)
		for range 7 {
			clock.pass(12 * time.Second)
			noError(t, errorOf(w.Add(t.Context(), "tick")))
		}
		exists(t, w, "a", found)
	}
}

// An item is found for at least a Span after its last Add, and forgotten after
// three panes.
func TestWindowForgets(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		c, requests := timedClient(t, s, clock)
		w := window(t, c, day())
		add(t, w, "a", true)
		if n := requests.sent(); n != 2 { // TIME and the Add
			t.Errorf("%d requests of the first Add, want 2", n)
		}
		add(t, w, "a", false)
		if n := requests.sent(); n != 1 {
			t.Errorf("%d requests of an Add, want 1", n)
		}
		clock.pass(24 * time.Hour)
		exists(t, w, "a", true)
		exists(t, w, "b", false)
		for range 5 { // others keep the window turning
			clock.pass(dayPane)
			noError(t, errorOf(w.Add(t.Context(), "tick")))
		}
		exists(t, w, "a", false)
		exists(t, w, "tick", true)
		add(t, w, "a", true)
	})
}

// An Add of a seen item renews it.
func TestWindowRenews(t *testing.T) {
	clock := newServerClock()
	c, _ := timedClient(t, upstashtest.NewServer(t), clock)
	w := window(t, c, day())
	add(t, w, "a", true)
	for range 10 {
		clock.pass(23 * time.Hour)
		add(t, w, "a", false)
	}
}

// A reader forgets even without a writer, however long the pause.
func TestWindowForgetsWithoutWriters(t *testing.T) {
	short := day()
	short.Span = 10 * time.Second
	// 5,592,405 times three panes are a whole cycle of epochs, 7.4 years.
	for _, passed := range []int{3, 4, 5, 100, 1 << 20, 3 << 20, 3*5_592_405 + 4, 2*3*5_592_405 + 3} {
		clock := newServerClock()
		s := upstashtest.NewServer(t)
		c, _ := timedClient(t, s, clock)
		w := window(t, c, short)
		add(t, w, "a", true)
		clock.pass(time.Duration(passed) * 15 * time.Second)
		reader, _ := timedClient(t, s, clock)
		exists(t, window(t, reader, short), "a", false)
		add(t, w, "a", true)
		add(t, w, "a", false)
		exists(t, w, "a", true)
	}
}

// If many clients add an item at the start of an epoch, one is told "new".
func TestWindowTellsOneNew(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		for round := range 6 {
			var wait sync.WaitGroup
			var mu sync.Mutex
			isNew := 0
			for range 8 {
				c, _ := timedClient(t, s, clock)
				w := window(t, c, day())
				wait.Go(func() {
					added, err := w.Add(t.Context(), fmt.Sprint("item ", round))
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					if added {
						isNew++
					}
				})
			}
			wait.Wait()
			if isNew != 1 {
				t.Errorf("round %d: %d were told new, want 1", round, isNew)
			}
			clock.pass(dayPane * time.Duration(1+round))
		}
	})
}

// The first Add after a long pause sends TIME, the Add, a turn and the Add
// again.
func TestWindowAfterAPause(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		c, requests := timedClient(t, s, clock)
		add(t, window(t, c, day()), "a", true)
		clock.pass(dayPane)
		requests.sent()
		add(t, window(t, c, day()), "b", true)
		if n := requests.sent(); n != 3 { // TIME again after ten minutes, the Add, a turn
			t.Errorf("%d requests of an Add in the next epoch, want 3", n)
		}
		clock.pass(7 * dayPane)
		add(t, window(t, c, day()), "a", true)
		if n := requests.sent(); n != 4 {
			t.Errorf("%d requests of an Add after a pause, want 4", n)
		}
	})
}

func TestWindowBatches(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		c, requests := timedClient(t, s, clock)
		cfg := day()
		cfg.Panes = 2
		w := batched(window(t, c, cfg), 20_000, 0)
		items := numbered("item", 300)
		added, err := w.AddAll(t.Context(), append(items, items[:10]...))
		if err != nil || count(added) != 300 {
			t.Fatalf("%d new, want 300: %v", count(added), err)
		}
		if n := requests.sent(); n < 5 {
			t.Errorf("%d requests, want several", n)
		}
		clock.pass(12 * time.Hour)
		found, err := w.ExistsAll(t.Context(), append(numbered("other", 50), items...))
		if err != nil || count(found) != 300 || count(found[:50]) != 0 {
			t.Fatalf("%d found, want 300, and none of the first 50: %v", count(found), err)
		}
	})
}

// A MismatchError names the field that differs from the stored window's.
func TestWindowMismatch(t *testing.T) {
	made, half, idle, more := day(), day(), day(), day()
	half.Span = 12 * time.Hour
	idle.ExpireIdle = true
	more.Panes, more.FPRate = 2, 1.5e-6 // two panes of the same size
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx := t.Context()
		c, _ := timedClient(t, s, newServerClock())
		create(t, window(t, c, made), true)
		create(t, window(t, c, made), false)
		before := stored(t, s)
		for field, cfg := range map[string]bloom.WindowConfig{"Span": half, "ExpireIdle": idle, "Panes": more} {
			other := window(t, c, cfg)
			for name, err := range map[string]error{
				"Exists": errorOf(other.Exists(ctx, "a")), "Create": errorOf(other.Create(ctx)),
				"Add": errorOf(other.Add(ctx, "a")),
			} {
				if m, is := errors.AsType[*bloom.MismatchError](err); !is || m.Field != field {
					t.Errorf("%s with another %s: %v, want a mismatch of it", name, field, err)
				}
			}
			if cfg.ExpireIdle {
				continue
			}
			cfg.MustExist = true
			do(t, s, "SET", key, before)
			if _, err := window(t, c, cfg).Add(ctx, "x"); err == nil || stored(t, s) != before {
				t.Errorf("an Add with MustExist and another %s: %v", field, err)
			}
		}
	})
}

func TestWindowMustExist(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		c, _ := timedClient(t, s, clock)
		cfg := day()
		cfg.MustExist = true
		w := window(t, c, cfg)
		wantError(t, errorOf(w.Add(t.Context(), "a")), bloom.ErrNotFound)
		create(t, w, true)
		add(t, w, "a", true)
		add(t, w, "a", false)
		for range 6 {
			clock.pass(dayPane)
			add(t, w, "b"+clock.Now().String(), true)
		}
		add(t, w, "a", true)
	})
}

// With ExpireIdle a missing window is an empty one.
func TestWindowExpireIdle(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		c, _ := timedClient(t, s, clock)
		cfg := day()
		cfg.ExpireIdle = true
		w := window(t, c, cfg)
		exists(t, w, "a", false)
		add(t, w, "a", true)
		wantTTL(t, s, 4*dayPane)
		do(t, s, "PEXPIRE", key, "1000000")
		clock.pass(dayPane)
		add(t, w, "b", true)
		wantTTL(t, s, 4*dayPane)
	})
}

// If a token may not run TIME, it can read but not write.
func TestWindowWithoutTime(t *testing.T) {
	s, clock := upstashtest.NewServer(t), newServerClock()
	c, _ := timedClient(t, s, clock)
	add(t, window(t, c, day()), "a", true)
	before := stored(t, s)
	s.DenyFunc(func(command []string) bool { return command[0] == "TIME" })
	denied := window(t, s.Client(), day())
	exists(t, denied, "a", true)
	exists(t, denied, "b", false)
	_, err := denied.Add(t.Context(), "b")
	if !errors.Is(err, bloom.ErrNoClock) || !upstash.SafeToRetry(err) || stored(t, s) != before {
		t.Errorf("Add without TIME: %v, want ErrNoClock, safe to retry, and nothing written", err)
	}
}

// midday returns a server whose clock stands in the midst of a pane of day.
func midday(t *testing.T) *upstashtest.Server {
	s := upstashtest.NewServer(t)
	s.FastForward(dayPane*3/2 - time.Duration(time.Now().UnixNano())%dayPane)
	return s
}

// A window with ExpireIdle expires four panes after its last turn. One look-up a
// pane, by a client that knows the time, turns it every second time, so it stays
// although nothing is added. A read-only client turns nothing, and nor does Stats.
func TestWindowExpiresAfterItsLastTurn(t *testing.T) {
	for _, by := range []string{"Exists", "ExistsAll", "Exists, read-only", "Stats"} {
		s, cfg := midday(t), day()
		cfg.ExpireIdle = true
		add(t, window(t, s.Client(), cfg), "a", true)
		client := s.Client()
		if by == "Exists, read-only" {
			client = s.ReadOnlyClient()
		}
		w, stays := window(t, client, cfg), by == "Exists" || by == "ExistsAll"
		for day := 1; day <= 40; day++ {
			s.FastForward(dayPane)
			there := stays || day < 4
			noError(t, errorOf(client.ServerTime(t.Context())))
			var err error
			switch by {
			case "ExistsAll":
				_, err = w.ExistsAll(t.Context(), []string{"b", "c"})
			case "Stats":
				_, err = w.Stats(t.Context())
			default:
				_, err = w.Exists(t.Context(), "b")
			}
			if err != nil && (there || !errors.Is(err, bloom.ErrNotFound)) {
				t.Fatalf("%s on day %d: %v", by, day, err)
			}
			if _, err := w.Stats(t.Context()); (err == nil) != there {
				t.Fatalf("%s on day %d: Stats ends with %v, want a window: %v", by, day, err, there)
			}
			if turned := day%2 == 0; stays && turned {
				wantTTL(t, s, 4*dayPane)
			}
		}
	}
}

// While the token may not run PEXPIRE, each write of a window with ExpireIdle says so,
// and not the first one of an epoch alone: the window would expire while it is used.
func TestWindowIdleTTLRefused(t *testing.T) {
	addr := testenv.Redis(t)
	s, cfg := upstashtest.NewServer(t, upstashtest.WithRedis(addr)), day()
	cfg.ExpireIdle = true
	w := window(t, s.Client(patient), cfg)
	add(t, w, "a", true)
	do(t, s, "BITFIELD", key, "INCRBY", "u53", "128", "-3") // as if it was made three epochs ago
	do(t, s, "PEXPIRE", key, "1000000")
	testenv.UsersMay(t, addr, "-pexpire")
	for _, item := range []string{"b", "c"} {
		if _, err := w.Add(t.Context(), item); err == nil {
			t.Errorf("Add of %q: no error, and the window expires in %v ms", item, do(t, s, "PTTL", key))
		}
	}
	testenv.UsersMay(t, addr, "+pexpire")
	mustAdd(t, w, "d")
	wantTTL(t, s, 4*dayPane)
}

// An Add that makes a window with ExpireIdle sets its TTL, four commands in a
// request more.
func TestWindowFirstAddCost(t *testing.T) {
	s := midday(t)
	client := s.Client()
	noError(t, errorOf(client.ServerTime(t.Context())))
	cfg := day()
	for _, first := range []struct {
		idle             bool
		requests, billed int64
	}{{false, 1, 1}, {true, 2, 5}} {
		cfg.ExpireIdle = first.idle
		w := window(t, client, cfg)
		one := func() error { return errorOf(w.Add(t.Context(), "a")) }
		two := func() error { return errorOf(w.AddAll(t.Context(), []string{"a", "b"})) }
		s.FlushAll()
		bloomtest.Costs(t, s, "the first Add", first.requests, first.billed, one)
		bloomtest.Costs(t, s, "the second Add", 1, 1, one)
		s.FlushAll()
		bloomtest.Costs(t, s, "the first AddAll", first.requests, first.billed, two)
		bloomtest.Costs(t, s, "the second AddAll", 1, 1, two)
	}
}

func TestWindowStats(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		c, requests := timedClient(t, s, clock)
		cfg := bloom.WindowConfig{Capacity: 1000, FPRate: 0.01, Span: 24 * time.Hour, Seed: 7}
		w := window(t, c, cfg)
		wantError(t, errorOf(w.Stats(t.Context())), bloom.ErrNotFound)
		mustAdd(t, w, numbered("old", 500)...)
		clock.pass(dayPane)
		mustAdd(t, w, numbered("new", 900)...)
		requests.sent()
		st, err := w.Stats(t.Context())
		if err != nil || requests.sent() != 1 {
			t.Fatalf("Stats: %v, want no error and one request", err)
		}
		if len(st.Parts) != 3 || math.Abs(float64(st.Parts[1].Items)-900) > 40 ||
			math.Abs(float64(st.Parts[2].Items)-500) > 25 || st.Parts[0].Items != 0 {
			t.Errorf("panes %+v, want about 0, 900 and 500 items", st.Parts)
		}
		if st.PaneSpan != dayPane || st.Span != 24*time.Hour || st.Capacity != 1000 ||
			st.FPRate > 0.01 || st.FPRate < 0.009 ||
			!st.Seeded || st.OverCapacity() || st.TTL != 0 || st.LiveFPRate <= 0 || st.LiveFPRate > 0.01 {
			t.Errorf("%+v, want a seeded window for 1,000 items at 1 in 100", st)
		}
		text := strings.Split(st.String(), "\n")
		if len(text) != 8 || text[0] != "window           finds an item for 24h, and forgets it within 3d15s" ||
			text[1] != "panes            3 of 24h5s, each "+st.Geometry.String() ||
			!strings.HasPrefix(text[2], "next pane        [") || !strings.HasPrefix(text[3], "newest pane      [") ||
			!strings.HasPrefix(text[4], "pane             [") ||
			text[5] != fmt.Sprintf("items            about %s; one renewed in two panes counts twice", human.Count(st.Items)) ||
			!strings.Contains(text[6], " at capacity") ||
			!strings.HasSuffix(text[7], " bytes, no expiry") {
			t.Errorf("String:\n%v", st)
		}
		for i, p := range st.Parts {
			if want := fmt.Sprintf(" %.1f%%, about %s items", 100*p.Fill, human.Count(p.Items)); !strings.HasSuffix(text[2+i], want) {
				t.Errorf("pane %d is %q, want %q", i, text[2+i], want)
			}
		}
		if st.Capacity = 800; !st.OverCapacity() {
			t.Error("a pane with 900 items for 800 is not over its capacity")
		}
		in, err := bloom.Inspect(t.Context(), c, key)
		if err != nil || in.Kind != bloom.KindWindow || in.MaxParts != 3 || in.Parts != nil || in.Counted() || !in.Seeded || in.Bytes != st.Bytes ||
			in.Geometry.Bits != st.Geometry.Bits || in.Items != 0 || in.Span != st.Span || in.PaneSpan != st.PaneSpan ||
			in.SetBits != st.SetBits || in.OverCapacity() {
			t.Errorf("Inspect: %+v, %v", in, err)
		}
	})
}

func TestOpenWindow(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		c, _ := timedClient(t, s, clock)
		wantError(t, errorOf(bloom.OpenWindow(t.Context(), c, key)), bloom.ErrNotFound)
		cfg := day()
		cfg.Panes, cfg.Seed = 3, 42
		add(t, window(t, c, cfg), "a", true)
		opened, err := bloom.OpenWindow(t.Context(), c, key, bloom.WindowConfig{Seed: 42})
		noError(t, err)
		exists(t, opened, "a", true)
		add(t, opened, "b", true)
		add(t, window(t, c, cfg), "b", false)
		if got, want := fmt.Sprint(opened), fmt.Sprint(window(t, c, cfg)); got != want {
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

// Stats counts the items of the panes that count: one that was renewed counts in
// each, and none after it is forgotten. The newest pane is the one that
// the next Add goes into.
func TestWindowStatsItems(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		clock := newServerClock()
		c, _ := timedClient(t, s, clock)
		w := window(t, c, bloom.WindowConfig{Capacity: 1000, FPRate: 0.01, Span: 24 * time.Hour})
		want := func(when string, items float64, newest int) {
			t.Helper()
			if _, err := c.ServerTime(t.Context()); err != nil {
				t.Fatal(err)
			}
			st, err := w.Stats(t.Context())
			if err != nil || math.Abs(float64(st.Items)-items) > 0.03*items {
				t.Errorf("%s: %d items, %v, want %v", when, st.Items, err, items)
			}
			if got := slices.IndexFunc(st.Parts, func(p bloom.Part) bool { return p.Newest }); got != newest {
				t.Errorf("%s: pane %d of %d is the newest, want %d", when, got, len(st.Parts), newest)
			}
		}
		first := numbered("a", 600)
		mustAdd(t, w, first...)
		want("in the first epoch", 600, 1)
		mustAdd(t, w, first...)
		want("added twice", 600, 1)
		clock.pass(dayPane)
		want("nothing was added in this epoch", 600, 0)
		mustAdd(t, w, first[:400]...)
		want("400 were renewed", 1000, 1)
		mustAdd(t, w, numbered("b", 200)...)
		want("200 are new", 1200, 1)
		clock.pass(dayPane)
		mustAdd(t, w, first[:1]...)
		want("200 are forgotten", 601, 1)
		clock.pass(dayPane)
		want("all but one are forgotten", 1, 0)
		clock.pass(dayPane)
		want("all are forgotten", 0, -1)
	})
}

// A window with an item has false positives, however few.
func TestWindowStatsOfAFewItems(t *testing.T) {
	c, _ := timedClient(t, upstashtest.NewServer(t), newServerClock())
	w := window(t, c, bloom.WindowConfig{Capacity: 100_000, FPRate: 1e-8, Span: time.Hour})
	mustAdd(t, w, "a", "b")
	st, err := w.Stats(t.Context())
	if err != nil || st.LiveFPRate <= 0 || !strings.Contains(st.String(), "less than 1 in a billion now") {
		t.Errorf("%+v, %v", st, err)
	}
}

// The figures of WindowConfig.Capacity: both panes of a Span hold too many items.
func TestWindowOverFilled(t *testing.T) {
	for times, want := range map[int]float64{1: 0.001, 2: 0.04, 5: 0.72} {
		clock := newServerClock()
		c, _ := timedClient(t, upstashtest.NewServer(t), clock)
		w := window(t, c, bloom.WindowConfig{Capacity: 1000, FPRate: 0.001, Span: 24 * time.Hour})
		for _, epoch := range []string{"old", "new"} {
			mustAdd(t, w, numbered(epoch, times*1000)...)
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
