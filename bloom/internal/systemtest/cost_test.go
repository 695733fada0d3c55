package systemtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/billing"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// says checks that a page of bloom has a text, or a row of a table without its bars.
func says(t *testing.T, page, text string) {
	t.Helper()
	all, err := os.ReadFile("../../" + page)
	bloomtest.NoError(t, err)
	words := strings.Fields(strings.ReplaceAll(string(all), "|", " "))
	if !strings.Contains(strings.Join(words, " "), " "+text+" ") {
		t.Errorf("%s does not say %q", page, text)
	}
}

// tableCalls are the calls of the table in COSTS.md, in a filter of 1,000,000 items.
var tableCalls = []struct {
	name string
	of   func(f *bloom.Filter, items []string) call
}{
	{"Add", func(f *bloom.Filter, items []string) call { return about(f.Add, items[0]) }},
	{"Exists", func(f *bloom.Filter, items []string) call { return about(f.Exists, items[0]) }},
	{"AddAll, 1,000 items", func(f *bloom.Filter, items []string) call { return about(f.AddAll, items) }},
	{"ExistsAll, 1,000 items", func(f *bloom.Filter, items []string) call { return about(f.ExistsAll, items) }},
	{"Stats", func(f *bloom.Filter, _ []string) call { return bare(f.Stats) }},
}

// fullFilter makes a filter at its capacity of 1,000,000 items. Its bits are
// random, because adding a million items takes long.
func fullFilter(
	tb testing.TB, s *upstashtest.Server, c *upstash.Client, scheme bloom.Scheme, p float64,
) *bloom.Filter {
	tb.Helper()
	s.FlushAll()
	f, err := bloom.New(c, bloomtest.Key, bloom.Config{Capacity: 1_000_000, FPRate: p, Scheme: scheme})
	bloomtest.NoError(tb, err)
	g, r := f.Geometry(), rand.New(rand.NewPCG(1, 2))
	body := make([]byte, (g.Bits+7)/8)
	for i := range body {
		x := r.Uint32()
		body[i] = byte(x)
		if scheme == bloom.SchemeBlocked { // at capacity 5 bits in 16 are set, of the others half
			body[i] &= byte(x>>8) | byte(x>>16)&byte(x>>24)
		}
	}
	bloomtest.NoError(tb, bloomtest.ErrorOf(s.Exec("SET", bloomtest.Key, bloomtest.HeaderOf(bloom.KindFilter, g)+string(body))))
	bloomtest.NoError(tb, bloomtest.ErrorOf(f.AddAll(tb.Context(), bloomtest.Numbered("item", 1000))))
	return f
}

var operation = regexp.MustCompile(`"(GET|SET|INCRBY)"`)

// TestCostTable compares the table in COSTS.md with what a server counts:
// requests, commands, operations of BITFIELD, and bytes.
func TestCostTable(t *testing.T) {
	s := upstashtest.NewServer(t)
	items := bloomtest.Numbered("item", 1000)
	c, w := bloomtest.Watch(t, s)
	for _, p := range []float64{0.01, 0.001} {
		counted := make(map[string][]string) // by call, blocked and then xxh3
		for _, scheme := range []bloom.Scheme{bloom.SchemeBlocked, bloom.SchemeXXH3} {
			f := fullFilter(t, s, c, scheme, p)
			for _, cost := range tableCalls {
				s.ResetStats()
				w.Bodies = nil
				if err := cost.of(f, items)(t.Context()); err != nil {
					t.Fatalf("%s: %v", cost.name, err)
				}
				n, operations := s.Stats(), len(operation.FindAllString(w.Bodies[0], -1))
				counted[cost.name] = append(counted[cost.name],
					human.Count(uint64(n.Requests)), human.Count(uint64(n.Commands)), human.Count(uint64(operations)),
					human.Count(uint64(n.BytesIn)), human.Count(uint64(n.BytesOut)))
			}
		}
		for _, cost := range tableCalls {
			row := cost.name
			for i, blocked := range counted[cost.name][:5] {
				if xxh3 := counted[cost.name][5+i]; i > 1 {
					row += " " + blocked + " " + xxh3
				} else if row += " " + blocked; xxh3 != blocked {
					t.Errorf("%s: %s for blocked and %s for xxh3", cost.name, blocked, xxh3)
				}
			}
			says(t, "COSTS.md", row)
		}
	}
}

// A Stats on every scrape costs what COSTS.md says of it.
func TestScrapeCost(t *testing.T) {
	const commands, seconds = 4, 15 // TestRequestsAndCommands counts the commands
	month := billing.Month{Commands: commands * billing.DaysAMonth * 24 * 3600 / seconds}
	total := month.Money(billing.PayAsYouGo()).Total
	says(t, "COSTS.md", fmt.Sprintf("a scrape every 15 s costs $%.2f a month, as", total))
}

// TestSizingTable compares the sizes in doc.go with the geometries.
func TestSizingTable(t *testing.T) {
	for _, n := range []uint64{1_000, 100_000, 1_000_000, 10_000_000, 100_000_000} {
		row := human.Count(n)
		for _, p := range []float64{0.01, 0.001, 1e-6} {
			g, err := bloom.Config{Capacity: n, FPRate: p}.Geometry()
			bloomtest.NoError(t, err)
			size, unit := float64(g.Bytes(bloom.LayoutHeaded))/1e3, "KB"
			if size >= 1000 {
				size, unit = size/1e3, "MB"
			}
			digits := 0
			if size < 10 {
				digits = 1
			}
			row += fmt.Sprintf(" %.*f %s", digits, size, unit)
		}
		says(t, "doc.go", "// "+row+" //")
	}
}

// At 1 in 100 an AddAll sends less than a Load if its items are fewer than a 70th
// of the capacity, and more if they are more.
func TestLoadOrAddAll(t *testing.T) {
	s := upstashtest.NewServer(t)
	for _, capacity := range []int{100_000, 1_000_000} {
		cfg := bloom.Config{Capacity: uint64(capacity), FPRate: 0.01}
		f := bloomtest.HandleAt(t, s.Client(), fmt.Sprint(capacity), cfg)
		bloomtest.Create(t, f, true)
		s.ResetStats()
		bloomtest.NoError(t, bloomtest.ErrorOf(f.Load(t.Context(), bloomtest.Mails(0, 1))))
		load := s.Stats().BytesIn
		for share, less := range map[int]bool{80: true, 60: false} {
			n := capacity / share
			s.ResetStats()
			bloomtest.MustAdd(t, f, bloomtest.Numbered("item", n)...)
			if all := s.Stats().BytesIn; all < load != less {
				t.Errorf("for %d items: AddAll of %d sends %d bytes, and Load %d", capacity, n, all, load)
			}
		}
	}
}

// What an item of a Window or a Scalable takes in a request, in bytes a hash.
func TestBytesAHash(t *testing.T) {
	// The pane of the moment may be the last one, which ends behind 100 MB.
	s := upstashtest.NewServer(t, upstashtest.WithMaxRecord(200<<20))
	items := bloomtest.Numbered("item", 1000)
	var window, scalable costOfHashes
	for _, capacity := range []uint64{1000, 146_628, 1_000_000, 10_000_000} {
		for _, panes := range []int{1, 4} {
			w, err := bloom.NewWindow(s.Client(), fmt.Sprint("window", panes, capacity),
				bloom.WindowConfig{Capacity: capacity, FPRate: 0.01, Span: 24 * time.Hour, Panes: panes})
			bloomtest.NoError(t, err)
			window.take(t, s, w, w.Geometry().Hashes, items)
		}
		l, err := bloom.NewScalable(s.Client(), fmt.Sprint("layers", capacity),
			bloom.ScalableConfig{Capacity: capacity, FPRate: 0.01})
		bloomtest.NoError(t, err)
		scalable.take(t, s, l, l.Geometry().Hashes, items)
	}
	if says := (costOfHashes{add: [2]int{40, 85}, look: [2]int{29, 72}}); !window.isAbout(says) {
		t.Errorf("Window: %+v, and WindowConfig says about %+v", window, says)
	}
	if says := (costOfHashes{add: [2]int{20, 32}, look: [2]int{36, 58}}); !scalable.isAbout(says) {
		t.Errorf("Scalable: %+v, and ScalableConfig says about %+v", scalable, says)
	}
}

// costOfHashes has the fewest bytes a hash, rounded down, and the most, rounded
// up.
type costOfHashes struct{ add, look [2]int }

// isAbout reports whether no end of a range is more than 5 bytes away: offsets in
// the pane of the moment may have a digit more or less.
func (c costOfHashes) isAbout(says costOfHashes) bool {
	near := func(a, b int) bool { return max(a, b)-min(a, b) <= 5 }
	return near(c.add[0], says.add[0]) && near(c.add[1], says.add[1]) &&
		near(c.look[0], says.look[0]) && near(c.look[1], says.look[1])
}

func (c *costOfHashes) take(t *testing.T, s *upstashtest.Server, f bloomtest.Set, hashes int, items []string) {
	t.Helper()
	first, rest := items[:len(items)*9/10], items[len(items)*9/10:]
	if _, err := f.AddAll(t.Context(), first); err != nil { // what is sent once for each filter
		t.Fatal(err)
	}
	for _, call := range []struct {
		of     func(context.Context, []string) ([]bool, error)
		within *[2]int
	}{{f.AddAll, &c.add}, {f.ExistsAll, &c.look}} {
		s.ResetStats()
		bloomtest.NoError(t, bloomtest.ErrorOf(call.of(t.Context(), rest)))
		each := float64(s.Stats().BytesIn) / float64(len(rest)*hashes)
		if low := int(each); call.within[0] == 0 || low < call.within[0] {
			call.within[0] = low
		}
		call.within[1] = max(call.within[1], int(math.Ceil(each)))
	}
}

// BenchmarkCost measures the table's calls over HTTP on loopback. The REST
// server of this process and the Redis behind it are part of the figures.
func BenchmarkCost(b *testing.B) {
	s := upstashtest.NewServer(b, upstashtest.WithRedis(testenv.Redis(b)))
	items := bloomtest.Numbered("item", 1000)
	c := s.Client()
	for _, p := range []float64{0.01, 0.001} {
		for _, cost := range tableCalls {
			for _, scheme := range []bloom.Scheme{bloom.SchemeBlocked, bloom.SchemeXXH3} {
				call, _, _ := strings.Cut(cost.name, ",")
				b.Run(fmt.Sprintf("p=%v/call=%s/scheme=%v", p, call, scheme), func(b *testing.B) {
					f := fullFilter(b, s, c, scheme, p)
					b.ReportAllocs()
					s.ResetStats()
					for b.Loop() {
						if err := cost.of(f, items)(b.Context()); err != nil {
							b.Fatal(err)
						}
					}
					n := s.Stats()
					b.ReportMetric(float64(n.BytesIn)/float64(b.N), "bytes-out/op")
					b.ReportMetric(float64(n.BytesOut)/float64(b.N), "bytes-in/op")
				})
			}
		}
	}
}

// spending returns what checks that a step, whose error this is, cost so many requests
// and billed commands, and begins to count for the next one.
func spending(t *testing.T, s *upstashtest.Server) func(step string, err error, requests, billed int64) {
	return func(step string, err error, requests, billed int64) {
		t.Helper()
		n := s.Stats()
		if err != nil || n.Requests != requests || n.Billed != billed {
			t.Fatalf("%s: %v, %d requests, %d billed commands, want %d, %d", step, err, n.Requests, n.Billed, requests, billed)
		}
		s.ResetStats()
	}
}

// unless returns nil if an error is the expected one.
func unless(want, err error) error {
	if errors.Is(err, want) {
		return nil
	}
	return fmt.Errorf("%w, want %w", err, want)
}

// TestRequestsAndCommands counts at the server what each call costs. Each step
// builds on those before it.
func TestRequestsAndCommands(t *testing.T) {
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c, thousand := t.Context(), s.Client(), bloomtest.Numbered("item", 1000)
		costs := spending(t, s)
		f, err := bloom.New(c, bloomtest.Key, bloomtest.Small())
		costs("New", err, 0, 0)
		costs("Exists, no filter", unless(bloom.ErrNotFound, bloomtest.ErrorOf(f.Exists(ctx, "item-1"))), 1, 1)
		costs("the very first Add", bloomtest.ErrorOf(f.Add(ctx, "item-1")), 1, 1)
		costs("Add", bloomtest.ErrorOf(f.Add(ctx, "item-1")), 1, 1)
		costs("Exists", bloomtest.ErrorOf(f.Exists(ctx, "item-1")), 1, 1)
		costs("AddAll(1000)", bloomtest.ErrorOf(f.AddAll(ctx, thousand)), 1, 1)
		costs("ExistsAll(1000)", bloomtest.ErrorOf(f.ExistsAll(ctx, thousand)), 1, 1)
		costs("Create, existing", bloomtest.ErrorOf(f.Create(ctx)), 1, 2)
		costs("Open", bloomtest.ErrorOf(bloom.Open(ctx, c, bloomtest.Key)), 1, 2)
		costs("Cardinality", bloomtest.ErrorOf(f.Cardinality(ctx)), 1, 2)
		costs("Stats", bloomtest.ErrorOf(f.Stats(ctx)), 1, 4)
		costs("Expire", bloomtest.ErrorOf(f.Expire(ctx, time.Hour)), 1, 4)
		costs("Persist", bloomtest.ErrorOf(f.Persist(ctx)), 1, 4)
		costs("Delete", bloomtest.ErrorOf(f.Delete(ctx)), 1, 3)

		first := bloomtest.Handle(t, c, bloomtest.Expiring(time.Hour))
		costs("the very first Add with a TTL", bloomtest.ErrorOf(first.Add(ctx, "item-1")), 2, 5)
		costs("a later Add with a TTL", bloomtest.ErrorOf(first.Add(ctx, "item-1")), 1, 1)
		costs("a later AddAll with a TTL", bloomtest.ErrorOf(first.AddAll(ctx, thousand)), 1, 1)
		second := bloomtest.Handle(t, c, bloomtest.Expiring(time.Hour))
		costs("the first AddAll of another handle", bloomtest.ErrorOf(second.AddAll(ctx, thousand)), 1, 1)
		costs("its later Add", bloomtest.ErrorOf(second.Add(ctx, "item-1")), 1, 1)
		costs("Delete by another", bloomtest.ErrorOf(f.Delete(ctx)), 1, 3)
		costs("Add, evicted, with a TTL", bloomtest.ErrorOf(second.Add(ctx, "item-1")), 2, 5)
		costs("the Add after it", bloomtest.ErrorOf(second.Add(ctx, "item-1")), 1, 1)
		costs("Rename", second.Rename(ctx, "elsewhere"), 1, 3)
		costs("Create, missing", bloomtest.ErrorOf(f.Create(ctx)), 1, 4)
		costs("Delete", bloomtest.ErrorOf(f.Delete(ctx)), 1, 3)
		costs("Create, missing, with a TTL", bloomtest.ErrorOf(second.Create(ctx)), 1, 5)
		strict := bloomtest.Small()
		strict.MustExist = true
		costs("Add with MustExist", bloomtest.ErrorOf(bloomtest.Handle(t, c, strict).Add(ctx, "a")), 1, 3)
		b, err := bloom.TakeBackup(ctx, c, bloomtest.Key)
		costs("TakeBackup", err, 1, 3)
		costs("Restore", bloomtest.ErrorOf(b.Restore(ctx, c, "restored", 0)), 2, 10)
		half := bloom.WithPartBytes(int(b.Stats().Bytes+1) / 2)
		costs("Restore of two parts", bloomtest.ErrorOf(b.Restore(ctx, c, "of two", 0, half)), 3, 13)
		costs("Restore with a TTL", bloomtest.ErrorOf(b.Restore(ctx, c, "expiring", time.Hour)), 2, 10)
		says(t, "COSTS.md", "`Backup.Restore`, of p parts p + 1 3p + 7")
	})
}

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

// aheadClient makes a client for which so much time has passed since start.
func aheadClient(s *upstashtest.Server, start time.Time, passed *time.Duration, opts ...upstash.Option) *upstash.Client {
	return s.Client(append(opts, door.WithClock(
		func() time.Time { return start.Add(*passed) }, func() time.Duration { return *passed },
	).(upstash.Option))...)
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
	client := func() *upstash.Client { return aheadClient(s, start, &passed) }
	c := client()
	handle := func(c *upstash.Client, change func(*bloom.WindowConfig)) *bloom.Window {
		own := cfg
		change(&own)
		w, err := bloom.NewWindow(c, bloomtest.Key, own)
		bloomtest.NoError(t, err)
		return w
	}
	same := func(*bloom.WindowConfig) {}
	w := handle(c, same)
	strict := w
	strictCost := int64(1)
	if !cfg.ExpireIdle {
		strict, strictCost = handle(c, func(c *bloom.WindowConfig) { c.MustExist = true }), 3
	}
	parts := bloomtest.Batched(handle(c, same), 1, 1)

	three, thousand := bloomtest.Numbered("x", 3), bloomtest.Numbered("item", 1000)
	costs := spending(t, s)
	_, err := w.Exists(ctx, "a")
	if !cfg.ExpireIdle {
		err = unless(bloom.ErrNotFound, err)
	}
	costs("Exists, no window", err, 1, 1)
	costs("Create, and the first TIME", bloomtest.ErrorOf(w.Create(ctx)), 2, 1+creation)
	costs("Create, existing", bloomtest.ErrorOf(w.Create(ctx)), 1, 2)
	costs("Add", bloomtest.ErrorOf(w.Add(ctx, "a")), 1, 1)
	costs("Add again", bloomtest.ErrorOf(w.Add(ctx, "a")), 1, 1)
	costs("Add, MustExist", bloomtest.ErrorOf(strict.Add(ctx, "b")), 1, strictCost)
	costs("Exists", bloomtest.ErrorOf(w.Exists(ctx, "a")), 1, 1)
	costs("AddAll of 1,000", bloomtest.ErrorOf(w.AddAll(ctx, thousand)), 1, 1)
	costs("AddAll, MustExist", bloomtest.ErrorOf(strict.AddAll(ctx, three)), 1, strictCost)
	costs("AddAll in three requests", bloomtest.ErrorOf(parts.AddAll(ctx, three)), 3, 3)
	costs("ExistsAll of 1,000", bloomtest.ErrorOf(w.ExistsAll(ctx, thousand)), 1, 1)
	costs("Stats", bloomtest.ErrorOf(w.Stats(ctx)), 1, 3+panes+2)
	costs("Add of a new client", bloomtest.ErrorOf(handle(client(), same).Add(ctx, "c")), 2, 2)
	// What it does not find is in no pane. Else it asks for the time.
	costs("Exists of a new client, not found", bloomtest.ErrorOf(handle(client(), same).Exists(ctx, "never added")), 1, 1)
	costs("Exists of a new client", bloomtest.ErrorOf(handle(client(), same).Exists(ctx, "a")), 2, 2)
	costs("ExistsAll of a new client", bloomtest.ErrorOf(handle(client(), same).ExistsAll(ctx, thousand)), 2, 2)
	costs("OpenWindow", bloomtest.ErrorOf(bloom.OpenWindow(ctx, c, bloomtest.Key)), 1, 2)
	costs("Rename", w.Rename(ctx, "elsewhere"), 1, 3)
	moved, err := bloom.OpenWindow(ctx, c, "elsewhere")
	costs("OpenWindow of another key", err, 1, 2)
	costs("Rename back", moved.Rename(ctx, bloomtest.Key), 1, 3)

	passed += pane
	costs("Exists in the next epoch", bloomtest.ErrorOf(w.Exists(ctx, "a")), 1, 1)
	costs("the first Add", bloomtest.ErrorOf(w.Add(ctx, "a")), 2, 1+turn)
	costs("the next Add", bloomtest.ErrorOf(w.Add(ctx, "a")), 1, 1)
	passed += pane
	costs("the first AddAll of the next epoch, in three requests", bloomtest.ErrorOf(parts.AddAll(ctx, three)), 4, 3+turn)
	passed += 2 * pane
	// The turn clears two panes, and the Add is sent again.
	costs("Add after a pause", bloomtest.ErrorOf(w.Add(ctx, "a")), 3, 2+turn+1)
	costs("Add after it", bloomtest.ErrorOf(w.Add(ctx, "a")), 1, 1)
	passed += 2 * pane
	costs("Exists after a pause", bloomtest.ErrorOf(w.Exists(ctx, "a")), 2, 1+turn+1)
	costs("Exists after it", bloomtest.ErrorOf(w.Exists(ctx, "a")), 1, 1)
	costs("Delete", bloomtest.ErrorOf(w.Delete(ctx)), 1, 3)
}

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
		bloomtest.NoError(t, err)
		bloomtest.NoError(t, bloomtest.ErrorOf(w.Create(t.Context())))
		s.FastForward(c.panes * pane)
		bloomtest.NoError(t, bloomtest.ErrorOf(client.ServerTime(t.Context())))
		s.ResetStats()
		bloomtest.NoError(t, bloomtest.ErrorOf(w.Add(t.Context(), "item")))
		if n := s.Stats(); n.Billed != c.want {
			t.Errorf("%+v: %d commands, want %d", c, n.Billed, c.want)
		}
	}
}

// A countingRedis counts the commands that run in a Redis, by the Redis's own
// statistics. A command within a script counts too, as it does in a bill.
type countingRedis struct {
	t    *testing.T
	addr string
	*upstashtest.Server
}

func newCountingRedis(t *testing.T) countingRedis {
	addr := testenv.Redis(t)
	return countingRedis{t, addr, upstashtest.NewServer(t, upstashtest.WithRedis(addr))}
}

// notBilled are what the test asks by, and what the REST server of the tests sends
// by itself: it changes the user around a script, and looks after its connections.
var notBilled = []string{"config|resetstat", "info", "quit", "auth", "ping"}

// commands returns how often each command ran during a call.
func (r countingRedis) commands(call func()) (total int, each map[string]int) {
	r.t.Helper()
	testenv.Ask(r.t, r.addr, "CONFIG RESETSTAT")
	call()
	each = map[string]int{}
	for line := range strings.Lines(testenv.Ask(r.t, r.addr, "INFO commandstats")) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok || slices.Contains(notBilled, name) {
			continue
		}
		calls, _, _ := strings.Cut(rest, ",")
		n, err := strconv.Atoi(calls)
		if err != nil {
			r.t.Fatalf("INFO commandstats: %q", line)
		}
		total, each[name] = total+n, n
	}
	return total, each
}

// A Scalable costs what COSTS.md says, counted by Redis, and the server bills what
// Redis counts.
func TestScalableCountedByRedis(t *testing.T) {
	r := newCountingRedis(t)
	c := r.Client(upstash.WithTimeout(0))
	f, err := bloom.NewScalable(c, bloomtest.Key, bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01})
	bloomtest.NoError(t, err)
	add := func(items ...string) func() { return func() { bloomtest.MustAdd(t, f, items...) } }
	thousand := bloomtest.Numbered("item", 1000)
	costs := func(step string, want int, call func()) {
		t.Helper()
		r.ResetStats()
		total, each := r.commands(call)
		if billed := r.Stats().Billed; total != want || billed != int64(total) {
			t.Errorf("%s: Redis counts %d commands, %v, and the server bills %d, want %d", step, total, each, billed, want)
		}
	}
	costs("the first Add", 4, add("a"))
	costs("Add of a new item", 3, add("b"))
	costs("Add of a known item", 2, add("b"))
	costs("AddAll of 1,000, which grows", 5, add(thousand...))
	costs("AddAll of 1,000 known", 3, add(thousand...))
	costs("Exists", 1, func() { bloomtest.Exists(t, f, "a", true) })
	costs("ExistsAll of 1,000", 1, func() { bloomtest.NoError(t, bloomtest.ErrorOf(f.ExistsAll(t.Context(), thousand))) })
}

// An AddAll of 1,000 new items costs 4 to 6 commands in the first layer, as
// COSTS.md says, and more in the later ones.
func TestScalableBatchInEachLayer(t *testing.T) {
	s := upstashtest.NewServer(t)
	for capacity, want := range map[uint64]map[int]int64{ // by batch
		3_000:   {1: 4, 8: 6, 30: 7}, // in the first, the second and the third layer
		10_000:  {1: 5},
		100_000: {1: 6},
	} {
		s.FlushAll()
		f, err := bloom.NewScalable(s.Client(upstash.WithTimeout(0)), bloomtest.Key,
			bloom.ScalableConfig{Capacity: capacity, FPRate: 0.01})
		bloomtest.NoError(t, err)
		for i := range slices.Max(slices.Collect(maps.Keys(want))) + 1 {
			s.ResetStats()
			bloomtest.MustAdd(t, f, bloomtest.Numbered(fmt.Sprint("batch", i), 1000)...)
			if billed := s.Stats().Billed; want[i] != 0 && billed != want[i] {
				t.Errorf("Capacity %d, batch %d: %d commands, want %d", capacity, i, billed, want[i])
			}
		}
	}
}

// If nine items in ten are known, it is cheaper to look first: 1.3 commands an
// item instead of 2.1. Scalable's doc says so.
func TestExistsFirstCountedByRedis(t *testing.T) {
	const n = 500
	for looksFirst, want := range map[bool]float64{false: 2.1, true: 1.3} {
		r := newCountingRedis(t)
		f, err := bloom.NewScalable(r.Client(), bloomtest.Key, bloom.ScalableConfig{Capacity: 1000, FPRate: 1e-8})
		bloomtest.NoError(t, err)
		bloomtest.MustAdd(t, f, bloomtest.Numbered("known", n*9/10)...)
		total, each := r.commands(func() {
			for i := range n {
				item := fmt.Sprint("known-", i*9/10)
				if i%10 == 0 {
					item = fmt.Sprint("new-", i)
				}
				found := false
				if looksFirst {
					found, err = f.Exists(t.Context(), item)
					bloomtest.NoError(t, err)
				}
				if !found {
					bloomtest.NoError(t, bloomtest.ErrorOf(f.Add(t.Context(), item)))
				}
			}
		})
		if got := float64(total) / n; got != want {
			t.Errorf("looks first %t: %v commands an item, %v, want %v", looksFirst, got, each, want)
		}
	}
}

// A BITFIELD is a write to the service, which it bills once for each copy of a global
// database. Only a look-up that ReadsNearest sends to a region is a read, and a script
// that only reads.
func TestBilledWithRegions(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithRegions(upstashtest.Region{Name: "a"}, upstashtest.Region{Name: "b"}))
	cfg := bloom.Config{Capacity: 1000, FPRate: 0.01}
	f := bloomtest.Handle(t, s.Client(), cfg)
	cfg.ReadsNearest = true
	near := bloomtest.Handle(t, s.Client(), cfg)
	bloomtest.Add(t, f, "a", true)
	s.ResetStats()
	costs := spending(t, s)
	costs("Add", bloomtest.ErrorOf(f.Add(t.Context(), "b")), 1, 3)
	costs("Snapshot", bloomtest.ErrorOf(f.Snapshot(t.Context())), 1, 3)
	costs("AddAll", bloomtest.ErrorOf(f.AddAll(t.Context(), []string{"c", "d"})), 1, 3)
	costs("Exists", bloomtest.ErrorOf(f.Exists(t.Context(), "b")), 1, 3)
	costs("Exists with ReadsNearest", bloomtest.ErrorOf(near.Exists(t.Context(), "b")), 1, 1)
}
