package bloom_test

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json" // what users marshal our types with
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A kind is a type of filter, of any capacity at 1 in 100.
type kind struct {
	name  string
	of    func(capacity uint64) (config any)
	open  func(ctx context.Context, c *upstash.Client) error
	sized string // the fields that its size follows from
}

func (k kind) new(t *testing.T, c *upstash.Client, capacity uint64) bloomtest.Adder {
	t.Helper()
	return made(t, c, key, k.of(capacity))
}

// config and opens are the names of the type's Config and of its Open.
func (k kind) config() string { return strings.TrimPrefix(k.name, "Filter") + "Config" }
func (k kind) opens() string  { return "Open" + strings.TrimPrefix(k.name, "Filter") }

var kinds = []kind{
	{
		"Filter", func(n uint64) any { return bloom.Config{Capacity: n, FPRate: 0.01} },
		func(ctx context.Context, c *upstash.Client) error { return errorOf(bloom.Open(ctx, c, key)) },
		"Capacity or FPRate",
	},
	{
		"Window", func(n uint64) any { return bloom.WindowConfig{Capacity: n, FPRate: 0.01, Span: time.Hour} },
		func(ctx context.Context, c *upstash.Client) error { return errorOf(bloom.OpenWindow(ctx, c, key)) },
		"Capacity, FPRate or Panes",
	},
	{
		"Scalable", func(n uint64) any { return bloom.ScalableConfig{Capacity: n, FPRate: 0.01} },
		func(ctx context.Context, c *upstash.Client) error { return errorOf(bloom.OpenScalable(ctx, c, key)) },
		"Capacity or FPRate",
	},
	{
		"Cuckoo", func(n uint64) any { return bloom.CuckooConfig{Capacity: n, FPRate: 0.01} },
		func(ctx context.Context, c *upstash.Client) error { return errorOf(bloom.OpenCuckoo(ctx, c, key)) },
		"Capacity or FPRate",
	},
	{
		"Sharded", func(n uint64) any { return bloom.ShardedConfig{Capacity: n, FPRate: 0.01, Shards: 2} },
		func(ctx context.Context, c *upstash.Client) error {
			return errorOf(bloom.OpenSharded(ctx, []*upstash.Client{c}, key))
		},
		"Capacity, FPRate or Shards",
	},
}

// A handle of another size is told which type is at the key, what differs, and
// how that is opened.
func TestMismatchOfSizes(t *testing.T) {
	called := map[string]string{"Filter": "a plain Filter", "Sharded": "a shard of a Sharded"}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			c := upstashtest.NewServer(t).Client()
			create(t, k.new(t, c, 5000), true)
			_, err := k.new(t, c, 10_000).Exists(t.Context(), "a")
			if _, is := errors.AsType[*bloom.MismatchError](err); !is {
				t.Fatalf("%v, want a MismatchError", err)
			}
			is := called[k.name]
			if is == "" {
				is = "a " + k.name
			}
			for _, text := range []string{
				is + " of another size is at this key", k.sized + " differs",
				"use the " + k.config() + " it was made with, read it with " + k.opens() + ",",
			} {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%v, want %q", err, text)
				}
			}
			if err := k.open(t.Context(), c); err != nil {
				t.Errorf("the function that the error names: %v", err)
			}
		})
	}
}

// The look-up of a token that may only read is refused, and the error names the
// option that lets a region answer.
func TestReadOnlyTokenNamesTheOption(t *testing.T) {
	s := upstashtest.NewServer(t)
	reader, err := upstash.New(s.URL, s.ReadOnlyToken)
	noError(t, err)
	t.Cleanup(func() { _ = reader.Close() })
	for _, k := range kinds {
		s.FlushAll()
		create(t, k.new(t, s.Client(), 100), true)
		_, err := k.new(t, reader, 100).Exists(t.Context(), "a")
		if !lacksPermission(err) || !strings.Contains(err.Error(), "WithReadOnly") {
			t.Errorf("%s: %v, want ErrNoPermission, and WithReadOnly named", k.name, err)
		}
	}
}

// A read-only client of any type writes nothing. What it may do is look up.
func TestReadOnlyClientOfKinds(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c, items := t.Context(), s.ReadOnlyClient(), []string{"b", "c"}
	refused := func(err error) {
		t.Helper()
		if !errors.Is(err, upstash.ErrReadOnly) || !upstash.SafeToRetry(err) {
			t.Errorf("%v, want ErrReadOnly, safe to retry", err)
		}
	}
	for _, k := range kinds {
		s.FlushAll()
		writer := k.new(t, s.Client(), 100)
		create(t, writer, true)
		add(t, writer, "a", true)
		s.ResetStats()
		f := k.new(t, c, 100)
		refused(errorOf(f.Create(ctx)))
		refused(errorOf(f.Add(ctx, "b")))
		refused(errorOf(f.AddAll(ctx, items)))
		switch f := f.(type) {
		case *bloom.Filter:
			refused(f.Replace(ctx, bloom.NewLocal(f.Geometry())))
			refused(errorOf(f.AddSeq(ctx, slices.Values(items))))
		case *bloom.Window:
			refused(errorOf(f.Delete(ctx)))
		case *bloom.Cuckoo:
			refused(errorOf(f.Remove(ctx, "a")))
			refused(errorOf(f.RemoveAll(ctx, items)))
		case *bloom.Sharded:
			refused(errorOf(f.Load(ctx, slices.Values(items))))
		}
		wantRequests(t, s, 0)
		exists(t, f, "a", true)
		exists(t, f, "b", false)
		if f, is := f.(*bloom.Sharded); is {
			if n, err := f.Cardinality(ctx); err != nil || n != 1 {
				t.Errorf("Cardinality = %d, %v, want 1", n, err)
			}
		}
	}
}

// An answer that has none for the item says nothing of it.
func TestShortAnswerOfKinds(t *testing.T) {
	s := upstashtest.NewServer(t)
	for _, k := range kinds {
		s.FlushAll()
		f := k.new(t, once(s), 100)
		create(t, f, true)
		s.InjectWrites(upstashtest.ShortResult())
		wantError(t, errorOf(f.Add(t.Context(), "a")), upstash.ErrBadResponse)
	}
}

// If a type's string is too large for a record, the error says how long it is,
// and what makes a string of this type shorter, without the server's line.
func TestTooLargeForARecord(t *testing.T) {
	s := upstashtest.NewServer(t)
	const plan = "choose a larger plan"
	advice := map[string]string{
		"Filter":   "lower the Capacity, raise the FPRate, " + plan + ", or spread the items over more records with NewSharded",
		"Window":   "lower the Capacity (a shorter Span has fewer items), raise the FPRate, or " + plan,
		"Scalable": "lower the Capacity, from which the filter grows, raise the FPRate, or " + plan,
		"Cuckoo":   "lower the Capacity, raise the FPRate, or " + plan,
	}
	wantAdvice := func(name string, f bloomtest.Adder, advice string) {
		t.Helper()
		s.FlushAll()
		s.InjectFunc(nil)
		create(t, f, true)
		bytes := uint64(do(t, s, "STRLEN", key).(int64))
		s.FlushAll()
		strikeEach(s, "EVAL", upstashtest.ErrorObject("ERR max single record size exceeded script: 012d00, on @user_script:8."))
		_, err := f.Create(t.Context())
		want := "bloom: the filter's string of " + human.Count(bytes) + " bytes is too large for one record of" +
			" the database: " + advice
		_, fromServer := errors.AsType[*upstash.Error](err)
		if !errors.Is(err, upstash.ErrRecordTooLarge) || !fromServer || !upstash.SafeToRetry(err) || err.Error() != want {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	for _, k := range kinds {
		if advice[k.name] != "" { // TestTooLargeForAShard has the fifth
			wantAdvice(k.name, k.new(t, s.Client(), 10_000), advice[k.name])
		}
	}
	many := bloom.WindowConfig{Capacity: 10_000, FPRate: 0.01, Span: time.Hour, Panes: 4}
	wantAdvice("a Window of many panes", window(t, s.Client(), many),
		"lower the Capacity (a shorter Span has fewer items), raise the FPRate, use fewer Panes, or "+plan)
}

// If shards are too large, the error says to use more of them. If they are above
// what most plans allow, it says how many suit those.
func TestTooLargeForAShard(t *testing.T) {
	for capacity, says := range map[uint64]string{
		1000:        "or choose a larger plan",
		300_000_000: "or choose a larger plan; with 5 Shards none is above the 100,000,000 bytes of most plans",
	} {
		s := upstashtest.NewServer(t, upstashtest.WithMaxRecord(500))
		f := sharded(t, bloom.ShardedConfig{Capacity: capacity, FPRate: 0.01, Shards: 2}, s.Client())
		_, err := f.Create(t.Context())
		if !errors.Is(err, upstash.ErrRecordTooLarge) || !strings.HasSuffix(err.Error(), says) ||
			!strings.Contains(err.Error(), "use more Shards") {
			t.Errorf("%d items: %v, want %q", capacity, err, says)
		}
	}
}

// No constructor returns a handle without a client, with a key that cannot be
// sent, or of a zero Config.
func TestNewRefuses(t *testing.T) {
	const n, p = 1000, 0.01
	c := upstashtest.NewServer(t).Client()
	for _, kind := range []struct{ good, zero any }{
		{bloom.Config{Capacity: n, FPRate: p}, bloom.Config{}},
		{bloom.WindowConfig{Capacity: n, FPRate: p, Span: time.Hour}, bloom.WindowConfig{}},
		{bloom.ScalableConfig{Capacity: n, FPRate: p}, bloom.ScalableConfig{}},
		{bloom.CuckooConfig{Capacity: n, FPRate: p}, bloom.CuckooConfig{}},
		{bloom.ShardedConfig{Capacity: n, FPRate: p, Shards: 2}, bloom.ShardedConfig{}},
	} {
		if _, err := newOf(c, key, kind.good); err != nil {
			t.Errorf("%T: %v", kind.good, err)
		}
		for _, tt := range []struct {
			client    *upstash.Client
			key, says string
			cfg       any
		}{
			{nil, key, "client is nil", kind.good},
			{c, "", "key is empty", kind.good},
			{c, "\xff", "not valid UTF-8", kind.good},
			{c, key, "Config.", kind.zero},
		} {
			made, err := newOf(tt.client, tt.key, tt.cfg)
			if err == nil || !strings.Contains(err.Error(), tt.says) || fmt.Sprint(made) != "<nil>" {
				t.Errorf("%T: %v, %v, want nil and an error that says %q", tt.cfg, made, err, tt.says)
			}
			if _, is := errors.AsType[*bloom.ConfigError](err); is != (tt.says == "Config.") {
				t.Errorf("%T: %v is a ConfigError: %t", tt.cfg, err, is)
			}
		}
	}
	for name, clients := range map[string][]*upstash.Client{"no client": nil, "a nil client": {c, nil}} {
		if _, err := bloom.NewSharded(clients, key, shards(4)); err == nil {
			t.Errorf("%s: NewSharded has no error", name)
		}
	}
	idle := []*upstash.Client{c, upstashtest.NewServer(t).Client()}
	if bad, is := errors.AsType[*bloom.ConfigError](errorOf(bloom.NewSharded(idle, key, shards(1)))); !is || bad.Field != "Shards" {
		t.Errorf("more clients than shards: %v, want a ConfigError of Shards", bad)
	}
}

// A Config of another type than Config is refused with the name of its wrong
// field. TestConfigRefuses has those of Config.
func TestConfigsOfKindsRefuse(t *testing.T) {
	const n, p, hour, day = 1000, 0.01, time.Hour, 24 * time.Hour
	c := upstashtest.NewServer(t).Client()
	for _, tt := range []struct {
		field string
		cfg   any
	}{
		{"WindowConfig.Capacity", bloom.WindowConfig{FPRate: p, Span: hour}},
		{"WindowConfig.Capacity", bloom.WindowConfig{Capacity: 200_000_000, FPRate: p, Span: hour}},
		{"WindowConfig.Capacity", bloom.WindowConfig{Capacity: math.MaxUint64, FPRate: p, Span: hour}},
		{"WindowConfig.FPRate", bloom.WindowConfig{Capacity: n, Span: hour}},
		{"WindowConfig.FPRate", bloom.WindowConfig{Capacity: n, FPRate: 1, Span: hour}},
		{"WindowConfig.FPRate", bloom.WindowConfig{Capacity: n, FPRate: math.NaN(), Span: hour}},
		{"WindowConfig.FPRate", bloom.WindowConfig{Capacity: n, FPRate: 1.9e-9, Span: hour}},
		{"WindowConfig.Span", bloom.WindowConfig{Capacity: n, FPRate: p}},
		{"WindowConfig.Span", bloom.WindowConfig{Capacity: n, FPRate: p, Span: 10*time.Second - 1}},
		{"WindowConfig.Span", bloom.WindowConfig{Capacity: n, FPRate: p, Span: 39 * time.Second, Panes: 4}},
		{"WindowConfig.Span", bloom.WindowConfig{Capacity: n, FPRate: p, Span: 98 * day}},
		{"WindowConfig.Span", bloom.WindowConfig{Capacity: n, FPRate: p, Span: math.MaxInt64}},
		{"WindowConfig.Panes", bloom.WindowConfig{Capacity: n, FPRate: p, Span: hour, Panes: -1}},
		{"WindowConfig.Panes", bloom.WindowConfig{Capacity: n, FPRate: p, Span: hour, Panes: 5}},
		{"WindowConfig.MustExist", bloom.WindowConfig{Capacity: n, FPRate: p, Span: hour, MustExist: true, ExpireIdle: true}},

		{"ScalableConfig.Capacity", bloom.ScalableConfig{FPRate: p}},
		{"ScalableConfig.Capacity", bloom.ScalableConfig{Capacity: 1 << 30, FPRate: p}},
		{"ScalableConfig.FPRate", bloom.ScalableConfig{Capacity: n, FPRate: 4.9e-9}},
		{"ScalableConfig.FPRate", bloom.ScalableConfig{Capacity: n, FPRate: 1}},
		{"ScalableConfig.MaxBytes", bloom.ScalableConfig{Capacity: n, FPRate: p, MaxBytes: 1000}},
		{"ScalableConfig.TTL", bloom.ScalableConfig{Capacity: n, FPRate: p, TTL: 1}},

		{"CuckooConfig.Capacity", bloom.CuckooConfig{FPRate: p}},
		{"CuckooConfig.Capacity", bloom.CuckooConfig{Capacity: 1 << 40, FPRate: p}},
		{"CuckooConfig.Capacity", bloom.CuckooConfig{Capacity: math.MaxUint64, FPRate: p}},
		{"CuckooConfig.FPRate", bloom.CuckooConfig{Capacity: 10}},
		{"CuckooConfig.FPRate", bloom.CuckooConfig{Capacity: 10, FPRate: 1}},
		{"CuckooConfig.FPRate", bloom.CuckooConfig{Capacity: 10, FPRate: math.NaN()}},
		{"CuckooConfig.FPRate", bloom.CuckooConfig{Capacity: 10, FPRate: 5e-8}},

		{"ShardedConfig.Shards", bloom.ShardedConfig{Capacity: n, FPRate: p}},
		{"ShardedConfig.Shards", bloom.ShardedConfig{Capacity: n, FPRate: p, Shards: 257}},
		{"ShardedConfig.Capacity", bloom.ShardedConfig{FPRate: p, Shards: 4}},
		{"ShardedConfig.Capacity", bloom.ShardedConfig{Capacity: 1 << 40, FPRate: p, Shards: 4}},
		{"ShardedConfig.Capacity", bloom.ShardedConfig{Capacity: 400_000_000, FPRate: 1e-9, Shards: 4}},
		{"ShardedConfig.Capacity", bloom.ShardedConfig{Capacity: math.MaxUint64, FPRate: p, Shards: 4}},
		{"ShardedConfig.FPRate", bloom.ShardedConfig{Capacity: n, Shards: 4}},
		{"ShardedConfig.FPRate", bloom.ShardedConfig{Capacity: n, FPRate: 1e-10, Shards: 4}},
	} {
		_, err := newOf(c, key, tt.cfg)
		bad, is := errors.AsType[*bloom.ConfigError](err)
		if !is || !strings.HasSuffix(tt.field, "."+bad.Field) || !strings.HasPrefix(err.Error(), "bloom: "+tt.field+" ") {
			t.Errorf("%v: %v, want a ConfigError of %s", tt.cfg, err, tt.field)
		}
	}
}

// The ends of what the Configs of the other types accept.
func TestConfigsOfKindsAccept(t *testing.T) {
	for _, cfg := range []bloom.WindowConfig{
		{Capacity: 1000, FPRate: 0.01, Span: time.Hour},
		{Capacity: 1, FPRate: 0.5, Span: 10 * time.Second},
		{Capacity: 1000, FPRate: 5e-9, Span: 388 * 24 * time.Hour, Panes: 4},
		{Capacity: 50_000_000, FPRate: 0.01, Span: 97 * 24 * time.Hour},
	} {
		if _, err := cfg.Geometry(); err != nil {
			t.Errorf("%v: %v", cfg, err)
		}
	}
	few, err := bloom.ScalableConfig{Capacity: 1, FPRate: 5e-9, Seed: 7}.Geometry()
	noError(t, err)
	thousand, err := bloom.Config{Capacity: 1000, FPRate: 1e-9, Seed: 7}.Geometry()
	if err != nil || few != thousand {
		t.Errorf("a Scalable for one item has layers of %v, %v, want %v", few, err, thousand)
	}
	largest := bloom.CuckooConfig{Capacity: 81_037_099 * 5 * 95 / 100, FPRate: 0.01}
	if g, err := largest.Geometry(); err != nil || g.Bits > 1<<32-192 || g.Bits < 1<<32-1000 {
		t.Errorf("the largest Cuckoo: %v, %v, want 2^32-1000 to 2^32-192 bits", g, err)
	}
	// A shard holds the mean plus three times its square root, rounded up.
	for _, tt := range []struct {
		capacity uint64
		shards   int
		want     uint64
	}{{1, 1, 4}, {1000, 1, 1096}, {4000, 4, 1096}, {3999, 4, 1096}, {4001, 4, 1001 + 96}, {1e9, 16, 62_500_000 + 3*7906}} {
		got, err := bloom.ShardedConfig{Capacity: tt.capacity, FPRate: 0.01, Shards: tt.shards}.Geometry()
		want, _ := bloom.Config{Capacity: tt.want, FPRate: 0.01}.Geometry()
		if err != nil || got != want {
			t.Errorf("%d items in %d shards: %v, %v, want %v", tt.capacity, tt.shards, got, err, want)
		}
	}
}

// No text for printing, logging or sending shows a secret seed. A handle shows no
// key either, and says which type it is and how large.
func TestTextsHideKeyAndSeed(t *testing.T) {
	const seed = 7391846205517392
	c := upstashtest.NewServer(t).Client()
	cfg := bloom.Config{Capacity: 1000, FPRate: 0.01, Seed: seed}
	window := bloom.WindowConfig{Capacity: 1000, FPRate: 0.01, Span: time.Hour, Seed: seed}
	scalable := bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01, Seed: seed, MaxBytes: 1 << 20}
	cuckoo := bloom.CuckooConfig{Capacity: 1000, FPRate: 0.01, Seed: seed}
	sharded := bloom.ShardedConfig{Capacity: 1000, FPRate: 0.01, Shards: 4, Seed: seed}
	for _, config := range []any{cfg, window, scalable, cuckoo, sharded} {
		if text := fmt.Sprint(config); !strings.Contains(text, "Capacity: 1000") || !strings.Contains(text, "Seed: (set)") {
			t.Errorf("%s does not say what is set", text)
		}
		made, err := newOf(c, key, config)
		noError(t, err)
		wantHidden(t, made, "bloom."+strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", made), "*bloom."), "Config")+"(")
	}
	f := handle(t, c, cfg)
	m, _ := mirror(t, f, bloom.MirrorConfig{})
	wantHidden(t, m, "bits")
	wantHidden(t, bloom.NewLocal(f.Geometry()), "bits")
	const want = "bloom.Filter(10,759 bits (1.3 KiB), k=4, blocked, seeded)"
	if got := fmt.Sprint(f); got != want {
		t.Errorf("%s, want %s", got, want)
	}

	create(t, f, true)
	other := cfg
	other.Seed++
	_, err := handle(t, c, other).Exists(t.Context(), "a")
	mismatch, is := errors.AsType[*bloom.MismatchError](err)
	if !is {
		t.Fatalf("Exists with another seed: %v, want a MismatchError", err)
	}
	geo := f.Geometry()
	for _, v := range []any{
		cfg, &cfg, window, &window, scalable, &scalable, cuckoo, &cuckoo, sharded, &sharded,
		geo, &geo,
		[]bloom.Geometry{geo, handle(t, c, other).Geometry()},
		bloom.Stats{Geometry: geo},
		mismatch,
		&bloom.MismatchError{Want: geo, Got: geo},
	} {
		wantHidden(t, v, "")
		if text, err := json.Marshal(v); err != nil || showsSeed(string(text)) {
			t.Errorf("%T in JSON: %s, %v", v, text, err)
		}
	}
}

// showsSeed reports whether a text has the seed of TestTextsHideKeyAndSeed or the
// next one, in decimal or in hexadecimal.
func showsSeed(text string) bool {
	return strings.Contains(text, "739184620551739") || strings.Contains(text, "1a42d6")
}

func wantHidden(t *testing.T, v any, says string) {
	t.Helper()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		text := fmt.Sprintf(verb, v)
		if showsSeed(text) || strings.Contains(text, key) || verb != "%x" && !strings.Contains(text, says) {
			t.Errorf("%s of %T is %s, want %q, and neither key nor seed", verb, v, text, says)
		}
	}
	var lines bytes.Buffer
	slog.New(slog.NewJSONHandler(&lines, nil)).Info("", "v", v)
	slog.New(slog.NewTextHandler(&lines, nil)).Info("", "v", v)
	if showsSeed(lines.String()) || strings.Contains(lines.String(), key) {
		t.Errorf("a log of %T shows key or seed: %s", v, &lines)
	}
}

// TestNamesInLogs: fmt, encoding/json and both handlers of log/slog write the
// same name for each value in a Config, a Stats or an error.
func TestNamesInLogs(t *testing.T) {
	for want, v := range map[string]any{
		"blocked": bloom.SchemeBlocked, "fnv1a": bloom.SchemeFNV1a, "xxh3": bloom.SchemeXXH3,
		"cuckoo": bloom.SchemeCuckoo, "xxh3/8-bit": bloom.Scheme(3), "Scheme(9)": bloom.Scheme(9),
		"headed": bloom.LayoutHeaded, "bare": bloom.LayoutBare, "Layout(9)": bloom.Layout(9),
		"filter": bloom.KindFilter, "shard": bloom.KindShard, "scalable": bloom.KindScalable,
		"window": bloom.KindWindow, "Kind(9)": bloom.Kind(9),
		"not done": bloom.ItemNotDone, "done": bloom.ItemDone, "uncertain": bloom.ItemUncertain,
		"unknown": bloom.ItemUnknown, "ItemState(9)": bloom.ItemState(9),
	} {
		if got := fmt.Sprintf("%v", v); got != want {
			t.Errorf("fmt: %T %q, want %q", v, got, want)
		}
		quoted := `"` + want + `"`
		if got, err := json.Marshal(v); string(got) != quoted || err != nil {
			t.Errorf("encoding/json: %T %s, %v, want %s", v, got, err, quoted)
		}
		var lines bytes.Buffer
		slog.New(slog.NewJSONHandler(&lines, nil)).Info("", "v", v)
		if !strings.Contains(lines.String(), `"v":`+quoted) {
			t.Errorf("slog's JSON: %T %s, want %s", v, &lines, quoted)
		}
	}
	states, err := json.Marshal([]bloom.ItemState{bloom.ItemDone, bloom.ItemUnknown})
	if string(states) != `["done","unknown"]` || err != nil {
		t.Errorf("a slice of states: %s, %v, want its words", states, err)
	}
}

// TestStatsInJSON: what Inspect returns can be written and read again.
func TestStatsInJSON(t *testing.T) {
	c := upstashtest.NewServer(t).Client()
	w := window(t, c, bloom.WindowConfig{Capacity: 100, FPRate: 0.01, Span: time.Hour})
	noError(t, errorOf(w.Add(t.Context(), "a")))
	stats, err := bloom.Inspect(t.Context(), c, key)
	noError(t, err)
	text, err := json.Marshal(stats)
	if !strings.Contains(string(text), `"Kind":"window"`) ||
		!strings.Contains(string(text), `"Scheme":"blocked"`) || err != nil {
		t.Errorf("Inspect in JSON: %s, %v, want a window of scheme blocked", text, err)
	}
	var again bloom.Stats
	if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, stats) {
		t.Errorf("%s was read as %+v, %v, want %+v", text, again, err, stats)
	}
}

// TestReadNames reads each name as a file of settings may have it.
func TestReadNames(t *testing.T) {
	for _, tt := range []struct {
		to    encoding.TextUnmarshaler
		names []fmt.Stringer
		other string
	}{
		{new(bloom.Scheme), []fmt.Stringer{
			bloom.SchemeBlocked, bloom.SchemeXXH3, bloom.SchemeFNV1a, bloom.SchemeCuckoo,
		}, `bloom: bad argument: no Scheme is called "Blocked": use one of blocked, xxh3, fnv1a, cuckoo`},
		{new(bloom.Layout), []fmt.Stringer{bloom.LayoutHeaded, bloom.LayoutBare}, "use one of headed, bare"},
		{new(bloom.Kind), []fmt.Stringer{
			bloom.KindFilter, bloom.KindShard, bloom.KindScalable, bloom.KindWindow, bloom.KindCuckoo,
		}, "use one of filter, shard, scalable, window, cuckoo"},
	} {
		for _, want := range tt.names {
			err := tt.to.UnmarshalText([]byte(want.String()))
			if got := fmt.Sprint(tt.to); got != want.String() || err != nil {
				t.Errorf("%T of %q is %s, %v", tt.to, want, got, err)
			}
		}
		err := tt.to.UnmarshalText([]byte("Blocked"))
		if !errors.Is(err, upstash.ErrArgument) || !strings.Contains(err.Error(), tt.other) {
			t.Errorf("%T of another text: %v, want ErrArgument: %s", tt.to, err, tt.other)
		}
		if got := fmt.Sprint(tt.to); got != tt.names[len(tt.names)-1].String() {
			t.Errorf("%T is %s after an error, want it as it was", tt.to, got)
		}
	}
}

// TestErrorsNameOnePackage: an error's text names a package once, at its
// beginning, however many errors it is made of. errors.Is finds each.
func TestErrorsNameOnePackage(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c := t.Context(), once(s)
	f, elsewhere := handle(t, c, small()), handleAt(t, s.Client(), "b", small())
	wantText := func(what string, err, want error) {
		t.Helper()
		wantError(t, err, want)
		text := err.Error()
		if n := strings.Count(text, "bloom: ") + strings.Count(text, "upstash: "); n != 1 ||
			!strings.HasPrefix(text, "bloom: ") && !strings.HasPrefix(text, "upstash: ") {
			t.Errorf("%s: %q names a package %d times, want once, at its beginning", what, text, n)
		}
	}
	wantText("a short TTL", errorOf(f.Expire(ctx, time.Microsecond)), upstash.ErrArgument)
	wantText("two clients", errorOf(bloom.ExistsIn(ctx, "a", f, elsewhere)), upstash.ErrArgument)
	wantText("no clients", errorOf(bloom.NewSharded(nil, key, shards(2))), upstash.ErrArgument)
	wantText("a Mirror of a read-only client",
		errorOf(bloom.NewMirror(handle(t, s.ReadOnlyClient(), small()), bloom.MirrorConfig{})), upstash.ErrReadOnly)
	wantText("no filter, in a batch",
		errorOf(handle(t, c, must(small())).AddAll(ctx, []string{"a", "b"})), bloom.ErrNotFound)

	s.Inject(upstashtest.ErrorObject("NOPERM no"))
	wantText("no permission, in a batch", adds["AddAll"](ctx, f), upstash.ErrNoPermission)
	s.Inject(upstashtest.ErrorObject("NOPERM no"))
	wantText("no permission, in one of several filters", adds["AddIn"](ctx, f), upstash.ErrNoPermission)
	s.Inject(upstashtest.ErrorObject("ERR max single record size exceeded"))
	wantText("a record too large", adds["Add"](ctx, f), upstash.ErrRecordTooLarge)
	s.Inject(upstashtest.ErrorObject("OOM command not allowed"))
	wantText("a full database, asked", reads["Exists"](ctx, f), upstash.ErrOutOfMemory)
}
