package bloom_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestShardedStats(t *testing.T) {
	twoServers(t, func(t *testing.T, s [2]*upstashtest.Server) {
		cfg := bloom.ShardedConfig{Capacity: 8000, FPRate: 0.01, Shards: 4}
		f := sharded(t, cfg, s[0].Client(), s[1].Client())
		if _, err := f.Stats(t.Context()); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("before Create: %v, want ErrNotFound", err)
		}
		create(t, f, true)
		if _, err := f.AddAll(t.Context(), numbered("item", 8000)); err != nil {
			t.Fatal(err)
		}
		stats, err := f.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sum := uint64(0)
		for _, one := range stats.Shards {
			sum += one.Items
			if one.Kind != bloom.KindShard || one.Items < 1800 || one.Items > 2200 {
				t.Errorf("a shard has %v, want kind shard and about 2000 items", one)
			}
		}
		if sum != stats.Items || math.Abs(float64(sum)-8000) > 160 || stats.LiveFPRate > 0.0101 ||
			stats.LiveFPRate < 0.007 || stats.FPRate > 0.01 || stats.OverCapacity() || stats.Saturated {
			t.Errorf("%+v, want 8,000 items in 4 shards", stats)
		}
		n, err := f.Cardinality(t.Context())
		if err != nil || n != stats.Items {
			t.Errorf("Cardinality = %d, %v, want %d", n, err, stats.Items)
		}
		if text := stats.String(); !strings.Contains(text, "4 shards") || strings.Contains(text, key) {
			t.Errorf("String:\n%v", text)
		}
		do(t, s[1], "DEL", shardKey(3))
		if _, err := f.Stats(t.Context()); !errors.Is(err, bloom.ErrNotFound) || !strings.Contains(err.Error(), "shard 3 of 4") {
			t.Errorf("without shard 3: %v, want ErrNotFound of it", err)
		}
		if _, err := f.Cardinality(t.Context()); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("Cardinality without shard 3: %v, want ErrNotFound", err)
		}
	})
}
