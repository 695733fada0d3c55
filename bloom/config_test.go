package bloom

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestConfigAccepts(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		want Geometry
	}{
		{"blocked", Config{Capacity: 10_000, FPRate: 0.01}, Geometry{Bits: 107_484, Hashes: 4}},
		{
			"blocked, seeded with a TTL",
			Config{Capacity: 10_000, FPRate: 0.01, Seed: 42, TTL: time.Millisecond},
			Geometry{Bits: 107_484, Hashes: 4, Seed: 42},
		},
		{"blocked, one item", Config{Capacity: 1, FPRate: 0.999}, Geometry{Bits: 53 * 32, Hashes: 2}},
		{"blocked, rarest", Config{Capacity: 1, FPRate: 1e-9}, Geometry{Bits: 53 * 32, Hashes: 18}},
		{"blocked, explicit", Config{Bits: 53, Hashes: 62}, Geometry{Bits: 53, Hashes: 62}},
		{
			"explicit wins over the size",
			Config{Capacity: 5, FPRate: 0.5, Bits: 106, Hashes: 6},
			Geometry{Bits: 106, Hashes: 6},
		},
		{
			"explicit, below what sizes reach",
			Config{Capacity: 5, FPRate: 1e-12, Bits: 106, Hashes: 6},
			Geometry{Bits: 106, Hashes: 6},
		},
		{
			"blocked, largest",
			Config{Bits: 4_294_967_095, Hashes: 2},
			Geometry{Bits: 4_294_967_095, Hashes: 2},
		},
		{
			"xxh3",
			Config{Capacity: 10_000, FPRate: 0.01, Scheme: SchemeXXH3},
			Geometry{Bits: 95_851, Hashes: 7, Scheme: SchemeXXH3},
		},
		{
			"xxh3, one item",
			Config{Capacity: 1, FPRate: 0.999, Scheme: SchemeXXH3},
			Geometry{Bits: 1, Hashes: 1, Scheme: SchemeXXH3},
		},
		{
			"xxh3, rarest",
			Config{Capacity: 1, FPRate: 1e-18, Scheme: SchemeXXH3},
			Geometry{Bits: 87, Hashes: 60, Scheme: SchemeXXH3},
		},
		{
			"the filter of the article",
			Config{Bits: 192, Hashes: 7, Scheme: SchemeFNV1a, Layout: LayoutBare},
			Geometry{Bits: 192, Hashes: 7, Scheme: SchemeFNV1a},
		},
		{
			"xxh3, largest headed",
			Config{Bits: 1<<32 - 192, Hashes: 63, Scheme: SchemeXXH3},
			Geometry{Bits: 1<<32 - 192, Hashes: 63, Scheme: SchemeXXH3},
		},
		{
			"xxh3, largest bare",
			Config{Bits: 1 << 32, Hashes: 1, Layout: LayoutBare, Scheme: SchemeXXH3},
			Geometry{Bits: 1 << 32, Hashes: 1, Scheme: SchemeXXH3},
		},
		{
			"beyond 100 MB",
			Config{Capacity: 390_000_000, FPRate: 0.01},
			Geometry{Bits: 4_191_280_439, Hashes: 4},
		},
	} {
		if got, err := c.cfg.Geometry(); err != nil || got != c.want {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}

func TestConfigRefuses(t *testing.T) {
	sized := Config{Capacity: 1000, FPRate: 0.01}
	given := Config{Bits: 192, Hashes: 7, Scheme: SchemeXXH3}
	classic := Config{Capacity: 1000, FPRate: 0.01, Scheme: SchemeXXH3}
	with := func(c Config, change func(*Config)) Config { change(&c); return c }
	rate := func(p float64) Config { return Config{Capacity: 1000, FPRate: p} }

	for _, c := range []struct {
		cfg         Config
		field, says string
	}{
		{Config{}, "Capacity", "at least 1"},
		{Config{FPRate: 0.01}, "Capacity", "at least 1"},
		{Config{Capacity: 1000}, "FPRate", "is 0: it must be above 0 and below 1, e.g. 0.01"},
		{rate(1), "FPRate", "is 1:"},
		{rate(1.5), "FPRate", "is 1.5:"},
		{rate(-0.01), "FPRate", "is -0.01:"},
		{rate(math.NaN()), "FPRate", "is NaN:"},
		{rate(math.Inf(1)), "FPRate", "is +Inf:"},
		{rate(1e-10), "FPRate", "SchemeBlocked reaches 1e-9; use that, or SchemeXXH3"},
		{with(classic, func(c *Config) { c.FPRate = 1e-20 }), "FPRate", "use 1e-18 or more"},
		{
			Config{Capacity: 400_000_000, FPRate: 0.01},
			"Capacity", "is 400,000,000, which takes 4,298,749,175 bits at FPRate 0.01, and 4,294,967,095 fit into",
		},
		{with(classic, func(c *Config) { c.Capacity = 450_000_000 }), "Capacity", "several filters, as a Sharded does"},
		{Config{Capacity: 1 << 36, FPRate: 0.9}, "Capacity", "several filters, as a Sharded does"},
		{Config{Capacity: math.MaxUint64, FPRate: 0.01}, "Capacity", "several filters, as a Sharded does"},
		{Config{Hashes: 7}, "Bits", "both or neither"},
		{Config{Bits: 192}, "Hashes", "both or neither"},
		{Config{Bits: 192, Capacity: 10, FPRate: 0.1}, "Hashes", "both or neither"},
		{Config{Bits: 192, Hashes: 4}, "Bits", "such as 159 or 212"},
		{Config{Bits: 52, Hashes: 4}, "Bits", "multiples of 53, from 53 up"},
		{Config{Bits: 95_851, Hashes: 7}, "Bits", "a filter of another scheme needs its Scheme set"},
		{Config{Bits: 4_294_967_148, Hashes: 4}, "Bits", "at most 4294967095"},
		{Config{Bits: 53, Hashes: 7}, "Hashes", "such as 8"},
		{Config{Bits: 53, Hashes: 63}, "Hashes", "such as 62"},
		{Config{Bits: 53, Hashes: 64}, "Hashes", "is 64: it must be from 1 to 63"},
		{with(given, func(c *Config) { c.Hashes = -1 }), "Hashes", "is -1: it must be from 1 to 63"},
		{with(given, func(c *Config) { c.Hashes = 64 }), "Hashes", "is 64: it must be from 1 to 63"},
		{with(given, func(c *Config) { c.Bits = 1<<32 - 191 }), "Bits", "at most 4294967104"},
		{
			with(given, func(c *Config) { c.Bits, c.Layout = 1<<32+1, LayoutBare }),
			"Bits", "at most 4294967296",
		},
		{with(sized, func(c *Config) { c.Layout = LayoutBare }), "Layout", "SchemeBlocked (the default) has no"},
		{with(given, func(c *Config) { c.Layout, c.MustExist = LayoutBare, true }), "MustExist", "no header to check"},
		{with(sized, func(c *Config) { c.Scheme = SchemeCuckoo }), "Scheme", "is cuckoo:"},
		{with(given, func(c *Config) { c.FPRate = math.NaN() }), "FPRate", "is NaN:"},
		{
			with(sized, func(c *Config) { c.Scheme = Scheme(format.Counters4) }),
			"Scheme", "use SchemeBlocked, SchemeXXH3 or SchemeFNV1a",
		},
		{with(sized, func(c *Config) { c.Scheme = 9 }), "Scheme", "is Scheme(9):"},
		{with(sized, func(c *Config) { c.Layout = 2 }), "Layout", "is Layout(2):"},
		{with(sized, func(c *Config) { c.TTL = -time.Second }), "TTL", "is -1s:"},
		{with(sized, func(c *Config) { c.TTL = time.Millisecond - 1 }), "TTL", "at least 1ms"},
		{
			with(sized, func(c *Config) { c.Scheme, c.Seed = SchemeFNV1a, 1 }),
			"Seed", "SchemeFNV1a has none",
		},
	} {
		g, err := c.cfg.Geometry()
		var cerr *ConfigError
		if !errors.As(err, &cerr) {
			t.Errorf("%v: %v, %v, want a ConfigError", c.cfg, g, err)
			continue
		}
		if cerr.Field != c.field || !strings.Contains(cerr.Reason, c.says) {
			t.Errorf("%v: %v, want field %s and %q", c.cfg, err, c.field, c.says)
		}
		if want := "bloom: Config." + c.field + " is "; !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: %q does not begin with %q", c.cfg, err, want)
		}
		if g != (Geometry{}) {
			t.Errorf("%v: a geometry beside an error: %v", c.cfg, g)
		}
	}
}

// String shows every field that is set, but not the seed itself.
func TestConfigString(t *testing.T) {
	for want, cfg := range map[string]Config{
		"bloom.Config{Scheme: blocked, Layout: headed}": {},
		"bloom.Config{Capacity: 9, FPRate: 0.5, Bits: 106, Hashes: 4, Seed: (set), Scheme: xxh3, Layout: bare," +
			" TTL: 1s, MissingIsEmpty: true, MustExist: true," +
			" ReadsNearest: true}": {
			Capacity: 9, FPRate: 0.5, Bits: 106, Hashes: 4, Seed: 5, Scheme: SchemeXXH3, Layout: LayoutBare,
			TTL: time.Second, MissingIsEmpty: true, MustExist: true,
			ReadsNearest: true,
		},
	} {
		if got := fmt.Sprint(cfg); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// A part too large for a string is told in the words of the user's own config.
func TestTooLargeInParts(t *testing.T) {
	for _, c := range []struct {
		cfg  interface{ Geometry() (Geometry, error) }
		want string
	}{
		{
			WindowConfig{Capacity: 1e9, FPRate: 0.01, Span: time.Hour},
			"WindowConfig.Capacity is 1,000,000,000, and at FPRate 0.01 one pane does not fit into",
		},
		{
			WindowConfig{Capacity: 2e8, FPRate: 0.01, Span: time.Hour},
			"WindowConfig.Capacity is 200,000,000, which takes 6,840,432,048 bits in all 3 panes at FPRate 0.01,",
		},
		{
			ScalableConfig{Capacity: 1e9, FPRate: 0.01},
			"ScalableConfig.Capacity is 1,000,000,000, and at FPRate 0.01 the first layer does not fit into",
		},
		{
			ShardedConfig{Capacity: 1e9, FPRate: 0.01, Shards: 2},
			"ShardedConfig.Capacity is 1,000,000,000, and at FPRate 0.01 a shard of 2 does not fit into",
		},
	} {
		if _, err := c.cfg.Geometry(); err == nil || !strings.HasPrefix(err.Error(), "bloom: "+c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

func TestErrorTexts(t *testing.T) {
	for _, err := range []error{ErrNotFound, ErrSaturated, ErrUncertain, ErrNotFilter} {
		if !strings.HasPrefix(err.Error(), "bloom: ") {
			t.Errorf("%q has no prefix \"bloom: \"", err)
		}
	}
	for kind, field := range map[Kind]string{
		KindFilter: " Config.MissingIsEmpty ", KindScalable: " ScalableConfig.MissingIsEmpty ",
		KindWindow: " WindowConfig.ExpireIdle ", KindShard: "or call Create",
	} {
		h := handle{rec: record{kind: kind}}
		if err := h.allowMissing(ErrNotFound); !strings.Contains(err.Error(), field) {
			t.Errorf("%v: %v, want one that names %s", kind, err, field)
		}
	}
}

func TestMismatchError(t *testing.T) {
	want := Geometry{Bits: 95_851, Hashes: 7, Scheme: SchemeXXH3, Seed: 42}
	same := format.Header{Scheme: format.XXH3, Bits: 95_851, Hashes: 7, SeedTag: format.SeedTag(42)}
	changed := func(change func(*format.Header)) format.Header {
		got := same
		change(&got)
		return got
	}
	for _, c := range []struct {
		name      string
		got       format.Header
		gotSeed   uint64
		otherSeed bool
		says      string
	}{
		{
			"bits", changed(func(h *format.Header) { h.Bits = 1000 }), 42, false,
			"bloom: another filter, or other data, is at this key: 1,000 bits (125 B), k=7, xxh3, seeded; this" +
				" handle wants 95,851 bits (11.7 KiB), k=7, xxh3, seeded: use the Config it was" +
				" made with, read it with Open, or use another key",
		},
		{
			"no seed", changed(func(h *format.Header) { h.SeedTag = 0 }), 0, true,
			"bloom: the filter at this key has the same geometry (95,851 bits (11.7 KiB), k=7," +
				" xxh3) but no seed: leave the seed out, or use another key",
		},
		{
			"seed alone", changed(func(h *format.Header) { h.SeedTag ^= 1 }), 0, true,
			"bloom: the filter at this key has the same geometry (95,851 bits (11.7 KiB), k=7," +
				" xxh3) but another seed: use the Config.Seed it was made with, or another key",
		},
		{
			"seed and hashes", changed(func(h *format.Header) { h.SeedTag, h.Hashes = 0, 6 }), 0, true,
			"k=6, xxh3; this handle wants 95,851 bits (11.7 KiB), k=7, xxh3, seeded: the" +
				" seeds differ too: use the Config",
		},
		{
			"scheme", changed(func(h *format.Header) { h.Scheme = format.Counters4 }), 42, false,
			"bloom: another filter, or other data, is at this key: 95,851 counters (46.8 KiB), k=7," +
				" xxh3/4-bit, seeded;",
		},
		{
			"kind", changed(func(h *format.Header) { h.Kind = format.Shard }), 42, false,
			"bloom: a shard of a Sharded is at this key, 95,851 bits (11.7 KiB), k=7, xxh3, seeded, and" +
				" not a plain Filter: use OpenSharded with the key without its :number, or another key",
		},
		{
			"layers", changed(func(h *format.Header) { h.Kind = format.Layers }), 42, false,
			"bloom: a Scalable is at this key, 95,851 bits",
		},
		{
			"window", changed(func(h *format.Header) { h.Kind = format.Window }), 42, false,
			"and not a plain Filter: use OpenWindow, or another key",
		},
		{
			"cuckoo", changed(func(h *format.Header) { h.Kind, h.Scheme = format.Cuckoo, format.Buckets }), 42, false,
			"bloom: a Cuckoo is at this key, 95,851 bits (11.7 KiB), k=7, cuckoo, seeded, and not a plain" +
				" Filter: use OpenCuckoo, or another key",
		},
	} {
		err := error(newMismatchError(KindFilter, want, c.got))
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q, want %q", c.name, err, c.says)
		}
		if m, is := errors.AsType[*MismatchError](err); !is || m.Want != want || m.OtherSeed != c.otherSeed ||
			m.GotKind != Kind(c.got.Kind) || m.Got.Seed != c.gotSeed || m.Got.Bits != c.got.Bits {
			t.Errorf("%s: %+v, want a mismatch of %+v with %+v", c.name, m, want, c.got)
		}
	}
}

func TestInFilter(t *testing.T) {
	other := errors.New("other")
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, true},
		{ErrUncertain, true},
		{&engine.TTLError{Err: other}, true},
		{fmt.Errorf("%w; %w", ErrUncertain, &engine.TTLError{Err: other}), true},
		{ErrNotFound, false},
		{other, false},
		{&BatchError{Items: []ItemState{ItemDone, ItemUncertain}, Err: ErrUncertain}, true},
		// The first failure is harmless, but a later one was not.
		{&BatchError{Items: []ItemState{ItemUncertain, ItemUnknown}, Err: ErrUncertain}, false},
		{&BatchError{Items: []ItemState{ItemDone, ItemNotDone}, Err: other}, false},
	} {
		if got := InFilter(c.err); got != c.want {
			t.Errorf("InFilter(%v) = %v, want %v", c.err, got, c.want)
		}
	}
}

// Remaining are the items that are not done or unknown. Of another batch's items
// it is all: an item too much is harmless, one too few is lost.
func TestRemaining(t *testing.T) {
	e := &BatchError{Items: []ItemState{ItemDone, ItemNotDone, ItemUncertain, ItemUnknown}}
	for _, tt := range []struct{ items, want []string }{
		{[]string{"a", "b", "c", "d"}, []string{"b", "d"}},
		{[]string{"a"}, []string{"a"}},
		{[]string{"a", "b", "c", "d", "e"}, []string{"a", "b", "c", "d", "e"}},
		{nil, nil},
	} {
		if got := e.Remaining(tt.items); !slices.Equal(got, tt.want) {
			t.Errorf("Remaining(%q) = %q, want %q", tt.items, got, tt.want)
		}
	}
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// If the caller's context ends with a cause, the calls of many requests say why,
// as those of one request do.
func TestContextCause(t *testing.T) {
	c := upstashtest.NewServer(t).Client()
	f, err := New(c, "f", Config{Capacity: 1000, FPRate: 0.01})
	noError(t, err)
	s, err := NewSharded([]*upstash.Client{c}, "s", ShardedConfig{Capacity: 1000, FPRate: 0.01, Shards: 2})
	noError(t, err)
	_, err = f.Create(t.Context())
	noError(t, err)
	_, err = s.Create(t.Context())
	noError(t, err)

	reason := errors.New("the file broke off")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	_, err = f.Snapshot(ctx)
	wantCause(t, err, reason)
	for _, n := range []int{1, 10_000} { // Load looks at its context now and then
		for _, load := range []func(context.Context, iter.Seq[string], ...MoveOption) (LoadResult, error){f.Load, s.Load} {
			ctx, cancel := context.WithCancelCause(t.Context())
			r, err := load(ctx, func(yield func(string) bool) {
				cancel(reason)
				for i := 0; i < n && yield(fmt.Sprint(i)); i++ {
				}
			})
			wantCause(t, err, reason)
			if !upstash.SafeToRetry(err) || r.Items == 0 || r.Duration == 0 {
				t.Errorf("Load of %d items: %+v, %v, want what it read and how long, and nothing changed", n, r, err)
			}
		}
	}
}

// wantCause checks that a call was canceled for a reason, and says what was
// interrupted.
func wantCause(t *testing.T, err, reason error) {
	t.Helper()
	if !errors.Is(err, reason) || !errors.Is(err, context.Canceled) ||
		!strings.HasPrefix(err.Error(), "bloom: ") && !strings.HasPrefix(err.Error(), "upstash: ") {
		t.Errorf("got %v, want what was interrupted, and that it was canceled because of %v", err, reason)
	}
}

// TestMirrorsContextCause: a caller waits for the refresh of another, or its own
// is under way, when its context ends.
func TestMirrorsContextCause(t *testing.T) {
	reason := errors.New("the handler is shut down")
	ctx, cancel := context.WithCancelCause(t.Context())
	own := engine.EachSpan(ctx, "a span", 1, 0, 3, 1, func(ctx context.Context, _, _ int) error {
		cancel(reason)
		return context.Cause(ctx)
	})
	wantCause(t, own, reason)
	wantCause(t, (&task{done: make(chan struct{})}).wait(ctx), reason)
	if err := engine.EachSpan(t.Context(), "a span", 2, 0, 3, 1, func(_ context.Context, from, _ int) error {
		if from == 1 {
			return reason
		}
		return nil
	}); err != reason {
		t.Errorf("a span that fails: got %v, want its error alone", err)
	}
}

// More shards are advised only if there may be so many.
func TestAdviceOnShards(t *testing.T) {
	for capacity, want := range map[uint64]string{1e9: "or use more Shards", 1e12: "256 shards are the most"} {
		_, err := ShardedConfig{Capacity: capacity, FPRate: 0.01, Shards: 2}.Geometry()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d items: %v, want %q", capacity, err, want)
		}
	}
	_, err := ShardedConfig{Capacity: 1e12, FPRate: 0.01, Shards: 256}.Geometry()
	if err == nil || strings.Contains(err.Error(), "more Shards") {
		t.Errorf("256 shards: %v, want no advice to use more", err)
	}
}

// The panes of a Span are five seconds longer together, and last whole seconds.
func TestPaneSeconds(t *testing.T) {
	for _, tt := range []struct {
		span  time.Duration
		panes int
		want  uint64
	}{
		{24 * time.Hour, 0, 86_405}, {24 * time.Hour, 2, 43_203}, {10 * time.Second, 1, 15}, {10*time.Second + 1, 1, 16},
	} {
		if got := (WindowConfig{Span: tt.span, Panes: tt.panes}).paneSeconds(); got != tt.want {
			t.Errorf("%v in %d panes: a pane of %d s, want %d", tt.span, tt.panes, got, tt.want)
		}
	}
}
