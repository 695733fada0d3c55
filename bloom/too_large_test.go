package bloom_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// refuseRecords has the server refuse every script in the words of a record too
// large.
func refuseRecords(s *upstashtest.Server) {
	s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) (f upstashtest.Fault) {
		if strings.HasPrefix(r.Commands[0], "EVAL") {
			f = upstashtest.ErrorObject("ERR max single record size exceeded script: 012d00, on @user_script:8.")
		}
		return f
	})
}

// If a type's string is too large for a record, the error says how long it is,
// and what makes a string of this type shorter, without the server's line.
func TestTooLargeForARecord(t *testing.T) {
	const plan = "choose a larger plan"
	s := upstashtest.NewServer(t)
	c, ctx := s.Client(), t.Context()
	window := func(panes int) func() error {
		return func() error {
			w, err := bloom.NewWindow(c, key, bloom.WindowConfig{
				Capacity: 10_000, FPRate: 0.01, Span: time.Hour, Panes: panes,
			})
			if err == nil {
				_, err = w.Create(ctx)
			}
			return err
		}
	}
	for name, tt := range map[string]struct {
		create func() error
		advice string
	}{
		"Filter": {func() error {
			_, err := handle(t, c, bloom.Config{Capacity: 10_000, FPRate: 0.01}).Create(ctx)
			return err
		}, "lower the Capacity, raise the FPRate, " + plan + ", or spread the items over more records with NewSharded"},
		"Window": {window(1), "lower the Capacity (a shorter Span has fewer items), raise the FPRate, or " + plan},
		"Window of many panes": {window(4), "lower the Capacity (a shorter Span has fewer items), raise the FPRate," +
			" use fewer Panes, or " + plan},
		"Scalable": {func() error {
			_, err := scalable(t, c, bloom.ScalableConfig{Capacity: 10_000, FPRate: 0.01}).Create(ctx)
			return err
		}, "lower the Capacity, from which the filter grows, raise the FPRate, or " + plan},
		"Cuckoo": {func() error {
			f, err := bloom.NewCuckoo(c, key, bloom.CuckooConfig{Capacity: 10_000, FPRate: 0.01})
			if err == nil {
				_, err = f.Create(ctx)
			}
			return err
		}, "lower the Capacity, raise the FPRate, or " + plan},
	} {
		s.FlushAll()
		s.InjectFunc(nil)
		noError(t, tt.create())
		bytes := uint64(do(t, s, "STRLEN", key).(int64))
		s.FlushAll()
		refuseRecords(s)
		err := tt.create()
		var server *upstash.Error
		if !errors.Is(err, upstash.ErrRecordTooLarge) || !errors.As(err, &server) || !upstash.SafeToRetry(err) {
			t.Fatalf("%s: %v, want ErrRecordTooLarge", name, err)
		}
		want := "bloom: the filter's string of " + human.Count(bytes) + " bytes is too large for one record of" +
			" the database: " + tt.advice
		if err.Error() != want {
			t.Errorf("%s: %q, want %q", name, err, want)
		}
	}
}

// If shards are too large, the error says to use more of them. If they are above
// what most plans allow, it says how many suit those.
func TestTooLargeForAShard(t *testing.T) {
	for capacity, says := range map[uint64]string{
		1000:        "or choose a larger plan",
		300_000_000: "or choose a larger plan; with 5 Shards none is above the 100,000,000 bytes of most plans",
	} {
		s := upstashtest.NewServer(t, upstashtest.WithMaxRecord(500))
		f, err := bloom.NewSharded([]*upstash.Client{s.Client()}, key,
			bloom.ShardedConfig{Capacity: capacity, FPRate: 0.01, Shards: 2})
		noError(t, err)
		_, err = f.Create(t.Context())
		if !errors.Is(err, upstash.ErrRecordTooLarge) || !strings.HasSuffix(err.Error(), says) ||
			!strings.Contains(err.Error(), "use more Shards") {
			t.Errorf("%d items: %v, want %q", capacity, err, says)
		}
	}
}

// MinShards returns the least number that fits: one fewer does not.
func TestMinShards(t *testing.T) {
	for _, capacity := range []uint64{1, 1000, 74_000_000, 300_000_000, 5_000_000_000} {
		cfg := bloom.ShardedConfig{Capacity: capacity, FPRate: 0.01}
		n, err := cfg.MinShards(100_000_000)
		noError(t, err)
		for _, shards := range []int{n, n - 1} {
			if cfg.Shards = shards; shards == 0 {
				continue
			}
			g, err := cfg.Geometry()
			if fits := err == nil && g.Bytes(bloom.LayoutHeaded) <= 100_000_000; fits != (shards == n) {
				t.Errorf("%d items: MinShards = %d, and %d fit: %v", capacity, n, shards, fits)
			}
		}
	}
	for _, cfg := range []bloom.ShardedConfig{
		{Capacity: 1 << 36, FPRate: 0.01}, {FPRate: 0.01}, {Capacity: 1000},
	} {
		var config *bloom.ConfigError
		if n, err := cfg.MinShards(100_000_000); !errors.As(err, &config) {
			t.Errorf("%v: %d, %v, want a ConfigError", cfg, n, err)
		}
	}
}

// A Scalable whose MaxBytes is above the database's limit stays as it is when the
// next layer is refused: items are added on, and WarnFill says that it is too full.
func TestScalableGrowsBeyondTheRecordLimit(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithMaxRecord(5000)) // one layer, of 1.8 KB
	cfg, warned := growing(), 0
	cfg.WarnFill = func(st bloom.ScalableStats) {
		if warned++; len(st.Layers) != 1 || st.Items < 1000 || st.MaxLayers != 5 {
			t.Errorf("warned of %+v, want one layer of five, for fewer items", st)
		}
	}
	ctx, f := t.Context(), scalable(t, s.Client(), cfg)
	for i := range 2 {
		added, err := f.AddAll(ctx, numbered(fmt.Sprint(i), 900))
		if err != nil || count(added) < 800 {
			t.Fatalf("%d new, %v, want most of 900", count(added), err)
		}
	}
	add(t, f, "one", true)
	if n := layersAt(t, s); n != 1 || warned != 1 {
		t.Errorf("%d layers, warned %d times, want 1 and 1", n, warned)
	}
}
