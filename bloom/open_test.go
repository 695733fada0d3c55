package bloom_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestOpen(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		for _, cfg := range []bloom.Config{
			small(),
			{Bits: 53, Hashes: 2},
			{Bits: 1, Hashes: 1, Scheme: bloom.SchemeXXH3},
			{Bits: 12345, Hashes: 63, Scheme: bloom.SchemeXXH3, Seed: 1<<64 - 1},
			{Bits: 12345, Hashes: 3, Scheme: bloom.SchemeFNV1a},
		} {
			s.FlushAll()
			add(t, handle(t, c, cfg), "a", true)
			f, err := bloom.Open(ctx, c, key, bloom.Config{Seed: cfg.Seed})
			if err != nil {
				t.Fatalf("%v: %v", cfg, err)
			}
			if want := handle(t, c, cfg).Geometry(); f.Geometry() != want {
				t.Errorf("%v: opened %v, want %v", cfg, f.Geometry(), want)
			}
			exists(t, f, "a", true)
			add(t, f, "a", false)
		}
	})
}

func TestOpenWrongSeed(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg := small()
		cfg.Seed = 1
		add(t, handle(t, s.Client(), cfg), "a", true)
		for _, seed := range []uint64{0, 2, 3} {
			_, err := bloom.Open(t.Context(), s.Client(), key, bloom.Config{Seed: seed})
			var m *bloom.MismatchError
			if !errors.As(err, &m) || !m.OtherSeed || !strings.Contains(err.Error(), "another seed") {
				t.Errorf("seed %d: %v, want a MismatchError about the seed", seed, err)
			}
		}
		do(t, s, "DEL", key)
		add(t, handle(t, s.Client(), small()), "a", true)
		_, err := bloom.Open(t.Context(), s.Client(), key, bloom.Config{Seed: 1})
		if err == nil || !strings.Contains(err.Error(), "but no seed: leave the seed out") {
			t.Errorf("a seed for a filter without: %v", err)
		}
	})
}

// Open refuses every string but a plain filter's, and says what it is. Exists and
// Add refuse it too.
func TestOpenRefuses(t *testing.T) {
	plain := bloom.Geometry{Bits: 1000, Hashes: 7, Scheme: bloom.SchemeXXH3}
	counting := func(scheme bloom.Scheme) bloom.Geometry {
		return bloom.Geometry{Bits: 1000, Hashes: 7, Scheme: scheme}
	}
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, c := range []struct {
			name, value string
			says        string // of ErrNotFilter
			kind        bloom.Kind
		}{
			{"header alone", headerOf(bloom.KindFilter, plain), "24 bytes long", 0},
			{"shard", headerOf(bloom.KindShard, plain) + "x", "", bloom.KindShard},
			{"layers", headerOf(bloom.KindScalable, plain) + "x", "", bloom.KindScalable},
			{"window", headerOf(bloom.KindWindow, plain) + "x", "", bloom.KindWindow},
			{"4-bit counters", headerOf(bloom.KindFilter, counting(2)) + "x", "one-bit cells", 0},
			{"8-bit counters", headerOf(bloom.KindFilter, counting(3)) + "x", "one-bit cells", 0},
			{"newer version", headerOfVersion(2, bloom.KindFilter, plain), "version 2", 0},
			{"newer shard", headerOfVersion(3, bloom.KindShard, plain), "version 3", 0},
			{"no hashes", headerOf(bloom.KindFilter, bloom.Geometry{Bits: 1060}), "k=0", 0},
			{"text", "some text", "", 0},
			{"bare", stringOf(plain, bloom.LayoutBare, numbered("a", 1000)...), "", 0},
		} {
			do(t, s, "SET", key, c.value)
			f, err := bloom.Open(t.Context(), s.Client(), key)
			if m, is := errors.AsType[*bloom.MismatchError](err); is != (c.kind != 0) ||
				is && (m.GotKind != c.kind || m.WantKind != bloom.KindFilter) ||
				!is && !refusedAs(err, c.says) || f != nil {
				t.Errorf("%s: Open = %v, %v", c.name, f, err)
			}
			mine := handle(t, s.Client(), small())
			if _, err := mine.Exists(t.Context(), "a"); !isRefusal(err) {
				t.Errorf("%s: Exists: %v, want a refusal", c.name, err)
			}
			if _, err := mine.Add(t.Context(), "a"); !isRefusal(err) {
				t.Errorf("%s: Add: %v, want a refusal", c.name, err)
			}
			if got := stored(t, s); c.value[0]&0x80 != 0 && got[:8] != c.value[:8] {
				t.Errorf("%s: Add made its header %x", c.name, got[:8])
			}
		}
	})
}

// refusedAs reports whether an error is ErrNotFilter with these words.
func refusedAs(err error, text string) bool {
	return errors.Is(err, bloom.ErrNotFilter) && strings.Contains(err.Error(), text)
}

// Each Open function refuses each other type's filter, and says what it is and
// which function opens it.
func TestOpenOfAnotherType(t *testing.T) {
	ctx, c := t.Context(), upstashtest.NewServer(t).Client()
	clients := []*upstash.Client{c}
	create(t, handleAt(t, c, "filter:0", small()), true)
	create(t, scalableAt(t, c, "scalable:0", growing()), true)
	table, err := bloom.NewCuckoo(c, "cuckoo:0", table1000())
	noError(t, err)
	create(t, table, true)
	create(t, windowAt(t, c, "window:0", bloom.WindowConfig{Capacity: 100, FPRate: 0.01, Span: time.Hour}), true)
	made, err := bloom.NewSharded(clients, "shard", shards(2))
	noError(t, err)
	create(t, made, true)
	openers := map[bloom.Kind]string{
		bloom.KindFilter: "Open", bloom.KindScalable: "OpenScalable", bloom.KindCuckoo: "OpenCuckoo",
		bloom.KindWindow: "OpenWindow", bloom.KindShard: "OpenSharded",
	}
	for got, opener := range openers {
		name := got.String()
		for want, err := range map[bloom.Kind]error{
			bloom.KindFilter:   errorOf(bloom.Open(ctx, c, name+":0")),
			bloom.KindScalable: errorOf(bloom.OpenScalable(ctx, c, name+":0")),
			bloom.KindCuckoo:   errorOf(bloom.OpenCuckoo(ctx, c, name+":0")),
			bloom.KindWindow:   errorOf(bloom.OpenWindow(ctx, c, name+":0")),
			bloom.KindShard:    errorOf(bloom.OpenSharded(ctx, clients, name)),
		} {
			m, is := errors.AsType[*bloom.MismatchError](err)
			if want == got && err == nil {
				continue
			}
			if !is || m.WantKind != want || m.GotKind != got || !strings.Contains(err.Error(), ": use "+opener) {
				t.Errorf("%s of a %v: %v, want a MismatchError that names %s", openers[want], got, err, opener)
			}
		}
		if s, err := bloom.Inspect(ctx, c, name+":0"); err != nil || s.Kind != got {
			t.Errorf("Inspect of a %v: kind %v, %v", got, s.Kind, err)
		}
	}
}

// Impossible arguments are refused before anything is sent.
func TestOpenRefusesArguments(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c, one := t.Context(), s.Client(), []*upstash.Client{s.Client()}
	for want, err := range map[string]error{
		"bloom: Config.TTL is 1µs":               errorOf(bloom.Open(ctx, c, key, bloom.Config{TTL: time.Microsecond})),
		"bloom: Config.Layout is bare":           errorOf(bloom.Open(ctx, c, key, bloom.Config{Layout: bloom.LayoutBare})),
		"bloom: Config.FPRate is 0":              errorOf(bloom.Open(ctx, c, key, bloom.Config{Capacity: 9})),
		"bloom: Config.Capacity is 0":            errorOf(bloom.Open(ctx, c, key, bloom.Config{FPRate: 0.01})),
		"bloom: Config.Hashes is 0":              errorOf(bloom.Open(ctx, c, key, bloom.Config{Bits: 53})),
		"bloom: Config.Seed is set, but":         errorOf(bloom.Open(ctx, c, key, bloom.Config{Seed: 1, Scheme: bloom.SchemeFNV1a})),
		"bloom: Config is given 2 times":         errorOf(bloom.Open(ctx, c, key, bloom.Config{}, bloom.Config{})),
		"bloom: WindowConfig is given 2 times":   errorOf(bloom.OpenWindow(ctx, c, key, bloom.WindowConfig{}, bloom.WindowConfig{})),
		"bloom: WindowConfig.Panes is 5":         errorOf(bloom.OpenWindow(ctx, c, key, bloom.WindowConfig{Panes: 5})),
		"bloom: ScalableConfig is given 2 times": errorOf(bloom.OpenScalable(ctx, c, key, bloom.ScalableConfig{}, bloom.ScalableConfig{})),
		"bloom: ScalableConfig.FPRate is 0":      errorOf(bloom.OpenScalable(ctx, c, key, bloom.ScalableConfig{Capacity: 9})),
		"bloom: ScalableConfig.TTL is 1µs":       errorOf(bloom.OpenScalable(ctx, c, key, bloom.ScalableConfig{TTL: time.Microsecond})),
		"bloom: CuckooConfig is given 2 times":   errorOf(bloom.OpenCuckoo(ctx, c, key, bloom.CuckooConfig{}, bloom.CuckooConfig{})),
		"bloom: ShardedConfig is given 2 times":  errorOf(bloom.OpenSharded(ctx, one, key, bloom.ShardedConfig{}, bloom.ShardedConfig{})),
		"bloom: ShardedConfig.Shards is 257":     errorOf(bloom.OpenSharded(ctx, one, key, bloom.ShardedConfig{Shards: 257})),
	} {
		if _, is := errors.AsType[*bloom.ConfigError](err); !is || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want the ConfigError %q", err, want)
		}
	}
	if _, err := bloom.Open(ctx, nil, key); err == nil {
		t.Error("nil client: no error")
	}
	if _, err := bloom.Open(ctx, c, ""); err == nil {
		t.Error("empty key: no error")
	}
	wantRequests(t, s, 0)
}

// A Load through an opened handle says whether the filter is over its Capacity, as
// one of New does: the string says the Capacity.
func TestOpenedLoadIsOverCapacity(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c := t.Context(), s.Client()
	create(t, handle(t, c, small()), true)
	for i, cfg := range []bloom.Config{small(), {}} {
		f, err := bloom.Open(ctx, c, key, cfg)
		noError(t, err)
		r, err := f.Load(ctx, mails(0, 100))
		if err != nil || r.OverCapacity != (i > 0) {
			t.Errorf("Load of 100 items %+v, %v, want it over capacity: %t", r, err, i > 0)
		}
		r, err = f.Load(ctx, mails(0, 2000))
		if err != nil || !r.OverCapacity {
			t.Errorf("Load of 2,000 items %+v, %v, want it over capacity", r, err)
		}
	}
}

// What a Config says of the filter must be true of it.
func TestOpenComparesTheSize(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c := t.Context(), s.Client()
	add(t, handle(t, c, bloom.Config{Capacity: 1000, FPRate: 0.01, Scheme: bloom.SchemeXXH3}), "a", true)
	geo := handle(t, c, bloom.Config{Capacity: 1000, FPRate: 0.01, Scheme: bloom.SchemeXXH3}).Geometry()
	for _, cfg := range []bloom.Config{
		{Capacity: 1000, FPRate: 0.01},
		{Capacity: 1000, FPRate: 0.01, Scheme: bloom.SchemeXXH3},
		{Scheme: bloom.SchemeXXH3},
		{Bits: geo.Bits, Hashes: geo.Hashes},
		{Bits: geo.Bits, Hashes: geo.Hashes, Capacity: 5},
	} {
		f, err := bloom.Open(ctx, c, key, cfg)
		if err != nil || f.Geometry() != geo {
			t.Errorf("%v: Open = %v, %v, want %v", cfg, f, err, geo)
			continue
		}
		if st, err := f.Stats(ctx); err != nil || st.Capacity != max(cfg.Capacity, 997) && st.Capacity != cfg.Capacity {
			t.Errorf("%v: Capacity %d, %v, want the Config's, or what the string says", cfg, st.Capacity, err)
		}
	}
	for _, cfg := range []bloom.Config{
		{Capacity: 1001, FPRate: 0.01},
		{Capacity: 1000, FPRate: 0.02},
		{Scheme: bloom.SchemeFNV1a},
		{Capacity: 1000, FPRate: 0.01, Scheme: bloom.SchemeFNV1a},
		{Bits: geo.Bits, Hashes: geo.Hashes + 1},
	} {
		var m *bloom.MismatchError
		if _, err := bloom.Open(ctx, c, key, cfg); !errors.As(err, &m) || m.Got != geo {
			t.Errorf("%v: %v, want a MismatchError", cfg, err)
		}
	}
}

// What a Config of another type says must be true too.
func TestOpenComparesTheConfig(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c, one := t.Context(), s.Client(), []*upstash.Client{s.Client()}
	differs := func(err error, field string) {
		t.Helper()
		if m, is := errors.AsType[*bloom.MismatchError](err); !is || m.Field != field {
			t.Errorf("%v, want a MismatchError of the field %q", err, field)
		}
	}

	windowed := bloom.WindowConfig{Capacity: 500, FPRate: 0.01, Span: time.Hour, Panes: 2}
	create(t, window(t, c, windowed), true)
	openWindow := func(cfg bloom.WindowConfig) error { return errorOf(bloom.OpenWindow(ctx, c, key, cfg)) }
	noError(t, openWindow(windowed))
	noError(t, openWindow(bloom.WindowConfig{Panes: 2}))
	noError(t, openWindow(bloom.WindowConfig{Capacity: 500, FPRate: 0.01}))
	noError(t, openWindow(bloom.WindowConfig{Span: time.Hour}))
	differs(openWindow(bloom.WindowConfig{Capacity: 600, FPRate: 0.01}), "")
	differs(openWindow(bloom.WindowConfig{Panes: 1}), "Panes")
	differs(openWindow(bloom.WindowConfig{Span: 2 * time.Hour}), "Span")
	differs(openWindow(bloom.WindowConfig{ExpireIdle: true}), "ExpireIdle")

	s.FlushAll()
	grown := bloom.ScalableConfig{Capacity: 2000, FPRate: 0.01}
	create(t, scalable(t, c, grown), true)
	openScalable := func(cfg bloom.ScalableConfig) error { return errorOf(bloom.OpenScalable(ctx, c, key, cfg)) }
	noError(t, openScalable(grown))
	noError(t, openScalable(bloom.ScalableConfig{MaxBytes: 1 << 20}))
	differs(openScalable(bloom.ScalableConfig{Capacity: 3000, FPRate: 0.01}), "")
	bad, is := errors.AsType[*bloom.ConfigError](openScalable(bloom.ScalableConfig{MaxBytes: 25}))
	if !is || bad.Field != "MaxBytes" {
		t.Errorf("MaxBytes below the first layer: %v, want a ConfigError", bad)
	}

	s.FlushAll()
	removable := bloom.CuckooConfig{Capacity: 1000, FPRate: 0.01}
	create(t, cuckoo(t, c, removable), true)
	noError(t, errorOf(bloom.OpenCuckoo(ctx, c, key, removable)))
	removable.FPRate = 0.001
	differs(errorOf(bloom.OpenCuckoo(ctx, c, key, removable)), "")

	s.FlushAll()
	spread := bloom.ShardedConfig{Capacity: 3000, FPRate: 0.01, Shards: 3}
	create(t, sharded(t, spread, one...), true)
	openSharded := func(cfg bloom.ShardedConfig) error { return errorOf(bloom.OpenSharded(ctx, one, key, cfg)) }
	noError(t, openSharded(spread))
	noError(t, openSharded(bloom.ShardedConfig{Shards: 3}))
	noError(t, openSharded(bloom.ShardedConfig{Capacity: 3000, FPRate: 0.01}))
	differs(openSharded(bloom.ShardedConfig{Shards: 4}), "Shards")
	differs(openSharded(bloom.ShardedConfig{Capacity: 4000, FPRate: 0.01}), "")
}

// Inspect reads any filter of the format, and the state of its key, without
// Config or seed.
func TestInspect(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, cfg := range []bloom.Config{
			{Capacity: 1000, FPRate: 0.01, TTL: time.Hour},
			{Capacity: 1000, FPRate: 0.01, Seed: 42},
			{Capacity: 1000, FPRate: 0.01, Scheme: bloom.SchemeXXH3},
			{Capacity: 1000, FPRate: 0.01, Scheme: bloom.SchemeFNV1a},
		} {
			s.FlushAll()
			f := handle(t, s.Client(), cfg)
			mustAdd(t, f, numbered("item", 500)...)
			want, err := f.Stats(t.Context())
			noError(t, err)
			for name, c := range map[string]*upstash.Client{"full": s.Client(), "read-only": s.ReadOnlyClient()} {
				s.ResetStats()
				got, err := bloom.Inspect(t.Context(), c, key)
				if n := s.Stats(); err != nil || n.Requests != 1 || n.Commands != 4 {
					t.Errorf("%s: %v, %+v, want one request of four commands", name, err, n)
				}
				if got.Geometry.Seed != 0 || got.Seeded != (cfg.Seed != 0) {
					t.Errorf("%s: seed %d, seeded %v", name, got.Geometry.Seed, got.Seeded)
				}
				if c := float64(got.Capacity) / float64(want.Capacity); cfg.Capacity != 0 && (c < 0.99 || c > 1.01) {
					t.Errorf("%s: capacity %d, want about %d", name, got.Capacity, want.Capacity)
				}
				got.Geometry.Seed, got.Capacity, got.FPRate, got.TTL = cfg.Seed, want.Capacity, want.FPRate, want.TTL
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s:\n%+v, want\n%+v", name, got, want)
				}
			}
		}
		s.FlushAll()
		wantError(t, errorOf(bloom.Inspect(t.Context(), s.Client(), key)), bloom.ErrNotFound)
		wantError(t, errorOf(bloom.Inspect(t.Context(), s.ReadOnlyClient(), key)), bloom.ErrNotFound)
		do(t, s, "SET", key, "")
		for _, c := range []*upstash.Client{s.Client(), s.ReadOnlyClient()} {
			all, err := bloom.InspectAll(t.Context(), c, []string{key})
			noError(t, err)
			for name, err := range map[string]error{
				"Inspect": errorOf(bloom.Inspect(t.Context(), c, key)), "InspectAll": all[0].Err,
			} {
				if !errors.Is(err, bloom.ErrNotFilter) || errors.Is(err, bloom.ErrNotFound) {
					t.Errorf("%s of an empty string: %v, want ErrNotFilter", name, err)
				}
			}
		}
		do(t, s, "DEL", key)
		do(t, s, "RPUSH", key, "a")
		wantError(t, errorOf(bloom.Inspect(t.Context(), s.Client(), key)), bloom.ErrNotFilter)
	})
}

// A kind's word that no filter has is other data, to all who read any kind.
func TestInspectOfAnImpossibleWord(t *testing.T) {
	s := upstashtest.NewServer(t)
	c := s.Client()
	w, err := bloom.NewWindow(c, key, bloom.WindowConfig{Capacity: 1000, FPRate: 0.01, Span: time.Hour})
	noError(t, err)
	noError(t, errorOf(w.Add(t.Context(), "a")))
	do(t, s, "BITFIELD", key, "SET", "u4", "130", "7") // panes
	all, err := bloom.InspectAll(t.Context(), c, []string{key})
	noError(t, err)
	wantError(t, all[0].Err, bloom.ErrNotFilter)
	wantError(t, errorOf(bloom.Inspect(t.Context(), c, key)), bloom.ErrNotFilter)
	wantError(t, errorOf(bloom.TakeBackup(t.Context(), c, key)), bloom.ErrNotFilter)
}

// InspectAll returns for each key what Inspect does, in one request.
func TestInspectAll(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c := s.Client()
		for i, k := range []string{"first", "second"} {
			mustAdd(t, handleAt(t, c, k, bloom.Config{Capacity: 1000, FPRate: 0.01, Seed: uint64(i)}), "a", "b")
		}
		do(t, s, "RPUSH", "list", "a")
		do(t, s, "SET", "text", "some text that is long enough")
		keys := []string{"first", "missing", "", "list", "text", "second", "denied"}
		s.DenyFunc(func(command []string) bool { return slices.Contains(command, "denied") })
		for name, c := range map[string]*upstash.Client{"full": c, "read-only": s.ReadOnlyClient()} {
			s.ResetStats()
			got, err := bloom.InspectAll(t.Context(), c, keys)
			if err != nil || len(got) != len(keys) {
				t.Fatalf("%s: %d of %d, %v", name, len(got), len(keys), err)
			}
			if n := s.Stats(); n.Requests != 1 || n.Commands != 20 {
				t.Errorf("%s: %+v, want one request of 20 commands, without the denied", name, n)
			}
			for i, want := range []error{
				nil, bloom.ErrNotFound, nil, bloom.ErrNotFilter, bloom.ErrNotFilter, nil, upstash.ErrNoPermission,
			} {
				one, oneErr := bloom.Inspect(t.Context(), c, keys[i])
				if !reflect.DeepEqual(got[i].Stats, one) || (got[i].Err == nil) != (oneErr == nil) ||
					want != nil && !errors.Is(got[i].Err, want) {
					t.Errorf("%s: key %d: %+v, want what Inspect returns: %+v, %v", name, i, got[i], one, oneErr)
				}
			}
		}
		s.ResetStats()
		got, err := bloom.InspectAll(t.Context(), c, nil)
		if len(got) != 0 || err != nil || s.Stats().Requests != 0 {
			t.Errorf("of no key: %v, %v, %d requests", got, err, s.Stats().Requests)
		}
		s.Inject(upstashtest.Drop(upstashtest.BeforeExec))
		if _, err := bloom.InspectAll(t.Context(), once(s), keys); err == nil {
			t.Error("a request that failed is no error")
		}
	})
}

// The second count is the primary's too, if the token may ask it.
func TestInspectCountsAgainAtThePrimary(t *testing.T) {
	for name, put := range behind(t) {
		s := lagging(t, put)
		f := handle(t, s.Client(), sparse())
		exists(t, f, "a", true) // and its client has the sync token
		want, err := f.Stats(t.Context())
		noError(t, err)
		larger := sparse()
		larger.Bits *= 100
		if _, err := handle(t, s.Client(), larger).Add(t.Context(), "b"); err == nil {
			t.Fatal("an Add of a larger filter is no error")
		}
		c := s.Client(upstash.WithoutSyncToken())
		for _, denied := range []bool{false, true} {
			requests := int64(2)
			if denied { // the nearest region has to do
				s.DenyFunc(func(command []string) bool { return command[0] == "BITFIELD" })
				s.CatchUp()
				requests = 4
			}
			s.ResetStats()
			got, err := bloom.Inspect(t.Context(), c, key)
			if n := s.Stats().Requests; err != nil || got.SetBits != want.SetBits || n != requests {
				t.Errorf("%s, denied %v: Inspect = %d bits, %v in %d requests, want %d bits in %d",
					name, denied, got.SetBits, err, n, want.SetBits, requests)
			}
		}
	}
}
