package bloom_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

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
