package bloom_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestStats(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx := t.Context()
		cfg := bloom.Config{Capacity: 5000, FPRate: 0.01, TTL: 26 * time.Hour}
		f := handle(t, s.Client(patient), cfg)
		wantError(t, errorOf(f.Stats(ctx)), bloom.ErrNotFound)
		create(t, f, true)
		mustAdd(t, f, numbered("item", 2500)...)
		got, err := f.Stats(ctx)
		noError(t, err)
		setBits := uint64(do(t, s, "BITCOUNT", key, "24", "-1").(int64))
		if got.TTL <= 25*time.Hour || got.TTL > cfg.TTL {
			t.Errorf("TTL %v", got.TTL)
		}
		got.TTL = cfg.TTL
		want := bloom.Stats{
			Geometry: f.Geometry(), Bytes: 6742,
			SetBits: setBits, Fill: float64(setBits) / 53_742,
			Items:    uint64(math.Round(f.Geometry().EstimateItems(setBits))),
			Capacity: 5000, FPRate: f.Geometry().FalsePositiveRate(5000),
			LiveFPRate: f.Geometry().LiveFalsePositiveRate(setBits), TTL: cfg.TTL,
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("\n%#v, want\n%#v", got, want)
		}
		if n, err := f.Cardinality(ctx); err != nil || n != got.Items || n < 2450 || n > 2550 {
			t.Errorf("Cardinality = %d, %v, want %d, near 2,500", n, err, got.Items)
		}
		const text = `filter           53,742 bits (6.6 KiB), k=4, blocked
fill             [###.................] 17.0%
items            about 2,499 of 5,000
false positives  1 in 1,022 now, 1 in 100 at capacity
stored           6,742 bytes, expires in 26h`
		if got.String() != text {
			t.Errorf("\n%v, want\n%v", got, text)
		}
	})
}

// Without a Config the string says the Capacity, unless the rate is above 1 in 4:
// by the geometry alone, a filter for 10,000 items at 1 in 2 looks like one for
// 3,047.
func TestOverCapacityOfAnOpenedFilter(t *testing.T) {
	for _, p := range []float64{0.5, 0.05, 0.02, 0.01} {
		if p < 0.5 && p > 0.01 && !testenv.Long() {
			continue
		}
		s := upstashtest.NewServer(t)
		f := handle(t, s.Client(), bloom.Config{Capacity: 10_000, FPRate: p})
		for _, n := range []int{9_000, 20_000} {
			mustAdd(t, f, numbered("item", n)...)
			known, err := f.Stats(t.Context())
			if err != nil || known.OverCapacity() != (n > 10_000) {
				t.Errorf("p=%v, %d items: over capacity %t, %v", p, n, known.OverCapacity(), err)
			}
			opened, err := bloom.Open(t.Context(), s.Client(), key)
			noError(t, err)
			ofOpened, err := opened.Stats(t.Context())
			noError(t, err)
			inspected, err := bloom.Inspect(t.Context(), s.Client(), key)
			noError(t, err)
			for _, st := range []bloom.Stats{ofOpened, inspected} {
				want := math.Round(float64(st.Capacity)/100) * 100 // within half a percent
				says := want == 10_000 && st.FPRate > 0.98*p && st.FPRate < 1.02*p
				if p == 0.5 {
					says = st.Capacity == 0 && st.FPRate == 0
				}
				if !says || st.OverCapacity() != (known.OverCapacity() && p < 0.5) ||
					st.Items != known.Items || st.LiveFPRate != known.LiveFPRate {
					t.Errorf("p=%v, %d items: %+v", p, n, st)
				}
			}
		}
	}
}

// What Stats says of the whole follows from its Parts, of each type that has some.
// Inspect counts none of them, so a full Window and a full Scalable are not over
// their capacity for it.
func TestStatsSumTheirParts(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, clock := t.Context(), newServerClock()
	c, _ := timedClient(t, s, clock, patient)
	w := windowAt(t, c, "window", bloom.WindowConfig{Capacity: 300, FPRate: 0.01, Span: 24 * time.Hour})
	mustAdd(t, w, numbered("old", 100)...)
	clock.pass(dayPane)
	mustAdd(t, w, numbered("item", 2000)...)
	grows := scalableAt(t, c, "scalable", bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01, MaxBytes: 10_000})
	mustAdd(t, grows, numbered("item", 6000)...)
	spread := sharded(t, bloom.ShardedConfig{Capacity: 1000, FPRate: 0.01, Shards: 3}, c)
	create(t, spread, true)
	mustAdd(t, spread, numbered("item", 2000)...)
	for name, tt := range map[string]struct {
		of interface {
			Stats(ctx context.Context) (bloom.Stats, error)
		}
		parts, most int
	}{"window": {w, 3, 3}, "scalable": {grows, 2, 2}, "sharded": {spread, 3, 3}} {
		st, err := tt.of.Stats(ctx)
		noError(t, err)
		var sum bloom.Part
		over := false
		for _, p := range st.Parts {
			sum.Bits, sum.SetBits, sum.Items = sum.Bits+p.Bits, sum.SetBits+p.SetBits, sum.Items+p.Items
			over = over || (bloom.Stats{Items: p.Items, Capacity: st.Capacity, Saturated: p.Saturated}).OverCapacity()
			if p.Capacity == 0 || p.Fill != float64(p.SetBits)/float64(p.Bits) || p.Bytes < p.Bits/8 {
				t.Errorf("%s: a part is %+v", name, p)
			}
		}
		if len(st.Parts) != tt.parts || st.MaxParts != tt.most || st.Items != sum.Items || st.SetBits != sum.SetBits ||
			math.Abs(st.Fill-float64(sum.SetBits)/float64(sum.Bits)) > 1e-12 || !st.Counted() || !st.OverCapacity() ||
			name == "window" && !over {
			t.Errorf("%s: %+v, want the sums of its parts, and over its capacity", name, st)
		}
		if name == "sharded" {
			continue
		}
		in, err := bloom.Inspect(ctx, c, name)
		if err != nil || in.Counted() || in.OverCapacity() || in.Fill != 0 || in.Items != 0 || in.LiveFPRate != 0 ||
			in.SetBits != st.SetBits || in.Geometry != st.Geometry {
			t.Errorf("%s: Inspect = %+v, %v, want no counts of parts", name, in, err)
		}
	}
	half := bloom.Stats{Kind: bloom.KindWindow, Items: 1900, Capacity: 1000, Parts: []bloom.Part{{Items: 950}, {Items: 950}}}
	if half.OverCapacity() {
		t.Error("a window is over its capacity, and none of its panes is")
	}
}

// Redis accepts longer TTLs than a time.Duration can express.
func TestStatsOfAnEndlessTTL(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), small())
		add(t, f, "a", true)
		do(t, s, "EXPIRE", key, "100000000000")
		const longest = 292 * 365 * 24 * time.Hour
		if st, err := f.Stats(t.Context()); err != nil || st.TTL < longest {
			t.Errorf("Stats: TTL %v, %v, want more than 292 years", st.TTL, err)
		}
		if st, err := bloom.Inspect(t.Context(), s.Client(), key); err != nil || st.TTL < longest {
			t.Errorf("Inspect: TTL %v, %v, want more than 292 years", st.TTL, err)
		}
	})
}

func TestSaturated(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, layout := range []bloom.Layout{bloom.LayoutHeaded, bloom.LayoutBare} {
			s.FlushAll()
			f := handle(t, s.Client(), bloom.Config{Bits: 64, Hashes: 2, Scheme: bloom.SchemeXXH3, Layout: layout})
			mustAdd(t, f, numbered("item", 1000)...)
			if n, err := f.Cardinality(t.Context()); !errors.Is(err, bloom.ErrSaturated) || n != 0 {
				t.Errorf("%v: Cardinality = %d, %v, want ErrSaturated", layout, n, err)
			}
			st, err := f.Stats(t.Context())
			if err != nil || !st.Saturated || st.SetBits != 64 || st.Fill != 1 ||
				st.LiveFPRate != 1 || st.Items != 133 {
				t.Errorf("%v: Stats = %+v, %v, want a saturated filter of 64 cells", layout, st, err)
			}
			exists(t, f, "never", true)
			add(t, f, "never", false)
		}
	})
}

func TestStatsString(t *testing.T) {
	g := bloom.Geometry{Bits: 1000, Hashes: 7, Scheme: bloom.SchemeXXH3}
	for _, tt := range []struct {
		name string
		in   bloom.Stats
		want string
	}{
		{
			"saturated",
			bloom.Stats{
				Geometry: g, Bytes: 141, SetBits: 1000, Fill: 1, Items: 987, Capacity: 99, FPRate: 0.01,
				LiveFPRate: 1, Saturated: true, TTL: 1500 * time.Millisecond,
			},
			`filter           1,000 bits (125 B), k=7, xxh3
fill             [####################] 100.0%
items            saturated: more than 987 of 99
false positives  100 in 100 now, 1 in 100 at capacity
stored           141 bytes, expires in 1.5s`,
		},
		{
			"nearly empty",
			bloom.Stats{
				Geometry: g, Bytes: 1 << 20, SetBits: 1, Fill: 0.001, Items: 1, Capacity: 1_000_000,
				FPRate: 0.25, LiveFPRate: 1e-21, TTL: 90*time.Minute + 400*time.Millisecond,
			},
			`filter           1,000 bits (125 B), k=7, xxh3
fill             [#...................] 0.1%
items            about 1 of 1,000,000
false positives  less than 1 in a billion now, 1 in 4.0 at capacity
stored           1,048,576 bytes, expires in 1h30m`,
		},
		{
			"a window whose panes were not counted",
			bloom.Stats{
				Geometry: g, Kind: bloom.KindWindow, MaxParts: 3, Bytes: 399, SetBits: 1234,
				PaneSpan: time.Hour + 5*time.Second, Span: time.Hour,
			},
			`window           finds an item for 1h, and forgets it within 3h15s
panes            3 of 1h5s, each 1,000 bits (125 B), k=7, xxh3
cells set        1,234; the Stats of a handle count those of each part
stored           399 bytes, no expiry`,
		},
		{
			"layers that were not counted",
			bloom.Stats{Geometry: g, Kind: bloom.KindScalable, MaxParts: 5, Bytes: 649, SetBits: 6},
			`layers           up to 5, the first 1,000 bits (125 B), k=7, xxh3
cells set        6; the Stats of a handle count those of each part
stored           649 bytes, no expiry`,
		},
		{
			"layers",
			bloom.Stats{
				Geometry: g, Kind: bloom.KindScalable, MaxParts: 5, Bytes: 649, SetBits: 6, Fill: 0.01, Items: 3,
				Capacity: 500, FPRate: 0.01, LiveFPRate: 0.001, Parts: []bloom.Part{
					{Bits: 1000, Fill: 0.05, Items: 2, Capacity: 100}, {Bits: 4000, Items: 1, Capacity: 400},
				},
			},
			`layers           2 of 5
layer            [#...................] 5.0%, about 2 of 100 items, 1,000 bits (125 B), k=7, xxh3
layer            [....................] 0.0%, about 1 of 400 items, 4,000 bits (500 B), k=7, xxh3
items            about 3 of 500
false positives  1 in 1,000 now, 1 in 100 at capacity
stored           649 bytes, no expiry`,
		},
		{
			"shards",
			bloom.Stats{
				Geometry: g, Kind: bloom.KindShard, MaxParts: 2, Bytes: 282, Fill: 0.075, Items: 3, Capacity: 200,
				FPRate: 0.01, LiveFPRate: 0.001, Parts: []bloom.Part{{Fill: 0.05, Items: 2}, {Fill: 0.1, Items: 1}},
			},
			`sharded          2 shards of 1,000 bits (125 B), k=7, xxh3
fill             [##..................] 7.5% on average, 10.0% at most
items            about 3 of 200
false positives  1 in 1,000 now, 1 in 100 at capacity
stored           282 bytes`,
		},
		{
			"a damaged table",
			bloom.Stats{
				Geometry: bloom.Geometry{Bits: 1060, Hashes: 5, Scheme: bloom.SchemeCuckoo}, Kind: bloom.KindCuckoo,
				Bytes: 157, Fill: 1, Items: 300, Capacity: 80, FPRate: 0.01, LiveFPRate: 0.5, Damaged: true,
			},
			`cuckoo           1,060 bits (133 B), k=5, cuckoo
fill             [####################] 100.0%
items            300 of 80
false positives  1 in 2.0 now, 1 in 100 at capacity
stored           157 bytes, no expiry
damaged          something else wrote to the table: members may be denied`,
		},
		{
			"of unknown capacity",
			bloom.Stats{Geometry: g, Bytes: 141, SetBits: 500, Fill: 0.5, Items: 99, LiveFPRate: 0.0078},
			`filter           1,000 bits (125 B), k=7, xxh3
fill             [##########..........] 50.0%
items            about 99
false positives  1 in 128 now
stored           141 bytes, no expiry`,
		},
		{
			"nearly full",
			bloom.Stats{Geometry: g, Fill: 0.9999, Capacity: 1, FPRate: 1, LiveFPRate: 0.99},
			`filter           1,000 bits (125 B), k=7, xxh3
fill             [###################.] 100.0%
items            about 0 of 1
false positives  99 in 100 now, 100 in 100 at capacity
stored           0 bytes, no expiry`,
		},
	} {
		if got := tt.in.String(); got != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.name, got, tt.want)
		}
	}
}

// isAbout reports whether a Capacity is the wanted one as far as the rate in a
// string says it.
func isAbout(got, want uint64) bool { return math.Abs(float64(got)-float64(want)) <= float64(want)/100 }

func TestOpenedWindowKnowsTheCapacity(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx := t.Context()
	c, _ := timedClient(t, s, newServerClock(), patient)
	for _, panes := range []int{1, 3} {
		do(t, s, "DEL", key)
		made := window(t, c, bloom.WindowConfig{Capacity: 1000, FPRate: 0.01, Span: time.Hour, Panes: panes})
		mustAdd(t, made, numbered("item", 5000)...)
		reader, err := bloom.OpenWindow(ctx, c, key)
		noError(t, err)
		st, err := reader.Stats(ctx)
		if err != nil || !st.OverCapacity() || !isAbout(st.Capacity, 1000) || st.FPRate < 0.0095 || st.FPRate > 0.0105 {
			t.Errorf("%d panes: Stats: %+v, %v, want over a capacity of about 1,000 at 0.01", panes, st, err)
		}
		if st, err := bloom.Inspect(ctx, c, key); err != nil || !isAbout(st.Capacity, 1000) || st.FPRate == 0 {
			t.Errorf("%d panes: Inspect: %+v, %v, want a capacity of about 1,000", panes, st, err)
		}
	}
}

// A shard's capacity has its margin, that of the whole has not.
func TestOpenedShardedKnowsTheCapacity(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, clients := t.Context(), []*upstash.Client{s.Client(patient)}
	made := sharded(t, bloom.ShardedConfig{Capacity: 8000, FPRate: 0.01, Shards: 4}, clients...)
	create(t, made, true)
	mustAdd(t, made, numbered("item", 20_000)...)
	opened, err := bloom.OpenSharded(ctx, clients, key)
	noError(t, err)
	st, err := opened.Stats(ctx)
	if err != nil || !isAbout(st.Capacity, 8000) || !st.OverCapacity() || st.FPRate == 0 {
		t.Errorf("Stats: %+v, %v, want over a capacity of about 8,000", st, err)
	}
	margin := uint64(2000 + 3*45)
	if one, err := bloom.Inspect(ctx, clients[0], shardKey(1)); err != nil || !isAbout(one.Capacity, margin) ||
		!isAbout(st.Parts[1].Capacity, margin) {
		t.Errorf("a shard: %+v, %+v, %v, want a capacity of about %d", one, st.Parts[1], err, margin)
	}
}

// codeOf returns the low ten bits of the birth number at a key.
func codeOf(t *testing.T, s *upstashtest.Server, at string) uint64 {
	t.Helper()
	value, _ := do(t, s, "GET", at).(string)
	if len(value) < 24 {
		t.Fatalf("%q holds %d bytes", at, len(value))
	}
	return binary.BigEndian.Uint64([]byte(value[8:])) >> 11 & 1023
}

// Whatever makes a filter writes the rate of its handle.
func TestEveryWriterWritesTheRate(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		says := func(name string, p float64, write func() error) {
			t.Helper()
			s.FlushAll()
			if err := write(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got, want := codeOf(t, s, key), rateOf(p); got != want {
				t.Errorf("%s: the string says rate %d, want %d", name, got, want)
			}
		}
		f := handle(t, c, small())
		moves := map[string]bloomtest.Call{
			"Create":  orders["Create"],
			"AddSeq":  func(ctx context.Context, f *bloom.Filter) error { return errorOf(f.AddSeq(ctx, mails(0, 1))) },
			"Load":    func(ctx context.Context, f *bloom.Filter) error { return errorOf(f.Load(ctx, mails(0, 5))) },
			"Merge":   func(ctx context.Context, f *bloom.Filter) error { return errorOf(f.Merge(ctx, localOf(f, 0, 1))) },
			"Replace": func(ctx context.Context, f *bloom.Filter) error { return f.Replace(ctx, localOf(f, 0, 1)) },
		}
		for name, write := range calls(adds, moves) {
			says(name, small().FPRate, func() error { return write(ctx, f) })
		}
		mirror := newMirror(t, f, bloom.MirrorConfig{})
		says("Mirror.Add", small().FPRate, func() error { return errorOf(mirror.Add(ctx, "a")) })
		w := window(t, c, bloom.WindowConfig{Capacity: 100, FPRate: 0.001, Span: time.Hour, Panes: 2})
		says("Window.Create", 0.001, func() error { return errorOf(w.Create(ctx)) })
		says("Window.Add", 0.001, func() error { return errorOf(w.Add(ctx, "a")) })
		g := scalable(t, c, growing())
		says("Scalable.Add", growing().FPRate, func() error { return errorOf(g.Add(ctx, "a")) })
		k := cuckoo(t, c, table1000())
		says("Cuckoo.Add", table1000().FPRate, func() error { return errorOf(k.Add(ctx, "a")) })

		s.FlushAll()
		create(t, sharded(t, bloom.ShardedConfig{Capacity: 100, FPRate: 0.01, Shards: 2}, c), true)
		if a, b := codeOf(t, s, shardKey(0)), codeOf(t, s, shardKey(1)); a != rateOf(0.01) || b != a {
			t.Errorf("the shards say rates %d and %d, want %d", a, b, rateOf(0.01))
		}
	})
}

// rateOf is the code by the documentation of the format.
func rateOf(p float64) uint64 { return 1 + uint64(math.Round(-32*math.Log2(p))) }

// The rate is set with the birth number and stays. A handle of another rate, or
// of none, is not refused.
func TestRatesAreNotCompared(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c := t.Context(), s.Client()
	cfg := small()
	geo := handle(t, c, cfg).Geometry()
	given := bloom.Config{Bits: geo.Bits, Hashes: geo.Hashes}
	add(t, handle(t, c, given), "a", true)
	add(t, handle(t, c, cfg), "b", true)
	noError(t, errorOf(handle(t, c, cfg).Load(ctx, mails(0, 10))))
	if got := codeOf(t, s, key); got != 0 {
		t.Errorf("the string was made with Bits and Hashes, and says rate %d", got)
	}
	if st, err := bloom.Inspect(ctx, c, key); err != nil || st.Capacity != 0 || st.OverCapacity() {
		t.Errorf("Inspect: %+v, %v, want no Capacity", st, err)
	}

	do(t, s, "DEL", key)
	add(t, handle(t, c, cfg), "a", true)
	add(t, handle(t, c, given), "b", true)
	exists(t, handle(t, c, given), "a", true)
	if st, err := handle(t, c, given).Stats(ctx); err != nil || !isAbout(st.Capacity, cfg.Capacity) {
		t.Errorf("Stats with Bits and Hashes: %+v, %v, want the Capacity that the string says", st, err)
	}
}

// A handle of Open that makes the filter again passes the rate on.
func TestOpenedHandleKeepsTheRate(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c := t.Context(), s.Client()
	add(t, handle(t, c, small()), "a", true)
	opened, err := bloom.Open(ctx, c, key)
	noError(t, err)
	want := codeOf(t, s, key)
	do(t, s, "DEL", key)
	add(t, opened, "a", true)
	if got := codeOf(t, s, key); got != want || got == 0 {
		t.Errorf("the new string says rate %d, want %d", got, want)
	}
}
